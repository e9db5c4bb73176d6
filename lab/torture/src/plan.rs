//! The plan of a thread: drawn from the seed, whatever happens while the thread follows it.
//!
//! Each [`Step`] takes the same numbers from the sequence, whether its lock can do what they say or
//! not. So the same seed gives the same decisions to the same thread of the same lock. When they
//! are made is up to the scheduler, and so a replay shows a race only with luck, if more of it than
//! a random run would have.

use std::fmt;
use std::time::Duration;

use crate::registry::Entry;
use crate::settings::{LOCKS, Settings};
use overlock_core::facts::Waiting;
use overlock_report::random::{Random, of_name};

/// As what a thread comes; all are the same to a lock that only excludes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Together with other readers.
    Read,
    /// Alone.
    Write,
    /// As the reader that may become the writer.
    Upgradable,
}

/// How it asks for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// For as long as it takes.
    Wait,
    /// Not at all, if that needs waiting.
    Try,
    /// For so many nanoseconds.
    Timed(u64),
    /// Until another thread sends it away.
    Cancel,
}

/// The end of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Releases the lock.
    Leave,
    /// Releases it to those that wait.
    LeaveFair,
    /// Lets those that wait have it, and goes in again.
    Bump,
    /// A writer goes on as a reader, an upgradable reader as the writer or as a plain reader.
    Change,
    /// Panics inside: unwinding releases it. For locks with guards.
    Panic,
}

/// A way to spend time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    None,
    /// So many nanoseconds with the CPU.
    Spin(u64),
    /// The CPU is given away.
    Yield,
    /// So many nanoseconds without the CPU.
    Sleep(u64),
}

/// One step of a thread: which locks it acquires, how, and what it does with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub side: Side,
    pub how: How,
    /// The first of the locks that it takes; the others follow by number.
    pub first: usize,
    /// How many.
    pub depth: usize,
    /// The time that it spends inside.
    pub hold: Pause,
    /// The end of the section.
    pub then: Then,
    /// The time that it spends outside.
    pub rest: Pause,
    /// Whether it does all that with a higher priority.
    pub boost: bool,
    /// The thread that it sends away, if that one waits so.
    pub cancel: Option<usize>,
    /// For choices that only one lock has.
    pub bits: u64,
}

/// The steps of one thread, without end.
#[derive(Clone, Debug)]
pub struct Plan {
    random: Random,
    reads: u64,
    nest: u64,
    threads: u64,
    long_hold: u64,
    sparse: bool,
    greedy: bool,
    life: Option<u64>,
}

/// Of so many sections one is long.
const LONG: u64 = 8192;

/// Greedy threads come back to the first lock at once, again and again, and take so many more
/// steps: who waits for that lock has a hard time. Some threads are.
const GREEDY: u64 = 16;

/// How much rarer threads are where waiters spin: their rests are longer, and they exit after fewer
/// steps.
const SPARSE: u64 = 8;

impl Plan {
    /// The plan of the `generation`th thread of worker `worker`.
    pub fn new(
        settings: &Settings,
        entry: &Entry,
        threads: usize,
        worker: usize,
        generation: u64,
    ) -> Self {
        let lock = of_name(entry.name);
        let mut random = Random::of(&[settings.seed, lock, worker as u64, generation]);
        // A lock whose waiters spin gets few steps done.
        let sparse = entry.facts.waiting == Waiting::Spins;
        let churn = u64::from(settings.churn).div_ceil(if sparse { SPARSE } else { 1 });
        let life = churn / 2 + random.below(churn + 1);
        let greedy = random.once_in(8);
        Plan {
            random,
            reads: u64::from(settings.reads),
            nest: settings.nest.clamp(1, LOCKS) as u64,
            threads: threads as u64,
            long_hold: nanoseconds(settings.long_hold),
            sparse,
            greedy,
            life: (churn > 0).then_some(if greedy { life * GREEDY } else { life }.max(1)),
        }
    }

    /// Steps until the thread exits; none where it stays.
    pub fn life(&self) -> Option<u64> {
        self.life
    }

    pub fn step(&mut self) -> Step {
        let step = self.draw();
        if !self.greedy {
            return step;
        }
        Step {
            first: 0,
            depth: 1,
            rest: Pause::None,
            ..step
        }
    }

    fn draw(&mut self) -> Step {
        let side = match self.random.below(100) {
            dice if dice >= self.reads => Side::Write,
            _ if self.random.clone().once_in(10) => Side::Upgradable,
            _ => Side::Read,
        };
        let random = &mut self.random;
        random.draw();
        let time = random.scaled(10, 21);
        let how = match random.below(20) {
            0..=2 => How::Try,
            3..=4 => How::Timed(time),
            5 => How::Timed(0),
            6..=7 => How::Cancel,
            _ => How::Wait,
        };
        let deep = 1 + random.below(self.nest);
        let depth = if random.once_in(8) { deep } else { 1 };
        let start = random.below(LOCKS as u64 + 1 - depth);
        let first = if random.once_in(4) { start } else { 0 };
        let (short, long) = (hold(random), long(random, self.long_hold));
        let then = match random.below(16) {
            0..=1 => Then::LeaveFair,
            2 => Then::Bump,
            3..=6 => Then::Change,
            7 => Then::Panic,
            _ => Then::Leave,
        };
        let rest = rest(random, self.sparse);
        let boost = random.once_in(64);
        let other = random.below(self.threads) as usize;
        Step {
            side,
            how,
            first: first as usize,
            depth: depth as usize,
            hold: long.unwrap_or(short),
            then,
            rest,
            boost,
            cancel: random.once_in(8).then_some(other),
            bits: random.draw(),
        }
    }
}

