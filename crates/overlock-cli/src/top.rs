//! `overlock top`

mod changes;
mod screen;

use std::fs;
use std::io::{self, IsTerminal};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::exit::Exit;
use crate::measure::progress;
use crate::stat::{self, Mapping, Process, Symbols};
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

    /// What comes first
    #[arg(long, value_enum, value_name = "BY", default_value_t)]
    sort: Sort,
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
    let (pid, table) = open(args.pid)?;
    let mut symbols = Symbols::new();
    if args.once {
        let process = Process::read(&table, &mut symbols);
        let text = stat::describe(&[process], progress::width());
        return crate::print(io::stdout().lock(), text.as_bytes());
    }
    if !io::stdout().is_terminal() {
        return Err(Exit::usage(
            "the standard output is no terminal; --once prints one table",
        ));
    }
    let terminal = ratatui::try_init()
        .map_err(|error| Exit::Failed(format!("cannot use the terminal: {error}")))?;
    let result = show(terminal, pid, args.sort, &table, &mut symbols);
    ratatui::restore();
    result.map_err(|error| Exit::Failed(format!("cannot use the terminal: {error}")))
}

/// The table of the process, or of the program that it runs, where it is `overlock run`.
fn open(pid: u32) -> Result<(u32, Mapping), Exit> {
    let no = |why: &str| Err(Exit::usage(format!("process {pid} {why}")));
    match stat::find(pid) {
        Ok(Some(path)) => Mapping::open(&path)
            .map(|table| (pid, table))
            .map_err(|error| Exit::usage(format!("{}: {error}", path.display()))),
        Ok(None) if let Some(program) = program_of(pid) => open(program),
        Ok(None) => no("counts nothing: start it by `overlock run --stat`"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => no("is not there"),
        Err(error) => no(&format!("cannot be looked at: {error}")),
    }
}

/// The child of a process that runs this program too.
fn program_of(pid: u32) -> Option<u32> {
    let is_ours = same_file(&format!("/proc/{pid}/exe"), "/proc/self/exe");
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children
        .split_whitespace()
        .next()
        .filter(|_| is_ours)?
        .parse()
        .ok()
}

fn same_file(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|path| fs::metadata(path).ok());
    one.zip(other)
        .is_some_and(|(one, other)| (one.dev(), one.ino()) == (other.dev(), other.ino()))
}

fn show(
    mut terminal: DefaultTerminal,
    pid: u32,
    sort: Sort,
    table: &Mapping,
    symbols: &mut Symbols,
) -> io::Result<()> {
    let mut changes = Changes::new(sort);
    let mut paused = false;
    changes.update(Process::read(table, symbols));
    let mut next = Instant::now() + INTERVAL;
    loop {
        let state = match (paused, alive(pid)) {
            (true, _) => "paused",
            (false, true) => "running",
            (false, false) => "ended",
        };
        terminal.draw(|frame| screen::draw(frame, &changes, state))?;
        let left = next.saturating_duration_since(Instant::now());
        if !event::poll(left)? {
            if !paused {
                changes.update(Process::read(table, symbols));
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

fn alive(pid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}

const KEYS: &str = "\
Keys:
  s  another order: by the last second's waiting time, waits, acquisitions, by all of the waiting time
  e  waits for events in place of locks, or locks again
  p  pause
  r  reset: sums begin anew
  q  quit";
