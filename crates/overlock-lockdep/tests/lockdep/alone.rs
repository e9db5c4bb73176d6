//! Scenes in processes of their own.

use std::process::Command;

const SCENE: &str = "OVERLOCK_LOCKDEP_SCENE";

/// A scene's output on standard error.
pub struct Said(pub String);

impl Said {
    /// Returns the titles of the reports.
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

/// Runs `scene` in a process of its own. `test` is the test that calls this, by its full name.
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

/// `alone`, with the name of the function that it is in.
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
pub const AGAIN: &str = "recursive locking: the thread waits for itself";
pub const EXIT: &str = "thread exits with locks held";
pub const SLEEP: &str = "WARNING: sleeping with locks held";
pub const DEADLOCK: &str = "deadlock detected";
