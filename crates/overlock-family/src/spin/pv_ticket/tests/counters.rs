//! The counters belong to the whole process, and other tests count too. So this test runs in a
//! process of its own.

use std::env::current_exe;
use std::process::Command;

use super::*;
use overlock_core::stat;

#[test]
#[cfg_attr(miri, ignore = "Miri starts no processes")]
fn slow_paths_are_counted_by_their_outcome() {
    let alone = concat!(module_path!(), "::alone");
    let (_crate, alone) = alone.split_once("::").unwrap();
    let output = Command::new(current_exe().unwrap())
        .args([alone, "--exact", "--ignored"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}"
    );
}

/// Starts at zero, runs `scene`, and compares each counter that `counts` names; all others must be
/// 0. Compares the number of timed sleeps and kicks too.
fn expect(counts: &[(Event, u64)], sleeps: u64, scene: impl FnOnce()) {
    stat::reset();
    scene();
    let now = stat::snapshot();
    for &event in Event::ALL {
        let due = counts.iter().find(|(named, _)| *named == event);
        assert_eq!(
            now.count(event),
            due.map_or(0, |(_, due)| *due),
            "{event:?}"
        );
    }
    assert_eq!(now.histogram(Latency::TimeBlocked).count(), sleeps);
    let searches = now.histogram(Latency::PvLatencyKick).count();
    assert_eq!(searches, now.count(Event::ReleasedSlow));
}

#[test]
#[ignore = "run by the test above"]
fn alone() {
    stat::enable(true);
    expect(&[], 0, || {
        let lock = held::<Toy, Large, HeadFlag>();
        unlock_as(0, lock);
    });
    // Asleep twice, the first time for nothing.
    let counts = [
        (Event::TakenSlow, 2),
        (Event::TakenSlowSpurious, 1),
        (Event::ReleasedSlow, 1),
        (Event::ReleasedSlowKicked, 1),
    ];
    expect(&counts, 2, spurious_once::<Large, HeadFlag>);
    // Released before the flag was up.
    let counts = [(Event::TakenSlow, 1), (Event::TakenSlowPickup, 1)];
    expect(&counts, 0, release_before_flag::<Large, HeadFlag>);
    // The flag is up, and no waiter sleeps.
    expect(&[(Event::ReleasedSlow, 1)], 0, || {
        let lock = held::<Toy, Large, HeadFlag>();
        Large::raise::<Toy>(&lock.word, HeadFlag::bits::<Large>());
        unlock_as(0, lock);
    });
    // No node, once; no room in the table, once.
    let counts = [(Event::TakenSlow, 2), (Event::LockNoNode, 2)];
    expect(&counts, 0, cannot_sleep::<Large, HeadFlag>);
}
