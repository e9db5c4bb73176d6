//! Durations of accesses.

use super::*;

/// 32,000 + 24,000 + 40,000 ps from memory, and a hit. Fails without one of the three parts.
#[test]
fn the_first_access_is_served_from_memory() {
    let mut scene = Scene::new(&machine());
    scene.request(0, 5, Access::Read);
    assert_eq!(scene.run(), [(5, 96_000 + 2_000)]);
    // The core owns it now, so a locked instruction has the cost of an owned line.
    scene.request(200_000, 5, Access::Locked);
    assert_eq!(scene.run(), [(5, 208_000)]);
    let traffic = scene.cache.traffic();
    assert_eq!(
        (traffic.hits, traffic.memory, traffic.near, traffic.far),
        (1, 1, 0, 0)
    );
}

/// A line that core 0 has changed, read from elsewhere: 20,000 + 15,000 + 25,000 ps on its socket,
/// 40,000 + 30,000 + 50,000 one hop away, and 52,000 + 39,000 + 65,000 two hops away; and a hit.
#[test]
fn a_changed_line_comes_from_its_owner() {
    for (core, transfer) in [(1, 60_000), (4, 120_000), (8, 120_000), (12, 156_000)] {
        let mut scene = Scene::new(&machine());
        scene.request(0, 0, Access::Write);
        scene.request(500_000, core, Access::Read);
        let done = scene.run();
        assert_eq!(done, [(0, 98_000), (core, 500_000 + transfer + 2_000)]);
        // Both may read it now, neither may write it.
        assert!([0, core].map(|core| scene.cache.has(0, core, Access::Read)) == [true; 2]);
        assert!([0, core].map(|core| scene.cache.has(0, core, Access::Write)) == [false; 2]);
        let traffic = scene.cache.traffic();
        assert_eq!(
            (traffic.near, traffic.far),
            if core == 1 { (1, 0) } else { (0, 1) }
        );
    }
}

/// Cores 0, and 1 on its socket or another, share the line. An exclusive access of core 0 takes the
/// time of a transfer from the other core, and a locked instruction.
#[test]
fn an_upgrade_waits_for_the_most_distant_copy() {
    for (other, transfer) in [(1, 60_000), (4, 120_000), (12, 156_000)] {
        let mut scene = Scene::new(&machine());
        scene.request(0, 0, Access::Read);
        scene.request(500_000, 2, Access::Read);
        scene.request(700_000, other, Access::Read);
        scene.run();
        scene.request(1_000_000, 0, Access::Locked);
        assert_eq!(scene.run(), [(0, 1_000_000 + transfer + 8_000)]);
        assert!(scene.cache.has(0, 0, Access::Write));
        assert!([2, other].map(|core| scene.cache.has(0, core, Access::Read)) == [false; 2]);
    }
}

/// The last-level cache has the line. The requests of cores 2 and 3 arrive there after 10,000 ps.
/// One is answered at once, the other a gap of 11,000 ps later; the data travel for 10,000 ps.
/// Fails where the second waits for the answer to the first, or is answered at the same time.
#[test]
fn readers_are_served_one_gap_apart() {
    let mut scene = Scene::new(&machine());
    scene.request(0, 0, Access::Write);
    scene.request(500_000, 1, Access::Read);
    scene.run();
    scene.request(1_000_000, 2, Access::Read);
    scene.request(1_000_000, 3, Access::Read);
    let done = scene.run();
    assert_eq!([done[0].1, done[1].1], [1_022_000, 1_033_000]);
    let mut who = [done[0].0, done[1].0];
    who.sort_unstable();
    assert_eq!(who, [2, 3]);
}

/// Core 1 requests the line at 500,000. The request is at the last-level cache 20,000 ps later, and
/// the snoop at core 0 after another 15,000. Until then core 0 hits. Its own request then waits
/// until core 1 is done, at 500,000 + 60,000 + 8,000, and for a snoop and the data. Fails with
/// other shares of a transfer.
#[test]
fn the_owner_goes_on_until_the_snoop_arrives() {
    let mut scene = Scene::new(&machine());
    scene.request(0, 0, Access::Write);
    scene.request(500_000, 1, Access::Locked);
    scene.request(532_999, 0, Access::Write);
    scene.request(535_001, 0, Access::Read);
    let done = scene.run();
    assert_eq!(done[1], (0, 534_999));
    assert_eq!(done[2], (1, 568_000));
    assert_eq!(done[3], (0, 568_000 + 40_000 + 2_000));
}

