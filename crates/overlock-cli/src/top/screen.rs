//! The screen of `overlock top`.

use clap::ValueEnum;
use overlock_report::numbers::{count, time};
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Text;
use ratatui::widgets::{Cell, Paragraph, Row, Table};

use super::changes::{Change, Changes};
use crate::stat;

/// Its title, its width, and what it says.
type Column = (&'static str, u16, fn(&Change) -> String);

const COLUMNS: [Column; 7] = [
    ("acquired/s", 11, |change| match change.line.is_event {
        true => "-".to_owned(),
        false => whole(change.last.acquisitions),
    }),
    ("waits/s", 10, |change| whole(change.last.waits)),
    ("wait/s", 8, |change| nanoseconds(change.last.wait_ns)),
    ("wait sum", 8, |change| nanoseconds(change.sum.wait_ns)),
    ("avg", 8, |change| {
        nanoseconds(change.line.wait_avg_ns as u64)
    }),
    ("max", 8, |change| nanoseconds(change.line.wait_max_ns)),
    ("hold avg", 8, |change| {
        nanoseconds(change.line.hold_avg_ns as u64)
    }),
];

/// The least width of the names.
const NAMES: u16 = 32;

/// How many columns there is room for.
fn fitting(width: u16) -> usize {
    let mut room = width.saturating_sub(NAMES + 1);
    let fits = |column: &&Column| {
        // One more for the space between two.
        let left = room.checked_sub(column.1 + 1);
        room = left.unwrap_or_default();
        left.is_some()
    };
    COLUMNS.iter().take_while(fits).count()
}

fn whole(number: u64) -> String {
    count(number as f64)
}

fn nanoseconds(number: u64) -> String {
    if number == 0 {
        return "-".to_owned();
    }
    time(number as f64)
}

/// Draws it.
pub fn draw(frame: &mut Frame, changes: &Changes, state: &str) {
    let [top, body, bottom] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let order = changes.sort.to_possible_value();
    let order = order.as_ref().map_or("", |order| order.get_name());
    let (what, titles) = match changes.shows_events {
        true => ("events", ["event", "waits at"]),
        false => ("locks", ["lock", "acquired at"]),
    };
    let title = format!(
        "{} (process {}), {state}, {} {what} and call sites, by {order}",
        changes.program,
        changes.pid,
        changes.shown().count()
    );
    frame.render_widget(Paragraph::new(title), top);
    let keys = "q quit   s sort   e locks or events   p pause   r reset";
    frame.render_widget(Paragraph::new(keys), bottom);

    let columns = &COLUMNS[..fitting(body.width)];
    let figures: u16 = columns.iter().map(|column| column.1 + 1).sum();
    let names = body.width.saturating_sub(figures + 1);
    let names = [names * 2 / 5, names - names * 2 / 5];
    let mut widths: Vec<Constraint> = names.map(Constraint::Length).to_vec();
    widths.extend(columns.iter().map(|column| Constraint::Length(column.1)));
    let right = |text: String| Cell::from(Text::from(text).alignment(Alignment::Right));
    let titles = titles
        .into_iter()
        .map(Cell::from)
        .chain(columns.iter().map(|column| right(column.0.to_owned())));
    let header = Row::new(titles).style(Style::new().add_modifier(Modifier::REVERSED));
    let rows = changes.shown().take(body.height.into()).map(|change| {
        let line = &change.line;
        let short = |name: &str, letters: u16| Cell::from(stat::shortened(name, letters.into()));
        let names = [short(&line.name, names[0]), short(&line.site, names[1])];
        let figures = columns.iter().map(|column| right((column.2)(change)));
        Row::new(names.into_iter().chain(figures))
    });
    frame.render_widget(Table::new(rows, widths).header(header), body);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_room_before_figures_do() {
        assert_eq!(fitting(0), 0);
        // acquired/s, waits/s, wait/s, wait sum: 37 and the spaces.
        assert_eq!((fitting(73), fitting(74)), (3, 4));
        assert_eq!(fitting(80), 4);
        assert_eq!((fitting(100), fitting(101)), (6, 7));
        assert_eq!(fitting(300), 7);
    }
}
