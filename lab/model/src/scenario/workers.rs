//! Scenarios that are written as functions: one for each thread, over what they share.

use std::sync::Arc;

use super::{Scenario, Setting};
use crate::arena::Placed;
use crate::world::World;

/// The part of one thread.
pub type Part<S> = fn(&'static S);

/// A scenario in which each of `parts` runs on a thread of its own, over what `make` made; `check`
/// checks it when all have ended.
pub fn workers<W: World, S: Sync + 'static, const N: usize>(
    name: &'static str,
    setting: Setting,
    make: fn() -> S,
    parts: [Part<S>; N],
    check: fn(&S),
) -> Scenario {
    Scenario {
        name: name.to_owned(),
        threads: N,
        setting,
        body: Arc::new(move || {
            let shared = Placed::new(make());
            let others: Vec<_> = parts[1..]
                .iter()
                .map(|&part| {
                    let shared = shared.share();
                    W::spawn(move || part(shared))
                })
                .collect();
            parts[0](shared.share());
            others.into_iter().for_each(W::join);
            check(&shared);
            // SAFETY: all other threads have ended.
            unsafe { shared.end() };
        }),
    }
}

/// Two accesses to data that nobody else may access between.
pub fn change<W: World>(data: &W::Data) {
    use crate::world::Data;
    data.write();
    W::breathe();
    data.write();
}

/// Lets so many nanoseconds pass, asleep on `nobody`, which nobody kicks.
pub fn rest<W: World>(nobody: &W::U32, nanos: u64) {
    let end = W::now().plus_nanos(nanos);
    while W::now() < end {
        W::halt(nobody, 0, Some(end.into()));
    }
}
