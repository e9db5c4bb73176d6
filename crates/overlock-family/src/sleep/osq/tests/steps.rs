//! Every interleaving of the steps of some threads at one queue: a head that unlocks, adjacent
//! waiters that may leave at any time, and one that arrives.
//!
//! Each step is one of the lock's own functions that changes one word, or C. A step that can do
//! nothing yet (the lock would poll again) is not taken. So each run ends: with all threads gone
//! and the queue empty, or with a thread that waits for ever.

use std::collections::HashSet;

use super::*;

const MOST: usize = 6;

/// The place of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum At {
    Outside,
    Arrived(NodeId),
    /// Waits; it leaves by step A.
    Waits,
    A(NodeId),
    B(NodeId, NodeId),
    Head,
    /// Has taken its successor and not handed off yet.
    Unlocks(NodeId),
    Gone,
}

/// The words that the threads have written, and their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Scene {
    tail: u16,
    next: [u32; MOST],
    wait: [u32; MOST],
    threads: [At; MOST],
}

struct Fixture {
    queue: Queue,
    guards: Vec<NodeGuard<Toy>>,
}

impl Fixture {
    fn set(&self, scene: &Scene) {
        self.queue.tail.store(scene.tail, Relaxed);
        for (thread, guard) in self.guards.iter().enumerate() {
            guard.node().next.store(scene.next[thread], Relaxed);
            guard.node().wait.store(scene.wait[thread], Relaxed);
        }
    }

    fn scene(&self, threads: [At; MOST]) -> Scene {
        let mut scene = Scene {
            tail: self.queue.tail.load(Relaxed),
            next: [0; MOST],
            wait: [0; MOST],
            threads,
        };
        for (thread, guard) in self.guards.iter().enumerate() {
            scene.next[thread] = guard.node().next.load(Relaxed);
            scene.wait[thread] = guard.node().wait.load(Relaxed);
        }
        scene
    }

    /// B and unlock; `None` where there is nothing to do yet.
    fn detach(&self, id: NodeId, before: u16) -> Option<Option<NodeId>> {
        if self.queue.retreat(id, before) {
            return Some(None);
        }
        Osq::<Toy>::take_next(id).map(Some)
    }

    /// The next step of `thread`, if it can take one.
    fn step(&self, thread: usize, place: At) -> Option<At> {
        let guard = &self.guards[thread];
        let wait = guard.node().wait.load(Relaxed);
        Some(match place {
            At::Outside => self.queue.arrive(guard).map_or(At::Head, At::Arrived),
            At::Arrived(before) => {
                Osq::link(guard, before);
                At::Waits
            }
            At::Waits if wait == OURS => At::Head,
            At::Waits => {
                Osq::<Toy>::unlink(guard.id(), wait).then_some(())?;
                At::A(name(wait)?)
            }
            At::A(before) => match self.detach(guard.id(), before.bits())? {
                Some(after) => At::B(before, after),
                None => At::Gone,
            },
            At::B(before, after) => {
                Osq::<Toy>::relink(before, after);
                At::Gone
            }
            At::Head => self.detach(guard.id(), 0)?.map_or(At::Gone, At::Unlocks),
            At::Unlocks(after) => {
                after.node::<Toy>().wait.store(OURS, Release);
                At::Gone
            }
            At::Gone => return None,
        })
    }

    fn explore(&self, start: Scene) -> usize {
        let mut known = HashSet::from([start]);
        let mut open = std::vec![start];
        while let Some(scene) = open.pop() {
            let heads = scene.threads.iter().filter(|at| **at == At::Head);
            assert!(heads.count() <= 1, "two heads: {scene:?}");
            let mut ended = true;
            for thread in 0..self.guards.len() {
                self.set(&scene);
                if let Some(place) = self.step(thread, scene.threads[thread]) {
                    ended = false;
                    let mut threads = scene.threads;
                    threads[thread] = place;
                    let scene = self.scene(threads);
                    if known.insert(scene) {
                        open.push(scene);
                    }
                }
            }
            if ended {
                assert_eq!(
                    scene.threads,
                    [At::Gone; MOST],
                    "they wait for ever: {scene:?}"
                );
                assert_eq!(scene.tail, 0, "{scene:?}");
            }
        }
        known.len()
    }
}

/// Fails with each change to A, B, C and unlock that the other tests name. Also fails where C
/// stores only one of its two words, and where an unlock or B does not try both ways.
#[test]
fn all_leave_and_there_is_one_head_at_a_time_in_every_interleaving() {
    let waiters = if cfg!(miri) { 1 } else { 3 };
    let queue = leak();
    let first = as_thread(0, || NodeGuard::new().unwrap());
    assert!(queue.join(&first));
    let mut guards = std::vec![first];
    guards.extend((1..=waiters).map(|thread| waiter(thread, queue)));
    guards.push(as_thread(waiters + 1, || NodeGuard::new().unwrap()));
    let mut threads = [At::Gone; MOST];
    threads[0] = At::Head;
    threads[1..=waiters].fill(At::Waits);
    threads[waiters + 1] = At::Outside;
    let fixture = Fixture { queue, guards };
    let scenes = fixture.explore(fixture.scene(threads));
    assert!(scenes > 20, "{scenes}");
}
