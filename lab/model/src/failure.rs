//! The report of a checker when a check fails.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use serde::Serialize;

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A check in a scenario or in a lock did not hold.
    Panic,
    /// No thread can go on, and not all have ended: a lost wake-up, or a real deadlock.
    Deadlock,
    /// The execution does not end.
    NoProgress,
}

/// A failed execution.
#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    /// The kind of a failure.
    pub kind: Kind,
    /// The details, for people.
    pub text: String,
    /// The choices that lead there, where the checker can replay them.
    pub path: Option<Vec<u8>>,
    /// The trace, step by step, if the checker has one.
    pub trace: Vec<String>,
}

impl Failure {
    /// A failure without a path.
    pub fn new(kind: Kind, text: String) -> Self {
        Failure {
            kind,
            text,
            path: None,
            trace: Vec::new(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Panic => "a check failed",
            Kind::Deadlock => "nobody can go on",
            Kind::NoProgress => "no end in sight",
        };
        write!(f, "{kind}\n{}", self.text)
    }
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `work`, whose panics are failures to be reported: their texts, with the place, come back
/// instead of going to the terminal.
///
/// # Errors
///
/// The text of the first panic.
pub fn quiet<R>(work: impl FnOnce() -> R) -> Result<R, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        // Shuttle installs a hook of its own, once, which prints. This one must come before it.
        shuttle::check_random(|| {}, 1);
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                return before(info);
            }
            PANIC.with_borrow_mut(|panic| {
                panic.get_or_insert_with(|| info.to_string().replacen('\n', " ", 1));
            });
        }));
    });
    PANIC.set(None);
    let before = QUIET.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    QUIET.set(before);
    result.map_err(|payload| PANIC.take().unwrap_or_else(|| text_of(&*payload)))
}

/// Runs `work`, which may panic with `text`: that is no failure.
pub(crate) fn may_panic(text: &str, work: impl FnOnce()) {
    if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(work)) {
        if text_of(&*payload) != text {
            panic::resume_unwind(payload);
        }
        PANIC.set(None);
    }
}

fn text_of(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_default()
}

/// A source file's name without the folders above the crate's.
pub(crate) fn short(file: &str) -> &str {
    file.rsplit_once("src/").map_or(file, |(_, name)| name)
}
