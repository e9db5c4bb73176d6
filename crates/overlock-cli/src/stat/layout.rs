//! Tables that fit a terminal: names are shortened, and groups of columns become tables below each
//! other.

use overlock_profile::brief;
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

/// A name with so many letters at most. Of a place the function says the most, and then the line;
/// of a function its end.
pub fn shortened(name: &str, most: usize) -> String {
    let fits = |text: &str| text.chars().count() <= most;
    if fits(name) {
        return name.to_owned();
    }
    let (share, rest) = match name.split_once(" % ") {
        Some((share, rest)) if share.parse::<f64>().is_ok() => {
            name.split_at(name.len() - rest.len())
        }
        _ => ("", name),
    };
    let (of, rest) = rest.split_at(if rest.starts_with("of ") { 3 } else { 0 });
    let lead = [share, of].concat();
    let (place, within) = match rest.rsplit_once(" in ") {
        Some((place, outer)) => (place, format!(" in {}", brief(outer))),
        None => (rest, String::new()),
    };
    let (function, file) = match place.rsplit_once(' ') {
        Some((function, file)) if file.contains('.') || is_program(function, file) => {
            (brief(function), file)
        }
        _ => (brief(place), ""),
    };
    let line = (file.rsplit_once(':')).map_or_else(String::new, |(_, line)| format!(":{line}"));
    let forms = [
        format!("{lead}{function} {file}{within}"),
        format!("{lead}{function}{line}{within}"),
        format!("{lead}{function}{line}"),
        format!("{lead}{function}"),
    ];
    let last = &forms[3];
    match forms.iter().find(|form| fits(form.trim_end())) {
        Some(form) => form.trim_end().to_owned(),
        None => {
            let room = most.saturating_sub(lead.chars().count() + 1);
            let left_out = last.chars().count() - lead.chars().count() - room;
            let end = function.chars().skip(left_out);
            lead.chars().chain(['…']).chain(end).collect()
        }
    }
}

/// Whether the last word of a place is a program's name, and no part of the function: a program
/// may have no dot.
fn is_program(function: &str, word: &str) -> bool {
    let opened = |open, close| function.matches(open).count() == function.matches(close).count();
    let is_part = ["const", "volatile", "noexcept"].contains(&word);
    let is_path = |letter: char| !"()<>[]{}&*,:~".contains(letter);
    opened('(', ')') && opened('<', '>') && !is_part && word.chars().all(is_path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails where the end of a function gives way to its file, or to its arguments.
    #[test]
    fn long_names_keep_what_tells_most() {
        for (name, most, short) in [
            ("brief", 10, "brief"),
            (
                "search_file_worker search.c:450",
                31,
                "search_file_worker search.c:450",
            ),
            (
                "search_file_worker search.c:450",
                23,
                "search_file_worker:450",
            ),
            ("search_file_worker search.c:450", 20, "search_file_worker"),
            ("search_file_worker search.c:450", 11, "…ile_worker"),
            (
                "100 % search_file_worker search.c:450",
                20,
                "100 % …h_file_worker",
            ),
            (
                "of Shelf<std::map<int, int>>::put(int) a.cpp:7",
                30,
                "of Shelf::put a.cpp:7",
            ),
            ("operator() shop.cpp:35 in _M_run", 20, "operator():35"),
            (
                "operator() shop.cpp:35 in _M_run",
                24,
                "operator():35 in _M_run",
            ),
            ("libavutil.so.57.28.100+0x7149d", 14, "…8.100+0x7149d"),
            ("h2o_barrier_wait h2o", 17, "h2o_barrier_wait"),
            ("of h2o_barrier_init h2o", 20, "of h2o_barrier_init"),
            (
                "Multiplexer::run(timeval*, int) dnsdist",
                30,
                "Multiplexer::run dnsdist",
            ),
            (
                "Multiplexer::run(timeval*, int) dnsdist",
                16,
                "Multiplexer::run",
            ),
            ("Server::Pool::size(int) const", 18, "Server::Pool::size"),
        ] {
            let cut = shortened(name, most);
            assert_eq!(cut, short);
            assert!(cut.chars().count() <= most);
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