/// As above, but core 0 is in the middle of a store when the snoop comes: the data leave after it,
/// at 536,000. Fails where `serve` ignores `used`, or a store that hits does not set it.
#[test]
fn a_store_that_is_under_way_ends_before_the_line_leaves() {
    let mut scene = Scene::new(&machine());
    scene.request(0, 0, Access::Write);
    scene.request(500_000, 1, Access::Locked);
    scene.request(534_000, 0, Access::Write);
    let done = scene.run();
    assert_eq!(done[1], (0, 536_000));
    assert_eq!(done[2], (1, 536_000 + 25_000 + 8_000));
}

/// The snoop of core 1 is at core 0 at 535,000. A locked instruction of core 0 that began at
/// 530,100 has had the line locked for 100 ps by then, and ends at 538,100: the data leave after
/// it. Fails where `keep` does nothing.
#[test]
fn a_locked_instruction_keeps_a_line_that_it_has_locked() {
    let mut scene = Scene::new(&machine());
    scene.request(0, 0, Access::Write);
    scene.request(500_000, 1, Access::Locked);
    scene.request(530_100, 0, Access::Locked);
    let done = scene.run();
    assert_eq!(done[1], (0, 538_100));
    assert_eq!(done[2], (1, 538_100 + 25_000 + 8_000));
}

/// An instruction that begins 200 ps later has not locked the line yet: the line leaves at 535,000.
/// Core 0 requests it again at 535,100, and is served after core 1, which is done at 568,000.
#[test]
fn a_locked_instruction_that_loses_its_line_begins_again() {
    let mut scene = Scene::new(&machine());
    scene.request(0, 0, Access::Write);
    scene.request(500_000, 1, Access::Locked);
    scene.request(530_300, 0, Access::Locked);
    let done = scene.run();
    assert_eq!(done[1], (1, 568_000));
    assert_eq!(done[2], (0, 568_000 + 40_000 + 8_000));
}

/// A store of core 0's other thread that ends before the locked instruction of the first does not
/// release the line earlier.
#[test]
fn a_short_store_does_not_unlock_a_line() {
    let mut scene = Scene::new(&machine());
    scene.request(0, 0, Access::Write);
    scene.request(500_000, 1, Access::Locked);
    scene.request(530_100, 0, Access::Locked);
    scene.request(534_950, 0, Access::Write);
    let done = scene.run();
    assert_eq!(done[1..3], [(0, 538_100), (0, 536_950)]);
    assert_eq!(done[3], (1, 538_100 + 25_000 + 8_000));
}

/// Caches that are not inclusive need a snoop for each copy. Both requests are there at 1,020,000;
/// the first is answered after a snoop and the data, the second only after the first is done.
#[test]
fn readers_of_caches_that_are_not_inclusive_wait_for_each_other() {
    let mut scene = Scene::new(&Machine {
        inclusive: false,
        ..machine()
    });
    scene.request(0, 0, Access::Write);
    scene.request(500_000, 1, Access::Read);
    scene.run();
    scene.request(1_000_000, 2, Access::Read);
    scene.request(1_000_000, 3, Access::Read);
    let done = scene.run();
    let first = 1_020_000 + 15_000 + 25_000 + 2_000;
    assert_eq!([done[0].1, done[1].1], [first, first + 42_000]);
}

/// Core 0 has changed the line, so the read of core 1 takes it over: its store hits, and core 0 has
/// to request it. Core 1 has not changed it when core 2 reads it, so these two share it. Fails
/// where all reads share, or all take over.
#[test]
fn a_migratory_read_takes_over_a_changed_line() {
    let migratory = Machine {
        migratory: true,
        ..machine()
    };
    let mut scene = Scene::new(&migratory);
    scene.request(0, 0, Access::Write);
    scene.run();
    scene.cache.changed(0, 0);
    scene.request(500_000, 1, Access::Read);
    assert_eq!(scene.run(), [(1, 562_000)]);
    let writes = |scene: &Scene| [0, 1, 2].map(|core| scene.cache.has(0, core, Access::Write));
    assert_eq!(writes(&scene), [false, true, false]);
    assert!(!scene.cache.has(0, 0, Access::Read));
    scene.request(700_000, 2, Access::Read);
    scene.run();
    assert_eq!(writes(&scene), [false; 3]);
    scene.request(900_000, 1, Access::Write);
    scene.run();
    scene.cache.changed(0, 1);
    scene.request(1_100_000, 2, Access::Read);
    scene.run();
    assert_eq!(writes(&scene), [false, false, true]);
}

