//! Topologies, and parts of machines.

use super::*;

#[test]
fn hops_follow_the_edges() {
    let square = Machine {
        links: Links::Cube,
        sockets: 4,
        ..PRESETS[0].clone()
    };
    assert_eq!([0, 1, 2, 3].map(|to| square.hops(0, to)), [0, 1, 1, 2]);
    let on = |socket| Place { socket, cluster: 0 };
    assert_eq!(
        square.transfer(on(1), on(2)),
        square.costs.across + square.costs.hop
    );
}

/// Two sockets of three clusters, each of four cores with two threads.
fn clustered(last_level: Level) -> Machine {
    Machine {
        sockets: 2,
        clusters: 3,
        cores: 12,
        threads: 2,
        last_level,
        costs: Costs {
            cluster: Time::ns(20),
            socket: Time::ns(90),
            across: Time::ns(200),
            ..PRESETS[0].costs
        },
        ..PRESETS[0].clone()
    }
}

/// Fails where `transfer` compares the clusters of different sockets, or takes a socket for a
/// cluster.
#[test]
fn a_transfer_costs_more_between_clusters_and_most_between_sockets() {
    let machine = clustered(Level::Cluster);
    let places: Vec<(usize, usize)> = [0, 3, 4, 11, 12, 23]
        .map(|core| machine.place_of(core))
        .map(|place| (place.socket, place.cluster))
        .to_vec();
    assert_eq!(places, [(0, 0), (0, 0), (0, 1), (0, 2), (1, 0), (1, 2)]);
    let costs = [0, 3, 4, 11, 12, 23].map(|core| {
        let cost = machine.transfer(machine.place_of(1), machine.place_of(core));
        cost.as_ns()
    });
    assert_eq!(costs, [20, 20, 90, 90, 200, 200]);
    let whole = Machine {
        clusters: 1,
        ..machine
    };
    let (one, other) = (whole.place_of(1), whole.place_of(11));
    assert_eq!(whole.transfer(one, other), whole.costs.socket);
}

#[test]
fn a_last_level_cache_belongs_to_a_cluster_or_to_a_socket() {
    let machine = clustered(Level::Cluster);
    let place = machine.place_of(17);
    assert_eq!((machine.cores_of(place), place.cluster), (16..20, 1));
    assert_eq!(machine.sharing(place), 16..20);
    assert_eq!(
        machine.cpus_sharing(17).collect::<Vec<_>>(),
        [16, 17, 18, 19, 40, 41, 42, 43]
    );
    let shares = |machine: &Machine, core| machine.share_cache(place, machine.place_of(core));
    assert_eq!(
        [19, 20, 5].map(|core| shares(&machine, core)),
        [true, false, false]
    );
    let machine = clustered(Level::Socket);
    assert_eq!(machine.sharing(place), 12..24);
    assert_eq!(
        [19, 20, 5].map(|core| shares(&machine, core)),
        [true, true, false]
    );
    let places: Vec<_> = machine
        .places()
        .map(|place| machine.cores_of(place))
        .collect();
    assert_eq!(places, [0..4, 4..8, 8..12, 12..16, 16..20, 20..24]);
}

/// A part of one cluster has no clusters, and its transfers cost as before. Fails where the cores
/// of a part are not those of a cluster.
#[test]
fn a_part_has_as_few_clusters_as_possible() {
    let machine = clustered(Level::Cluster);
    let of = |cores: usize| {
        let used = machine.with_cores(cores);
        (used.sockets, used.clusters, used.cores)
    };
    assert_eq!([3, 4].map(of), [(1, 1, 3), (1, 1, 4)]);
    assert_eq!([6, 8, 9].map(of), [(1, 2, 6), (1, 2, 8), (1, 3, 9)]);
    assert_eq!([16, 24].map(of), [(2, 2, 8), (2, 3, 12)]);
    // No number of clusters can share five, seven or fourteen.
    assert_eq!([5, 7, 14].map(of), [(1, 2, 6), (1, 2, 8), (2, 2, 8)]);
    let small = machine.with_cores(4);
    let within = small.transfer(small.place_of(0), small.place_of(3));
    assert_eq!(within, machine.costs.cluster);
}

/// Fails where only the smallest possible number of sockets is tried, or where a socket gets
/// more cores than it has.
#[test]
fn fewer_cores_are_shared_evenly_by_sockets() {
    for machine in PRESETS {
        for cores in 1..=machine.all_cores() {
            let used = machine.with_cores(cores);
            let size = machine.cores / machine.clusters;
            let fits = |parts: usize| cores.is_multiple_of(parts) && cores / parts <= size;
            let exact = (1..=machine.sockets)
                .any(|sockets| (1..=machine.clusters).any(|clusters| fits(sockets * clusters)));
            assert_eq!(used.all_cores() == cores, exact, "{} {cores}", machine.name);
            let parts = used.sockets * used.clusters;
            assert!((cores..cores + parts).contains(&used.all_cores()));
            assert!(used.sockets <= machine.sockets && used.clusters <= machine.clusters);
            assert!(used.cores / used.clusters <= size);
        }
    }
    let of = |name: &str, cores: usize| {
        let used = Machine::preset(name).unwrap().with_cores(cores);
        (used.sockets, used.cores)
    };
    assert_eq!(of("e5-2699v3", 18), (1, 18));
    assert_eq!(of("e5-2699v3", 19), (2, 10));
    assert_eq!(of("e5-2699v3", 20), (2, 10));
    assert_eq!(of("x7560", 15), (3, 5));
}

#[test]
fn siblings_share_a_core() {
    let machine = Machine::preset("e5-2620v4").unwrap();
    assert_eq!(machine.cpus(), 32);
    assert_eq!([0, 8, 16, 24].map(|cpu| machine.core_of(cpu)), [0, 8, 0, 8]);
    assert_eq!(machine.cpus_of(8).collect::<Vec<_>>(), [8, 24]);
    assert_eq!(
        [0, 7, 8, 15].map(|core| machine.place_of(core).socket),
        [0, 0, 1, 1]
    );
}

/// Fails where an EPYC loses its core complexes, or where no preset has 256 CPUs.
#[test]
fn machines_of_today_have_many_cpus() {
    let of = |name: &str| Machine::preset(name).unwrap();
    let cpus = [
        "epyc-9654",
        "xeon-8480",
        "xeon-6962p",
        "graviton3",
        "graviton4",
    ]
    .map(|name| of(name).cpus());
    assert_eq!(cpus, [384, 224, 288, 64, 192]);
    let complex = of("epyc-9654").place_of(17);
    assert_eq!(of("epyc-9654").sharing(complex), 16..24);
}
