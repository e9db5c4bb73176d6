//! The first row of the table that `overlock run --stat` prints.

use std::fmt::Write;

/// The row, column by column; None if no thread waited.
pub fn top(text: &str) -> Option<String> {
    let mut lines = text
        .lines()
        .skip_while(|line| !line.trim_start().starts_with("lock "));
    let (titles, cells) = (cells(lines.next()?), cells(lines.next()?));
    let cell = |title| {
        let column = titles.iter().position(|&one| one == title)?;
        cells.get(column).copied()
    };
    let mut row = String::new();
    let _ = writeln!(
        row,
        "   the hot lock   {}, a {}",
        cell("lock")?,
        cell("kind")?
    );
    let _ = writeln!(row, "   waited for in  {}", cell("acquired at")?);
    let _ = writeln!(
        row,
        "                  {} waits, {} in all, {} on average, {} at most",
        cell("waits")?,
        cell("wait total")?,
        cell("avg")?,
        cell("max")?
    );
    let _ = writeln!(row, "   meanwhile      {} held it", cell("held by")?);
    let _ = writeln!(
        row,
        "                  from there it is held for {} on average",
        cell("hold avg")?
    );
    Some(row)
}

/// At least two spaces divide columns, and a cell has no two in a row.
fn cells(line: &str) -> Vec<&str> {
    line.split("  ")
        .map(str::trim)
        .filter(|cell| !cell.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_row_is_shown_by_its_titles() {
        let text = "hot (process 1): 45 ms waited for locks
 lock            acquired at   kind  waits  wait total     avg     max  hold avg                     held by
 hot   short_section hot.c:29  mutex     21       44 ms  2.1 ms  5.4 ms    942 ns  98 % long_section hot.c:22
 hot    long_section hot.c:22  mutex      3       22 us  7.3 us  8.4 us    1.1 ms  98 % long_section hot.c:22
";
        let row = top(text).unwrap();
        assert!(row.contains("hot, a mutex"), "{row}");
        assert!(row.contains("short_section hot.c:29"), "{row}");
        assert!(
            row.contains("21 waits, 44 ms in all, 2.1 ms on average, 5.4 ms at most"),
            "{row}"
        );
        assert!(row.contains("98 % long_section hot.c:22 held it"), "{row}");
        assert!(top("words (process 1): no thread waited for a lock\n").is_none());
    }
}
