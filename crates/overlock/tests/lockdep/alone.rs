//! Scenes in processes of their own.

use std::process::Command;

const SCENE: &str = "OVERLOCK_LOCKDEP_SCENE";

/// A scene's output on standard error.
pub struct Said(pub String);

impl Said {
    /// The titles of the reports.
    pub fn titles(&self) -> Vec<&str> {
        let lines = self.0.lines();
        lines
            .filter_map(|line| line.strip_prefix("lockdep: "))
            .collect()
    }

    #[track_caller]
    pub fn is(&self, titles: &[&str]) {
        assert_eq!(self.titles(), titles, "{}", self.0);
    }

    #[track_caller]
    pub fn has(&self, part: &str) {
        assert!(self.0.contains(part), "no {part:?} in:\n{}", self.0);
    }
}

/// Runs `scene` in a process of its own. `test` is the full name of the calling test.
pub fn alone(test: &str, scene: fn()) -> Said {
    if std::env::var(SCENE).as_deref() == Ok(test) {
        scene();
        std::process::exit(0);
    }
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program)
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(SCENE, test)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{}\n{said}", output.status);
    Said(said)
}

/// Calls `alone` with the name of the enclosing function.
#[macro_export]
macro_rules! alone {
    ($scene:expr) => {{
        fn here() {}
        fn name<T>(_: T) -> &'static str {
            std::any::type_name::<T>()
        }
        let test = name(here).strip_suffix("::here").unwrap();
        let test = test.split_once("::").unwrap().1;
        $crate::alone::alone(test, $scene)
    }};
}

pub const ORDER: &str = "possible circular locking dependency detected";
pub const CLASS: &str = "possible recursive locking within a class";
pub const AGAIN: &str = "recursive locking: the thread waits for itself";
pub const READ_AGAIN: &str = "possible deadlock of a reader with itself: a writer may come between";
pub const SIGNAL: &str = "inconsistent use of a lock in a signal handler";
pub const CHAIN: &str = "possible circular locking dependency through a signal handler";
pub const RELEASE: &str = "release of a lock that is not held";
pub const EXIT: &str = "thread exits with locks held";
pub const SLEEP: &str = "WARNING: sleeping with locks held";
pub const DEADLOCK: &str = "deadlock detected";