/// The line of a buffered store arrives as that of any store: after 60,000 ps and a hit. Core 0
/// reads it until the snoop comes, at 1,035,000. Its next request arrives at 1,060,000, and is
/// served after the store.
#[test]
fn a_buffered_store_requests_its_line() {
    let mut scene = Scene::new(&machine());
    scene.request(0, 0, Access::Write);
    scene.run();
    scene.buffers = true;
    scene.request(1_000_000, 1, Access::Write);
    scene.request(1_030_000, 0, Access::Read);
    scene.request(1_040_000, 0, Access::Read);
    let done = scene.run();
    assert_eq!(done[..2], [(1, 1_002_000), (0, 1_032_000)]);
    assert_eq!(scene.owned, [(1, 1_062_000)]);
    assert_eq!(done[2], (0, 1_062_000 + 40_000 + 2_000));
}

/// Three cores request the line at once. The first has it after a transfer; each further one when
/// its predecessor is done, plus a snoop and the data: requests travel while others are served.
#[test]
fn a_contended_line_goes_from_core_to_core() {
    let mut scene = Scene::new(&machine());
    scene.request(0, 0, Access::Write);
    (1..4).for_each(|core| scene.request(500_000, core, Access::Locked));
    let done = scene.run();
    let first = 500_000 + 60_000 + 8_000;
    let ends: Vec<u64> = done[1..].iter().map(|&(_, at)| at).collect();
    assert_eq!(ends, [first, first + 48_000, first + 2 * 48_000]);
}

/// The line goes from socket 0 to core 4, of socket 1. Core 5, which waits there, is near to it
/// then: its request has arrived long ago. That of core 1 has to follow the line: it travels again
/// from when the line has arrived. Fails where `arrival` ignores `since`.
#[test]
fn requests_follow_the_line() {
    let mut scene = Scene::new(&machine());
    scene.request(0, 0, Access::Write);
    scene.request(500_000, 4, Access::Locked);
    // Requested after the line has been granted to core 4, at 540,000.
    scene.request(545_000, 5, Access::Locked);
    scene.request(545_000, 1, Access::Locked);
    let done = scene.run();
    // Core 4: 120,000, and a locked instruction. Then core 5, whose snoop and data take 40,000.
    assert_eq!(done[1..3], [(4, 628_000), (5, 676_000)]);
    // The line has been on socket 1 since 620,000, so the request of core 1 arrives at 660,000,
    // while core 5 is served. Its snoop and data take 80,000.
    assert_eq!(done[3], (1, 676_000 + 80_000 + 8_000));
}

/// A request that has to follow the line arrives later.
#[test]
fn a_request_that_follows_comes_late() {
    let mut scene = Scene::new(&machine());
    scene.request(0, 0, Access::Write);
    scene.request(500_000, 4, Access::Locked);
    scene.request(545_000, 1, Access::Locked);
    let done = scene.run();
    // It arrives at 620,000 + 40,000, though no request is served after 628,000.
    assert_eq!(done[1..], [(4, 628_000), (1, 660_000 + 80_000 + 8_000)]);
}

/// A line half of the ring away takes half as long again, and an adjacent one half as long. The
/// request and the data go that way, the snoop does not.
#[test]
fn distance_on_the_ring_takes_time() {
    let mut ring = machine();
    ring.costs.ring = 0.5;
    let mut cache = Cache::new(&ring, 1);
    let line = cache.line(0);
    let slice = cache.lines[line].slice;
    let ways = [0, 1, 2, 3].map(|core| cache.sites.way(core, slice));
    assert_eq!(
        ways.map(|way| ways.iter().filter(|&&other| other == way).count())
            .iter()
            .max(),
        Some(&2)
    );
    for (core, way) in ways.into_iter().enumerate().skip(1) {
        let mut scene = Scene::new(&ring);
        scene.request(0, 0, Access::Write);
        scene.request(500_000, core, Access::Read);
        let travels = (45_000.0 * way) as u64;
        assert_eq!(scene.run()[1], (core, 500_000 + travels + 15_000 + 2_000));
    }
}

