//! Tables whose columns are listed once, for rows of any kind.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};

/// A column: its title, and its cell of a row, which is [`NOTHING`] where there is no value.
#[derive(Debug)]
pub struct Column<R>(pub &'static str, pub fn(&R) -> String);

/// The cell of a figure that was not measured.
pub const NOTHING: &str = "-";

/// Formats a value by `text`, if there is one.
pub fn optional<T>(value: Option<T>, text: fn(T) -> String) -> String {
    value.map_or_else(|| NOTHING.to_owned(), text)
}

/// One table with all groups of columns, or one for each group where that is too wide for a
/// terminal of `width` columns. `first` is the title of the names.
pub fn blocks<R>(
    first: &str,
    rows: &[R],
    name: impl Fn(&R) -> String,
    groups: &[&[Column<R>]],
    width: Option<u16>,
) -> String {
    let all = block(first, rows, &name, groups.iter().copied().flatten());
    let widest = all.lines().map(|line| line.chars().count()).max();
    if width.is_none_or(|width| widest <= Some(usize::from(width))) {
        return all;
    }
    groups
        .iter()
        .map(|group| block(first, rows, &name, group.iter()))
        .collect()
}

/// Leaves out the columns that say nothing of any row.
fn block<'a, R: 'a>(
    first: &str,
    rows: &[R],
    name: impl Fn(&R) -> String,
    columns: impl Iterator<Item = &'a Column<R>>,
) -> String {
    let says = |column: &&Column<R>| rows.iter().any(|row| (column.1)(row) != NOTHING);
    let columns: Vec<&Column<R>> = columns.filter(says).collect();
    let titles = std::iter::once(first).chain(columns.iter().map(|column| column.0));
    let rows = rows.iter().map(|row| {
        let texts = columns.iter().map(|column| (column.1)(row));
        std::iter::once(name(row)).chain(texts)
    });
    table(titles, rows, |column| column > 0) + "\n"
}

/// The look of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Columns for a terminal.
    Plain,
    /// A table of a page in Markdown.
    Markdown,
}

impl Form {
    /// A table, in which the columns that `right` picks are flush right where there are columns.
    pub fn table(
        self,
        titles: &[&str],
        rows: impl IntoIterator<Item = impl IntoIterator<Item = String>>,
        right: impl Fn(usize) -> bool,
    ) -> String {
        if self == Self::Plain {
            return table(titles.to_vec(), rows, right);
        }
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let rule = format!("|{}\n", "---|".repeat(titles.len()));
        let head = line(titles.iter().map(|&title| title.to_owned()).collect());
        let rows = rows.into_iter().map(|row| line(row.into_iter().collect()));
        head + &rule + &rows.collect::<String>()
    }
}

/// A table without rules, in which the columns that `right` picks are flush right.
pub fn table<T: Into<Cell>>(
    titles: impl IntoIterator<Item = T>,
    rows: impl IntoIterator<Item = impl IntoIterator<Item = String>>,
    right: impl Fn(usize) -> bool,
) -> String {
    let mut table = Table::new();
    table
        .load_style(comfy_table::presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(titles);
    for row in rows {
        table.add_row(row);
    }
    for (place, column) in table.column_iter_mut().enumerate() {
        if right(place) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines = table.lines();
    lines
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}
