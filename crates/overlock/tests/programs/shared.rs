//! Programs for reader-writer locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use overlock_core::raw::RawRwLock;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::extras::RwExtras;
use crate::hands::{Hands, Token};
use crate::how::{How, Pause, how, pause};
use crate::numbers::Numbers;
use crate::runner::check;
use crate::watch::ThreadState;
use crate::workers::workers;

/// Enough reads for a lock whose readers become visible to make them so.
const MANY: u32 = 2_100;

#[derive(Clone, Copy, Debug)]
enum Op {
    Read(How),
    Write(How),
    Upgradable(How),
    /// The rest applies to one of the acquisitions, if it is of the kind.
    Unlock(usize),
    UnlockFair(usize),
    Bump(usize),
    Downgrade(usize),
    DowngradeToUpgradable(usize),
    Upgrade(usize, How),
    /// Reads and releases, many times.
    ReadMany,
}

fn op() -> impl Strategy<Value = Op> {
    let which = 0..8_usize;
    prop_oneof![
        8 => how().prop_map(Op::Read),
        4 => how().prop_map(Op::Write),
        3 => how().prop_map(Op::Upgradable),
        8 => which.clone().prop_map(Op::Unlock),
        2 => which.clone().prop_map(Op::UnlockFair),
        2 => which.clone().prop_map(Op::Bump),
        3 => which.clone().prop_map(Op::Downgrade),
        2 => which.clone().prop_map(Op::DowngradeToUpgradable),
        4 => (which, how()).prop_map(|(which, how)| Op::Upgrade(which, how)),
        3 => Just(Op::ReadMany),
    ]
}

/// The reference: the number of holders, and their modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Model {
    readers: usize,
    writer: bool,
    upgradable: bool,
}

impl Model {
    fn of<L: RawRwLock>(held: &[Token<L>]) -> Self {
        let mut model = Model::default();
        for token in held {
            match token {
                Token::Read(_) => model.readers += 1,
                Token::Write(_) => model.writer = true,
                Token::Upgradable => model.upgradable = true,
            }
        }
        model
    }

    fn is_free(self) -> bool {
        self == Model::default()
    }
}

fn alone<L: RawRwLock>(extras: &RwExtras<L>, program: &[Op]) {
    let lock = &L::INIT;
    let hands = Hands { lock, extras };
    let mut held: Vec<Token<L>> = Vec::new();
    for &op in program {
        let model = Model::of(&held);
        let take = |held: &mut Vec<Token<L>>, which: usize| {
            (!held.is_empty()).then(|| held.swap_remove(which % held.len()))
        };
        // An acquisition that is possible at once must succeed, and another must not.
        let (expected, got) = match op {
            Op::Read(how) => {
                let free = !model.writer;
                (free, extras.read(lock, how, free).map(Token::Read))
            }
            Op::Write(how) => {
                let free = model.is_free();
                (free, extras.write(lock, how, free).map(Token::Write))
            }
            Op::Upgradable(how) => {
                let free = !model.writer && !model.upgradable;
                let expected = free && extras.full.is_some();
                (expected, hands.upgradable(how, free))
            }
            Op::Upgrade(which, how) => {
                let alone = model.readers == 0;
                let before = take(&mut held, which);
                let was_upgradable = matches!(before, Some(Token::Upgradable));
                let after = before.map(|token| hands.upgrade(token, how, alone));
                if was_upgradable {
                    let upgraded = matches!(after, Some(Token::Write(_)));
                    assert_eq!(upgraded, alone, "{}: {op:?}, {model:?}", L::NAME);
                }
                (after.is_some(), after)
            }
            Op::Unlock(which) | Op::UnlockFair(which) => {
                if let Some(token) = take(&mut held, which) {
                    hands.unlock(token, matches!(op, Op::UnlockFair(_)));
                }
                (false, None)
            }
            Op::Bump(which) => {
                let token = take(&mut held, which).map(|token| hands.bump(token));
                (token.is_some(), token)
            }
            Op::Downgrade(which) => {
                let token = take(&mut held, which).map(|token| hands.downgrade(token));
                (token.is_some(), token)
            }
            Op::DowngradeToUpgradable(which) => {
                let token = take(&mut held, which);
                let token = token.map(|token| hands.downgrade_to_upgradable(token));
                (token.is_some(), token)
            }
            Op::ReadMany => {
                for _ in 0..MANY * u32::from(!model.writer) {
                    hands.unlock(Token::Read(lock.read()), false);
                }
                (false, None)
            }
        };
        assert_eq!(got.is_some(), expected, "{}: {op:?}, {model:?}", L::NAME);
        held.extend(got);
        let model = Model::of(&held);
        assert_eq!(lock.is_locked(), !model.is_free(), "{}: {model:?}", L::NAME);
        assert_eq!(
            lock.is_write_locked(),
            model.writer,
            "{}: {model:?}",
            L::NAME
        );
        // A reader that has given up may show until the writer leaves.
        assert!(
            model.writer || !lock.is_contended(),
            "{}: nobody waits",
            L::NAME
        );
    }
    held.into_iter()
        .for_each(|token| hands.unlock(token, false));
    assert!(!lock.is_locked(), "{}", L::NAME);
}

