//! The score that this version of the program has: of the half that no constant was chosen by.

use super::judge::Class;

/// The page with it.
const PAGE: &str = include_str!("../../../../results/score.md");

/// The score of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// How many figures.
    pub figures: String,
    /// Pairs of locks in the right order, of so many.
    pub orders: String,
    /// The mean absolute logarithm of simulated over published figures.
    pub error: f64,
}

/// The score of a class, if there are figures of it.
pub fn of(class: Class) -> Option<Known> {
    read(PAGE, class)
}

fn read(page: &str, class: Class) -> Option<Known> {
    let begin = format!("| {class} | score |");
    let line = page.lines().find(|line| line.starts_with(&begin))?;
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    let [_, _, _, figures, orders, error, ..] = cells.as_slice() else {
        return None;
    };
    Some(Known {
        figures: (*figures).to_owned(),
        orders: (*orders).to_owned(),
        error: error.parse().ok()?,
    })
}

/// The same as a sentence.
pub fn told(class: Class) -> String {
    match of(class) {
        Some(Known {
            figures,
            orders,
            error,
        }) => format!(
            "Of published pairs of locks in this class ({class}) {orders} are simulated in the \
             right order; {figures} figures are off by {error:.2} on average, as logarithms.\n"
        ),
        None => {
            format!("No published figure of this class ({class}) has been held out to check it.\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_score_of_each_class() {
        let page = "| one socket | calibrate | 9 | 1 of 8 | 0.90 |\n\
                    | one socket | score | 61 | 30 of 40 | 0.35 | 0.2 |\n";
        let one = Known {
            figures: "61".to_owned(),
            orders: "30 of 40".to_owned(),
            error: 0.35,
        };
        assert_eq!(read(page, Class::OneSocket), Some(one));
        assert_eq!(read(page, Class::Overcommit), None);
        for class in Class::ALL {
            assert!(of(class).is_some_and(|known| known.error > 0.0), "{class}");
            assert!(told(class).contains("right order"), "{class}");
        }
    }
}
