//! The score that this version of the program has: of the half that no constant was chosen by.

use super::judge::Class;

/// The page with it.
const PAGE: &str = include_str!("../../../../results/score.md");

/// The score of a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known<'p> {
    /// How many figures.
    pub figures: &'p str,
    /// Pairs of locks in the right order, of so many.
    pub orders: &'p str,
    /// The mean absolute logarithm of simulated over published figures.
    pub error: f64,
}

/// The score of a class, if there are figures of it.
pub fn of(class: Class) -> Option<Known<'static>> {
    read(PAGE, class)
}

fn read(page: &str, class: Class) -> Option<Known<'_>> {
    let begin = format!("| {class} | score |");
    let line = page.lines().find_map(|line| line.strip_prefix(&begin))?;
    let mut cells = line.split('|').map(str::trim);
    Some(Known {
        figures: cells.next()?,
        orders: cells.next()?,
        error: cells.next()?.parse().ok()?,
    })
}

/// The same as a sentence.
pub fn told(class: Class) -> String {
    let Some(known) = of(class) else {
        return format!(
            "No published figure of this class ({class}) has been held out to check it.\n"
        );
    };
    let (figures, orders, error) = (known.figures, known.orders, known.error);
    format!(
        "Of published pairs of locks in this class ({class}) {orders} are simulated in the right \
         order; {figures} figures are off by {error:.2} on average, as logarithms.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_score_of_each_class() {
        let page = "| one socket | calibrate | 9 | 1 of 8 | 0.90 |\n\
                    | one socket | score | 61 | 30 of 40 | 0.35 | 0.2 |\n";
        let one = Known {
            figures: "61",
            orders: "30 of 40",
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
