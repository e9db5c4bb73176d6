//! Who is told of what.

use super::*;

/// Core 0 has changed the line, cores 1 and 2 have read it; vCPUs 1 and 2 watch.
fn watched() -> Scene {
    let mut scene = Scene::new(&machine());
    scene.ask(0, 0, Access::Write);
    scene.ask(500_000, 1, Access::Read);
    scene.ask(600_000, 2, Access::Read);
    scene.run();
    assert!(scene.cache.watch(1, 1, 0) && scene.cache.watch(2, 2, 0));
    scene
}

#[test]
fn nobody_watches_a_line_that_is_not_there() {
    let mut scene = watched();
    assert!(!scene.cache.watch(3, 3, 0));
    scene.ask(1_000_000, 0, Access::Write);
    scene.run();
    assert_eq!(scene.lost.len(), 2);
}

/// The request of core 0 travels 20,000 ps to the last-level cache, and the snoop 15,000 to the
/// others. Fails where they are told when core 0 asks, or when it has the line.
#[test]
fn watchers_learn_of_their_loss_when_the_snoop_comes() {
    let mut scene = watched();
    scene.ask(1_000_000, 0, Access::Write);
    scene.run();
    scene.lost.sort_unstable();
    assert_eq!(scene.lost, [(1, 1_035_000), (2, 1_035_000)]);
    // Once is enough.
    scene.cache.changed(0, 0);
    scene.signals();
    assert_eq!(scene.lost.len(), 2);
}

#[test]
fn readers_disturb_nobody() {
    let mut scene = watched();
    scene.ask(1_000_000, 3, Access::Read);
    scene.ask(1_000_000, 4, Access::Read);
    scene.run();
    assert_eq!(scene.lost, []);
}

#[test]
fn whoever_no_longer_watches_is_not_told() {
    let mut scene = watched();
    scene.cache.unwatch(1, 0);
    scene.ask(1_000_000, 0, Access::Write);
    scene.run();
    assert_eq!(scene.lost, [(2, 1_035_000)]);
}

/// A change that hits takes nothing away, but the sibling sees it when it has taken effect. Fails
/// where `access` tells it at once, or `changed` tells nobody.
#[test]
fn a_sibling_is_told_of_a_change_when_it_has_happened() {
    let mut scene = Scene::new(&machine());
    scene.ask(0, 0, Access::Write);
    scene.run();
    // vCPU 9 is on core 0 as well.
    assert!(scene.cache.watch(0, 0, 0) && scene.cache.watch(9, 0, 0));
    let before = scene.cache.changes(0);
    scene.ask(1_000_000, 0, Access::Locked);
    assert_eq!(scene.run(), [(0, 1_008_000)]);
    assert_eq!((scene.lost.len(), scene.cache.changes(0)), (0, before));
    scene.cache.changed(0, 0);
    scene.signals();
    assert_eq!(
        (&scene.lost[..], scene.cache.changes(0)),
        (&[(9, 1_004_800)][..], before + 1)
    );
}
