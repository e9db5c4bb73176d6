//! The same lock in different runs.

use crate::view::frame_name;
use crate::{Lock, Profile, Shown};

/// A lock by program, name, kind and the function that initialised it. One without a name has the
/// function that waits for it the most: addresses differ from run to run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub program: String,
    pub name: String,
    pub kind: String,
    pub init: Option<String>,
}

/// The keys of a profile's locks, in their order.
pub fn of_locks(profile: &Profile) -> Vec<Key> {
    let shown = Shown::default();
    let mut longest: Vec<Option<(u64, u32)>> = vec![None; profile.locks.len()];
    for sum in &profile.sums {
        let longest = &mut longest[sum.lock as usize];
        if longest.is_none_or(|(ns, _)| sum.wait_ns > ns) {
            *longest = Some((sum.wait_ns, sum.stack));
        }
    }
    let locks = profile.locks.iter().zip(longest);
    locks
        .map(|(lock, longest)| Key {
            program: profile.processes[lock.process as usize].program.clone(),
            name: name(lock).unwrap_or_else(|| match longest {
                Some((_, stack)) => format!("in {}", shown.function(profile, Some(stack))),
                None => "without a name".to_owned(),
            }),
            kind: lock.kind.clone(),
            init: lock.init.and_then(|stack| {
                let frames = shown.frames(profile, stack);
                frames.first().map(|frame| frame_name(frame))
            }),
        })
        .collect()
}

fn name(lock: &Lock) -> Option<String> {
    let has_name = !lock.name.is_empty() && !lock.name.starts_with("0x");
    has_name.then(|| lock.name.clone())
}
