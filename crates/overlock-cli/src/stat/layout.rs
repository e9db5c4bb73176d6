//! Tables that fit a terminal: names lose their middles, and groups of columns become tables below
//! each other.

use overlock_report::columns::{NOTHING, table};

/// The width of what is no terminal.
pub const WIDTH: usize = 80;

/// The longest names that leave room for something beside them.
pub const MOST_LETTERS: usize = 44;

/// The shortest that still say something.
const LEAST_LETTERS: usize = 10;

/// A column, with a cell for each row.
#[derive(Debug)]
pub struct Column {
    title: &'static str,
    cells: Vec<String>,
    is_name: bool,
}

impl Column {
    /// Of figures.
    pub fn new<R>(title: &'static str, rows: &[R], cell: impl Fn(&R) -> String) -> Self {
        Self {
            title,
            cells: rows.iter().map(cell).collect(),
            is_name: false,
        }
    }

    /// Of names, which may be shortened.
    pub fn of_names<R>(title: &'static str, rows: &[R], cell: impl Fn(&R) -> String) -> Self {
        Self {
            is_name: true,
            ..Self::new(title, rows, cell)
        }
    }

    fn says(&self) -> bool {
        self.cells.iter().any(|cell| cell != NOTHING)
    }

    /// With names of so many letters at most.
    fn width(&self, letters: usize) -> usize {
        let most = if self.is_name { letters } else { usize::MAX };
        let cells = self.cells.iter().map(|cell| cell.chars().count().min(most));
        cells.chain([self.title.chars().count()]).max().unwrap_or(0)
    }
}

/// A table of all columns, or one for each group where that is too wide. `first` is the column of
/// the rows' names, with which each begins. Columns that say nothing of any row are left out.
pub fn fitting(first: &Column, groups: &[Vec<Column>], width: usize) -> String {
    let all: Vec<&Column> = std::iter::once(first)
        .chain(groups.iter().flatten())
        .collect();
    if total(&all, MOST_LETTERS) <= width {
        return written(&all, MOST_LETTERS, false) + "\n";
    }
    let tables = groups.iter().filter_map(|group| {
        let said: Vec<&Column> = group.iter().filter(|column| column.says()).collect();
        if said.is_empty() {
            return None;
        }
        let columns: Vec<&Column> = std::iter::once(first).chain(said).collect();
        // The number of a row takes four columns.
        let fits = |letters: &usize| total(&columns, *letters) + 4 <= width;
        let letters = (LEAST_LETTERS..=MOST_LETTERS).rev().find(fits);
        Some(written(&columns, letters.unwrap_or(LEAST_LETTERS), true) + "\n")
    });
    tables.collect()
}

/// The width of a table with names of so many letters.
fn total(columns: &[&Column], letters: usize) -> usize {
    let said = columns.iter().filter(|column| column.says());
    said.map(|column| column.width(letters) + 2).sum()
}

/// The table; with numbers, by which rows of several tables are the same.
fn written(columns: &[&Column], letters: usize, has_numbers: bool) -> String {
    let said: Vec<&&Column> = columns.iter().filter(|column| column.says()).collect();
    let rows = columns.first().map_or(0, |column| column.cells.len());
    let numbered = |number: String| has_numbers.then_some(number).into_iter();
    let titles = numbered("#".to_owned()).chain(said.iter().map(|column| column.title.to_owned()));
    let rows = (0..rows).map(|row| {
        let cells = said.iter().map(move |column| match column.is_name {
            true => shortened(&column.cells[row], letters),
            false => column.cells[row].clone(),
        });
        numbered((row + 1).to_string())
            .chain(cells)
            .collect::<Vec<_>>()
    });
    let names: Vec<bool> = (has_numbers.then_some(false).into_iter())
        .chain(said.iter().map(|column| column.is_name))
        .collect();
    table(titles, rows, |column| !names[column])
}

/// A name without its middle, if it has more letters.
pub fn shortened(name: &str, most: usize) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= most {
        return name.to_owned();
    }
    let half = most / 2;
    let (start, end) = (
        &letters[..most - half],
        &letters[letters.len() - half + 1..],
    );
    start.iter().chain(&['…']).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(shortened("brief", 10), "brief");
        let long = format!("begin{}end", "x".repeat(100));
        for most in [10, 11, 44] {
            let short = shortened(&long, most);
            assert_eq!(short.chars().count(), most);
            assert!(short.starts_with("begin") && short.ends_with("end"));
        }
    }

    #[test]
    fn tables_are_no_wider_than_the_terminal() {
        let rows = ["a".repeat(60), "b".repeat(3)];
        let first = Column::of_names("lock", &rows, String::clone);
        let groups = || {
            let figures = ["one", "two", "three"]
                .map(|title| Column::new(title, &rows, |_| "1,234,567 ms".to_owned()));
            let nothing = Column::new("nothing", &rows, |_| NOTHING.to_owned());
            vec![
                Vec::from(figures),
                vec![Column::of_names("held by", &rows, String::clone), nothing],
            ]
        };
        for width in [80, 100, 300] {
            let text = fitting(&first, &groups(), width);
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(width), "{width}: {text}");
            assert!(
                !text.contains("nothing") && text.contains("three"),
                "{text}"
            );
            assert_eq!(text.contains('#'), width < 300, "{text}");
        }
    }
}