/// The time of a section of usual length.
fn hold(random: &mut Random) -> Pause {
    let (short, long) = (random.scaled(6, 11), random.scaled(11, 16));
    match random.below(100) {
        0..50 => Pause::None,
        50..84 => Pause::Spin(short),
        84..94 => Pause::Spin(long),
        94..98 => Pause::Yield,
        _ => Pause::Sleep(long),
    }
}

/// The time of a long one: half of them with the CPU.
fn long(random: &mut Random, time: u64) -> Option<Pause> {
    let chosen = random.once_in(LONG);
    let asleep = random.once_in(2);
    (chosen && time > 0).then_some(if asleep {
        Pause::Sleep(time)
    } else {
        Pause::Spin(time)
    })
}

/// If waiters spin, most threads must be out of the way for the others to get anywhere.
fn rest(random: &mut Random, sparse: bool) -> Pause {
    let (short, long) = (random.scaled(6, 13), random.scaled(13, 19));
    match random.below(100) {
        0..25 if sparse => Pause::Sleep(long * SPARSE),
        0..40 => Pause::None,
        40..75 => Pause::Spin(short),
        75..85 => Pause::Spin(long / 4),
        85..95 => Pause::Yield,
        _ => Pause::Sleep(long),
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pause::None => f.write_str("nothing"),
            Pause::Spin(ns) => write!(f, "{ns} ns"),
            Pause::Yield => f.write_str("a yield"),
            Pause::Sleep(ns) => write!(f, "a sleep of {ns} ns"),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = match self.side {
            Side::Read => "read",
            Side::Write => "write",
            Side::Upgradable => "upgradable",
        };
        let how = match self.how {
            How::Wait => String::new(),
            How::Try => " by trying".to_owned(),
            How::Timed(ns) => format!(" within {ns} ns"),
            How::Cancel => " unless cancelled".to_owned(),
        };
        let then = match self.then {
            Then::Leave => "leave",
            Then::LeaveFair => "leave fairly",
            Then::Bump => "bump",
            Then::Change => "change sides",
            Then::Panic => "panic",
        };
        let last = self.first + self.depth - 1;
        let locks = if last == self.first {
            format!("lock {}", self.first)
        } else {
            format!("locks {} to {last}", self.first)
        };
        let boost = if self.boost { "boosted, " } else { "" };
        write!(
            f,
            "{boost}{side} {locks}{how}, {} inside, {then}, {} outside",
            self.hold, self.rest
        )?;
        match self.cancel {
            Some(other) => write!(f, ", cancel thread {other}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::select;

    fn steps(settings: &Settings, lock: &str, worker: usize, generation: u64) -> Vec<Step> {
        let entry = select([lock]).unwrap()[0];
        let mut plan = Plan::new(settings, entry, 8, worker, generation);
        (0..10_000).map(|_| plan.step()).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_steps_and_nothing_else_does() {
        let one = Settings::default();
        let other = Settings {
            seed: 1,
            ..one.clone()
        };
        let first = steps(&one, "kernel_mutex", 3, 0);
        assert_eq!(first, steps(&one, "kernel_mutex", 3, 0));
        assert_ne!(first, steps(&other, "kernel_mutex", 3, 0));
        assert_ne!(first, steps(&one, "rwsem", 3, 0));
        assert_ne!(first, steps(&one, "kernel_mutex", 4, 0));
        assert_ne!(first, steps(&one, "kernel_mutex", 3, 1));
    }

    /// An option changes what it is about, and leaves the rest of the steps as they were.
    #[test]
    fn options_leave_other_decisions_alone() {
        let one = Settings::default();
        let other = Settings {
            reads: 0,
            long_hold: Duration::ZERO,
            nest: 1,
            ..one.clone()
        };
        let pairs = steps(&one, "kernel_mutex", 3, 0);
        for (a, b) in pairs.into_iter().zip(steps(&other, "kernel_mutex", 3, 0)) {
            assert_eq!(
                (a.how, a.then, a.rest, a.bits),
                (b.how, b.then, b.rest, b.bits)
            );
            assert_eq!((b.side, b.depth), (Side::Write, 1));
        }
    }

    #[test]
    fn everything_happens_and_stays_in_range() {
        let all = steps(&Settings::default(), "kernel_mutex", 0, 0);
        let some = |what: fn(&Step) -> bool| all.iter().any(what);
        for side in [Side::Read, Side::Write, Side::Upgradable] {
            assert!(all.iter().any(|step| step.side == side), "{side:?}");
        }
        for then in [
            Then::Leave,
            Then::LeaveFair,
            Then::Bump,
            Then::Change,
            Then::Panic,
        ] {
            assert!(all.iter().any(|step| step.then == then), "{then:?}");
        }
        assert!(some(|step| step.how == How::Wait) && some(|step| step.how == How::Try));
        assert!(some(|step| step.how == How::Cancel) && some(|step| step.how == How::Timed(0)));
        assert!(some(|step| step.boost) && some(|step| step.cancel.is_some()));
        assert!(some(|step| step.depth == LOCKS) && some(|step| step.first == LOCKS - 1));
        assert!(some(|step| step.hold == Pause::Yield) && some(|step| step.rest == Pause::Yield));
        let long = Duration::from_millis(10).as_nanos() as u64;
        let longs = all
            .iter()
            .filter(|step| step.hold == Pause::Sleep(long) || step.hold == Pause::Spin(long));
        assert!((1..=10).contains(&longs.count()));
        for step in all {
            assert!(step.first + step.depth <= LOCKS && step.cancel.is_none_or(|other| other < 8));
            assert!(!step.to_string().is_empty());
        }
    }
}
