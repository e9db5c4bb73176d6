//! A search: execution after execution, until there are no more, enough, or one that fails.

use std::rc::Rc;

use super::exec::{Execution, Rules};
use super::rewind;
use super::strategy::Strategy;
use crate::failure::Failure;

/// How to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All executions with at most so many departures from the plain course.
    Exhaustive {
        /// Changes of thread where the running one could go on, old messages, early time-outs,
        /// things that happen by chance.
        departures: u32,
    },
    /// Random walks.
    Random {
        /// The start of the random numbers.
        seed: u64,
    },
    /// Random priorities that change at some moments.
    Pct {
        /// The start of the random numbers.
        seed: u64,
        /// The depth of the bugs that it finds with the probability that the paper gives.
        depth: u32,
    },
}

impl Mode {
    fn strategy(self) -> Strategy {
        match self {
            Mode::Exhaustive { departures } => Strategy::exhaustive(departures),
            Mode::Random { seed } => Strategy::random(seed),
            Mode::Pct { seed, depth } => Strategy::pct(seed, depth),
        }
    }
}

/// The result of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Executions of the last, complete or longest, search.
    pub executions: u64,
    /// Whether there are no others within the bounds.
    pub complete: bool,
}

/// Executions by which an exhaustive search learns which atomics are shared.
const WARM_UP: u64 = 200;

/// Runs `body` in up to `executions` executions.
///
/// # Errors
///
/// The first execution that fails, with its trace.
pub fn search(
    mode: Mode,
    rules: Rules,
    executions: u64,
    body: impl Fn() + 'static,
) -> Result<Done, Box<Failure>> {
    let body: Rc<dyn Fn()> = Rc::new(body);
    let exhaustive = matches!(mode, Mode::Exhaustive { .. });
    let mut run = Execution::new(mode.strategy(), rules);
    let mut done = Done::default();
    if exhaustive {
        for seed in 0..WARM_UP {
            run.restart(Strategy::random(seed));
            step(&mut run, rules, &body, &mut done)?;
        }
        run.restart(mode.strategy());
        run.take_discovered();
        done.executions = 0;
    } else {
        run = run.share_all();
    }
    while done.executions < executions {
        step(&mut run, rules, &body, &mut done)?;
        if exhaustive && run.take_discovered() {
            // The search so far has left out changes of thread at this atomic.
            run.restart(mode.strategy());
            done.executions = 0;
        } else if !run.more() {
            done.complete = true;
            break;
        }
    }
    Ok(done)
}

fn step(
    run: &mut Execution,
    rules: Rules,
    body: &Rc<dyn Fn()>,
    done: &mut Done,
) -> Result<(), Box<Failure>> {
    let sharing = run.sharing();
    rewind();
    let again = Rc::clone(body);
    let result = run.run(move || again());
    done.executions += 1;
    result.map_err(|mut failure| {
        let path = failure.path.clone().unwrap_or_default();
        let mut replay = Execution::new(Strategy::Replay(path), rules).traced(sharing);
        rewind();
        let again = Rc::clone(body);
        let same = replay.run(move || again());
        failure.trace = replay.trace().to_vec();
        if same.is_ok() {
            failure.text += "\n(the replay did not fail: the scenario is not deterministic)";
        }
        Box::new(failure)
    })
}
