//! The texts, and what other programs do meanwhile.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Adds the sources and pages below this directory.
pub fn texts(dir: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        let is_text = || {
            ["c", "md", "rs"]
                .map(OsStr::new)
                .map(Some)
                .contains(&path.extension())
        };
        if kind.is_dir() && entry.file_name() != "target" {
            texts(&path, found)?;
        } else if kind.is_file() && is_text() {
            found.push(path);
        }
    }
    Ok(())
}

/// The machine's CPU time since its start, in ticks of a hundredth of a second.
#[derive(Debug)]
pub struct Ticks {
    busy: u64,
    all: u64,
}

impl Ticks {
    /// None where the system does not tell.
    pub fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    fn parse(stat: &str) -> Option<Self> {
        // user, nice, system, idle, iowait, and those that take CPU time from everybody.
        let ticks = stat.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = ticks
            .split_whitespace()
            .map_while(|tick| tick.parse().ok())
            .collect();
        let all = ticks.iter().take(8).sum();
        Some(Self {
            busy: all - ticks.get(3)? - ticks.get(4)?,
            all,
        })
    }

    /// The share of the CPU time since then that went to programs other than ours, which used this
    /// many seconds.
    pub fn others(&self, seconds: f64) -> Option<f64> {
        let now = Self::now()?;
        let busy = (now.busy - self.busy) as f64 - 100.0 * seconds;
        Some(busy / (now.all - self.all) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_and_that_of_guests_are_not_busy() {
        let ticks = Ticks::parse("cpu  10 1 5 70 9 2 1 2 500 500\ncpu0 1\n").unwrap();
        assert_eq!((ticks.busy, ticks.all), (21, 100));
        assert!(Ticks::parse("intr 1").is_none());
    }
}
