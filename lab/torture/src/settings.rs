//! The settings of a run.

use std::env;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

/// The most locks of one type that a thread holds at a time.
pub const LOCKS: usize = 4;

/// The settings of a run; the defaults are those of the program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Settings {
    /// Length of the whole run; the locks share it.
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub length: Duration,
    /// The seed of the threads' decisions.
    pub seed: u64,
    /// Threads for each lock; chosen by lock and machine where there is none.
    pub threads: Option<usize>,
    /// How many operations of reader-writer locks read, in percent.
    pub reads: u32,
    /// A long section; none of them where 0.
    #[serde(rename = "long_hold_ms", serialize_with = "milliseconds")]
    pub long_hold: Duration,
    /// From one stop of all threads to the next; none but the last where 0.
    #[serde(rename = "stutter_ms", serialize_with = "milliseconds")]
    pub stutter: Duration,
    /// From one change of the threads' CPUs to the next; none where 0.
    #[serde(rename = "shuffle_ms", serialize_with = "milliseconds")]
    pub shuffle: Duration,
    /// Steps of a thread, on average, before it exits and another takes its place; for ever where
    /// 0. An eighth of that for locks whose waiters spin, sixteen times as many for greedy
    /// threads.
    pub churn: u32,
    /// The most locks that a thread holds at a time, 1 to [`LOCKS`].
    pub nest: usize,
    /// Whether signals interrupt the threads.
    pub signals: bool,
    /// Whether threads get another priority now and then.
    pub boost: bool,
    /// How long a thread may stand still, beyond what its lock promises.
    #[serde(rename = "patience_ms", serialize_with = "milliseconds")]
    pub patience: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            length: Duration::from_secs(60),
            seed: 0,
            threads: None,
            reads: 75,
            long_hold: Duration::from_millis(10),
            stutter: Duration::from_millis(100),
            shuffle: Duration::from_millis(100),
            churn: 1000,
            nest: LOCKS,
            signals: true,
            boost: true,
            patience: Duration::from_secs(10),
        }
    }
}

impl Settings {
    /// The command that does to `lock` what this run did, for `length`, with so many threads.
    pub fn replay(&self, option: &str, lock: &str, threads: usize, length: Duration) -> String {
        let default = Self::default();
        let seconds = length.as_secs_f64().ceil().max(1.0);
        let mut text = format!(
            "{} torture {option} {lock} --seed {} --threads {threads} --seconds {seconds}",
            program(),
            self.seed
        );
        let mut say = |name: &str, mine: u128, usual: u128| {
            if mine != usual {
                let _ = write!(text, " --{name} {mine}");
            }
        };
        let ms = |time: Duration| time.as_millis();
        say("reads", self.reads.into(), default.reads.into());
        say("long-hold", ms(self.long_hold), ms(default.long_hold));
        say("stutter", ms(self.stutter), ms(default.stutter));
        say("shuffle", ms(self.shuffle), ms(default.shuffle));
        say("churn", self.churn.into(), default.churn.into());
        say("nest", self.nest as u128, default.nest as u128);
        if self.patience != default.patience {
            let _ = write!(text, " --patience {}", self.patience.as_secs_f64());
        }
        if !self.signals {
            text += " --no-signals";
        }
        if !self.boost {
            text += " --no-boost";
        }
        text
    }
}

/// The name of this program, which may have locks of its own.
fn program() -> String {
    let path = env::args_os().next().map(PathBuf::from);
    let name = path.as_deref().and_then(Path::file_name);
    name.map_or("overlock".into(), |name| {
        name.to_string_lossy().into_owned()
    })
}

fn seconds<S: serde::Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(time.as_secs_f64())
}

fn milliseconds<S: serde::Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(time.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_says_all_that_is_not_usual() {
        let mut settings = Settings {
            seed: 7,
            ..Settings::default()
        };
        let length = Duration::from_millis(1500);
        assert_eq!(
            settings.replay("--locks", "kernel_mutex", 16, length),
            format!(
                "{} torture --locks kernel_mutex --seed 7 --threads 16 --seconds 2",
                program()
            )
        );
        settings.reads = 10;
        settings.stutter = Duration::ZERO;
        settings.patience = Duration::from_millis(500);
        settings.signals = false;
        settings.boost = false;
        assert_eq!(
            settings.replay("--inject", "starving", 4, length),
            format!(
                "{} torture --inject starving --seed 7 --threads 4 --seconds 2 --reads 10 \
                 --stutter 0 --patience 0.5 --no-signals --no-boost",
                program()
            )
        );
    }
}
