//! Watches: notifications of lost and changed lines.

use super::*;

/// Core 0 has changed the line, cores 1 and 2 have read it; vCPUs 1 and 2 watch.
fn watched() -> Scene {
    let mut scene = Scene::new(&machine());
    scene.request(0, 0, Access::Write);
    scene.request(500_000, 1, Access::Read);
    scene.request(600_000, 2, Access::Read);
    scene.run();
    assert!(scene.cache.watch(1, 1, 0) && scene.cache.watch(2, 2, 0));
    scene
}

#[test]
fn a_line_that_the_core_lacks_cannot_be_watched() {
    let mut scene = watched();
    assert!(!scene.cache.watch(3, 3, 0));
    scene.request(1_000_000, 0, Access::Write);
    scene.run();
    assert_eq!(scene.lost.len(), 2);
}

/// The request of core 0 travels 20,000 ps to the last-level cache, and the snoop 15,000 to the
/// others. Fails where watchers are notified when core 0 requests the line, or when it has the
/// line.
#[test]
fn watchers_are_notified_when_the_snoop_arrives() {
    let mut scene = watched();
    scene.request(1_000_000, 0, Access::Write);
    scene.run();
    scene.lost.sort_unstable();
    assert_eq!(scene.lost, [(1, 1_035_000), (2, 1_035_000)]);
    // A watch is notified once.
    scene.cache.changed(0, 0);
    scene.signals();
    assert_eq!(scene.lost.len(), 2);
}

#[test]
fn readers_do_not_notify_watchers() {
    let mut scene = watched();
    scene.request(1_000_000, 3, Access::Read);
    scene.request(1_000_000, 4, Access::Read);
    scene.run();
    assert_eq!(scene.lost, []);
}

#[test]
fn an_ended_watch_is_not_notified() {
    let mut scene = watched();
    scene.cache.unwatch(1, 0);
    scene.request(1_000_000, 0, Access::Write);
    scene.run();
    assert_eq!(scene.lost, [(2, 1_035_000)]);
}

/// A store that hits invalidates no copy, but the sibling sees it once it has taken effect. Fails
/// where `access` notifies the sibling at once, or `changed` notifies no watcher.
#[test]
fn siblings_are_notified_when_a_change_takes_effect() {
    let mut scene = Scene::new(&machine());
    scene.request(0, 0, Access::Write);
    scene.run();
    // vCPU 9 is on core 0 as well.
    assert!(scene.cache.watch(0, 0, 0) && scene.cache.watch(9, 0, 0));
    let before = scene.cache.changes(0);
    scene.request(1_000_000, 0, Access::Locked);
    assert_eq!(scene.run(), [(0, 1_008_000)]);
    assert_eq!((scene.lost.len(), scene.cache.changes(0)), (0, before));
    scene.cache.changed(0, 0);
    scene.signals();
    assert_eq!(
        (&scene.lost[..], scene.cache.changes(0)),
        (&[(9, 1_004_800)][..], before + 1)
    );
}
