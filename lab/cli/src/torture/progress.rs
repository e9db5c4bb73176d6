//! How far the run is.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use overlock_torture::registry::Entry;
use overlock_torture::run::Observer;

/// How often a line says where the run is, when there is no terminal for a bar.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// A bar on a terminal, a line now and then elsewhere, nothing with `--quiet`.
#[derive(Debug)]
pub enum Progress {
    Bar { bar: ProgressBar, start: Instant },
    Lines { locks: usize, last: Instant },
    Hidden,
}

impl Progress {
    pub fn new(length: Duration, locks: usize, quiet: bool) -> Self {
        if quiet {
            return Self::Hidden;
        }
        let start = Instant::now();
        if !std::io::stderr().is_terminal() {
            return Self::Lines { locks, last: start };
        }
        let bar = ProgressBar::new(length.as_millis() as u64);
        let style = ProgressStyle::with_template("{bar:30} {msg:<48} {eta} left")
            .expect("a constant template")
            .progress_chars("=> ");
        bar.set_style(style);
        Self::Bar { bar, start }
    }

    pub fn finish(&self) {
        if let Self::Bar { bar, .. } = self {
            bar.finish_and_clear();
        }
    }
}

impl Observer for Progress {
    fn progress(
        &mut self,
        index: usize,
        entry: &'static Entry,
        elapsed: Duration,
        operations: u64,
    ) {
        match self {
            Self::Bar { bar, start } => {
                bar.set_message(format!("{}, {operations} operations", entry.name));
                bar.set_position(start.elapsed().as_millis() as u64);
            }
            Self::Lines { locks, last } if last.elapsed() >= LINE_INTERVAL => {
                *last = Instant::now();
                crate::tell!(
                    "overlock-lab: {}, lock {} of {locks}: {operations} operations in {:.0} s",
                    entry.name,
                    index + 1,
                    elapsed.as_secs_f64()
                );
            }
            Self::Lines { .. } | Self::Hidden => {}
        }
    }
}
