//! `overlock top`

mod changes;
mod metrics;
mod screen;
mod serve;

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::exit::Exit;
use crate::stat::{self, Watched, is_alive};
use crate::terminal::{print, width};
use changes::Changes;

/// Watch which locks a program's threads wait for
///
/// The program must have been started by `overlock run --stat`, or with OVERLOCK_STAT=1.
#[derive(Debug, clap::Args)]
#[command(after_help = KEYS)]
pub struct Args {
    /// The process, or the `overlock run` that has started it
    #[arg(value_name = "PID")]
    pid: u32,

    /// Print what was counted so far, and exit
    #[arg(long)]
    once: bool,

    /// The order of the rows
    #[arg(long, value_enum, value_name = "BY", default_value_t)]
    sort: Sort,

    /// Serve the counts to Prometheus as http://ADDRESS:PORT/metrics until the process has ended
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with_all = ["once", "sort"])]
    serve: Option<String>,
}

/// An order of the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// The longest waits in the last second
    #[default]
    Wait,
    /// The most waits in the last second
    Waits,
    /// The most acquisitions in the last second
    Acquired,
    /// The longest waits in all
    Total,
}

/// How often the screen changes.
const INTERVAL: Duration = Duration::from_secs(1);

/// Shows the process.
pub fn run(args: &Args) -> Result<(), Exit> {
    let mut watched = Watched::open(args.pid)?;
    if let Some(address) = &args.serve {
        return serve::serve(address, watched);
    }
    if args.once {
        let process = (watched.read())
            .map_err(|error| Exit::Failed(format!("process {}: {error}", watched.pid)))?;
        let text = stat::describe(&[process], width(), false);
        return print(io::stdout().lock(), text.as_bytes());
    }
    if !io::stdout().is_terminal() {
        return Err(Exit::usage(
            "the standard output is no terminal; --once prints one table",
        ));
    }
    let terminal = ratatui::try_init()
        .map_err(|error| Exit::Failed(format!("cannot use the terminal: {error}")))?;
    let result = show(terminal, args.sort, &mut watched);
    ratatui::restore();
    result.map_err(|error| Exit::Failed(format!("cannot use the terminal: {error}")))
}

fn show(mut terminal: DefaultTerminal, sort: Sort, watched: &mut Watched) -> io::Result<()> {
    let mut changes = Changes::new(sort);
    let mut paused = false;
    changes.update(watched.read()?);
    let mut next = Instant::now() + INTERVAL;
    loop {
        let state = match (paused, is_alive(watched.pid)) {
            (true, _) => "paused",
            (false, true) => "running",
            (false, false) => "ended",
        };
        terminal.draw(|frame| screen::draw(frame, &changes, state))?;
        let left = next.saturating_duration_since(Instant::now());
        if !event::poll(left)? {
            if !paused {
                changes.update(watched.read()?);
            }
            next = Instant::now() + INTERVAL;
            continue;
        }
        match event::read()? {
            Event::Key(key) if key.kind == KeyEventKind::Press => match pressed(key) {
                Key::Quit => return Ok(()),
                Key::Sort => changes.sort_by_next(),
                Key::Events => changes.shows_events = !changes.shows_events,
                Key::Pause => paused = !paused,
                Key::Reset => changes.reset(),
                Key::Other => {}
            },
            _ => {}
        }
    }
}

enum Key {
    Quit,
    Sort,
    Events,
    Pause,
    Reset,
    Other,
}

fn pressed(key: KeyEvent) -> Key {
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => Key::Quit,
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Key::Quit,
        KeyCode::Char('s') => Key::Sort,
        KeyCode::Char('e') => Key::Events,
        KeyCode::Char('p') => Key::Pause,
        KeyCode::Char('r') => Key::Reset,
        _ => Key::Other,
    }
}

const KEYS: &str = "\
Keys:
  s  another order: by the last second's waiting time, waits, acquisitions, by all of the waiting time
  e  waits for events in place of locks, or locks again
  p  pause
  r  reset: sums begin anew
  q  quit

Exit codes: 1 the terminal cannot be used, 2 bad use, or the process counts nothing.";