/// A thread's operation on an acquisition, if it is of the kind.
#[derive(Clone, Copy, Debug)]
enum Step {
    Bump,
    Downgrade,
    DowngradeToUpgradable,
    Upgrade(How),
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Read,
    Write,
    Upgradable,
}

/// A thread's operations on a lock that others use too: it acquires, runs the steps, with a pause
/// after each, and releases.
#[derive(Clone, Debug)]
struct Section {
    kind: Kind,
    how: How,
    steps: Vec<Step>,
    inside: Pause,
    fair: bool,
    /// Repeats, so often.
    times: u32,
}

fn section() -> impl Strategy<Value = Section> {
    let kind = prop_oneof![
        3 => Just(Kind::Read),
        2 => Just(Kind::Write),
        2 => Just(Kind::Upgradable),
    ];
    let step = prop_oneof![
        1 => Just(Step::Bump),
        1 => Just(Step::Downgrade),
        1 => Just(Step::DowngradeToUpgradable),
        2 => how().prop_map(Step::Upgrade),
    ];
    let times = prop_oneof![20 => Just(1), 1 => Just(MANY)];
    let parts = (kind, how(), vec(step, 0..4), pause(), any::<bool>(), times);
    parts.prop_map(|(kind, how, steps, inside, fair, times)| {
        // Only readers repeat, and make no pause then.
        let crowd = times > 1;
        Section {
            kind: if crowd { Kind::Read } else { kind },
            how,
            steps: if crowd { Vec::new() } else { steps },
            inside: if crowd { Pause::None } else { inside },
            fair,
            times,
        }
    })
}

/// One section; returns the number of its writes.
fn pay<L: RawRwLock>(
    hands: &Hands<L>,
    numbers: &Numbers,
    section: &Section,
    state: &ThreadState,
) -> u64 {
    let Hands { lock, extras } = hands;
    state.waits(section.how.deadline().is_some());
    let token = match section.kind {
        Kind::Read => extras.read(lock, section.how, true).map(Token::Read),
        Kind::Write => extras.write(lock, section.how, true).map(Token::Write),
        Kind::Upgradable => hands.upgradable(section.how, true),
    };
    let mut writes = 0;
    if let Some(mut token) = token {
        // SAFETY: the lock is held, exclusively if the token says so: here and below.
        let inspect = |token: &Token<L>| match token {
            // SAFETY: as above.
            Token::Write(_) => unsafe { (numbers.change(section.inside), 1) },
            // SAFETY: as above.
            _ => unsafe { (numbers.inspect(section.inside), 0) },
        };
        state.is_inside();
        let (mut seen, wrote) = inspect(&token);
        writes += wrote;
        for &step in &section.steps {
            // Except with `Bump`, nobody else writes in between.
            let lets_in = matches!(step, Step::Bump);
            state.waits(false);
            token = match step {
                Step::Bump => hands.bump(token),
                Step::Downgrade => hands.downgrade(token),
                Step::DowngradeToUpgradable => hands.downgrade_to_upgradable(token),
                Step::Upgrade(how) => hands.upgrade(token, how, true),
            };
            state.is_inside();
            let (now, wrote) = inspect(&token);
            assert!(lets_in || now == seen + wrote, "{}: {step:?}", L::NAME);
            (seen, writes) = (now, writes + wrote);
        }
        hands.unlock(token, section.fair);
    }
    state.is_outside();
    writes
}

fn together<L: RawRwLock>(extras: fn() -> RwExtras<L>, programs: &[Vec<Section>]) {
    let lock = Arc::new(L::INIT);
    let numbers = Arc::new(Numbers::new(L::NAME));
    let writes = Arc::new(AtomicU64::new(0));
    let shared = (lock.clone(), numbers.clone(), writes.clone());
    let programs = programs.to_vec();
    workers(L::NAME, programs.len(), move |thread, state| {
        let (lock, numbers, writes) = &shared;
        let extras = &extras();
        let hands = Hands {
            lock: &**lock,
            extras,
        };
        for section in &programs[thread] {
            for _ in 0..section.times {
                writes.fetch_add(pay(&hands, numbers, section, state), Relaxed);
            }
        }
    });
    assert!(!lock.is_locked() && !lock.is_write_locked(), "{}", L::NAME);
    assert!(!lock.is_contended(), "{}", L::NAME);
    // SAFETY: the threads have ended.
    let count = unsafe { numbers.inspect(Pause::None) };
    assert_eq!(count, writes.load(Relaxed), "{}", L::NAME);
}

macro_rules! tests {
    ($($name:ident: $module:ident::$lock:ident, $can:ident;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn alone() {
                let extras = RwExtras::<overlock::rw::$lock>::$can();
                check(vec(op(), 0..40), |program| super::alone(&extras, program));
            }

            #[test]
            fn together() {
                check(vec(vec(section(), 0..8), 2..=4), |programs| {
                    super::together(RwExtras::<overlock::rw::$lock>::$can, programs);
                });
            }
        }
    )*};
}

overlock_family::rw_locks!(tests);