/// Fails where the set of a socket's cores is built by shifting 1 by their number.
#[test]
fn a_socket_may_have_all_cores() {
    let large = Machine {
        sockets: 1,
        cores: MOST_CORES,
        ..machine()
    };
    let mut scene = Scene::new(&large);
    scene.request(0, 0, Access::Write);
    scene.request(500_000, MOST_CORES - 1, Access::Read);
    scene.request(700_000, 64, Access::Read);
    assert_eq!(scene.run()[1..], [(MOST_CORES - 1, 562_000), (64, 722_000)]);
}

/// One socket of two clusters, each of two cores. A transfer takes 60 ns between clusters, and 24
/// ns within one: 8 for the request, 6 for the snoop and 10 for the data.
fn clusters(last_level: Level) -> Machine {
    Machine {
        sockets: 1,
        clusters: 2,
        last_level,
        costs: Costs {
            cluster: Time::ns(24),
            ..machine().costs
        },
        ..machine()
    }
}

/// Core 0 has changed the line.
fn changed_by_core_0(machine: &Machine) -> Scene {
    let mut scene = Scene::new(machine);
    scene.request(0, 0, Access::Write);
    scene.run();
    scene.cache.changed(0, 0);
    scene
}

/// Fails where `transfer` is asked for sockets only, or the home of a line is not its owner's.
#[test]
fn a_line_comes_faster_from_its_own_cluster() {
    for last_level in [Level::Cluster, Level::Socket] {
        let machine = clusters(last_level);
        for (core, takes) in [(1, 24_000), (2, 60_000)] {
            let mut scene = changed_by_core_0(&machine);
            scene.request(500_000, core, Access::Write);
            assert_eq!(scene.run(), [(core, 500_000 + takes + 2_000)]);
            assert_eq!(scene.cache.traffic().near, 1);
        }
    }
}

/// Cores 0 and 1 share the line. A cache of their cluster answers only their cluster; that of the
/// socket answers all cores, after 20 ns.
#[test]
fn a_last_level_cache_answers_the_cores_that_share_it() {
    for (last_level, takes) in [(Level::Cluster, 60_000), (Level::Socket, 20_000)] {
        let mut scene = changed_by_core_0(&clusters(last_level));
        scene.request(500_000, 1, Access::Read);
        scene.run();
        scene.request(700_000, 2, Access::Read);
        assert_eq!(scene.run(), [(2, 700_000 + takes + 2_000)]);
        // Now both clusters have it.
        scene.request(900_000, 3, Access::Read);
        assert_eq!(scene.run(), [(3, 922_000)]);
    }
}

/// All copies are in the cluster of the writer, or one is in the other cluster.
#[test]
fn a_store_invalidates_the_copies_of_all_clusters() {
    for (reader, takes) in [(1, 24_000), (2, 60_000)] {
        let mut scene = changed_by_core_0(&clusters(Level::Cluster));
        scene.request(500_000, reader, Access::Read);
        scene.run();
        scene.request(700_000, 0, Access::Write);
        assert_eq!(scene.run(), [(0, 700_000 + takes + 2_000)]);
    }
}

/// Core 0 has the line; cores 1 and 2 request it, then core 0 again. The request of core 1 is there
/// first, at 508,000, and the line leaves for it at 514,000 and arrives at 524,000. The request of
/// core 2 is there at 521,000 and is served at 526,000, when the store is over. Its line leaves at
/// 541,000 and arrives at 566,000. If that is another last-level cache, the request of core 0
/// follows it for 20 ns. If it is not, the request is served once core 2 is done, at 568,000. Fails
/// where requests follow a line that does not leave their last-level cache.
#[test]
fn requests_follow_a_line_to_another_last_level_cache() {
    for (last_level, served) in [(Level::Cluster, 586_000), (Level::Socket, 568_000)] {
        let mut scene = changed_by_core_0(&clusters(last_level));
        scene.request(500_000, 1, Access::Write);
        scene.request(501_000, 2, Access::Write);
        scene.request(540_000, 0, Access::Write);
        let done = [(1, 526_000), (2, 568_000), (0, served + 40_000 + 2_000)];
        assert_eq!(scene.run(), done);
    }
}
