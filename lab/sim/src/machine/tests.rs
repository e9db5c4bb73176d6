//! Topologies, and parts of machines.

use super::*;

/// Four sockets at the corners of a square, of four cores each. Only the order of concurrent
/// requests is random. A transfer within a socket takes 60 ns: 20 for the request, 15 for the snoop
/// and 25 for the data. All costs that are divided like that are multiples of 12 ns, so that there
/// is no rounding.
pub(crate) fn plain() -> Machine {
    plain_but("")
}

/// The same with other keys.
pub(crate) fn plain_but(keys: &str) -> Machine {
    let all = "base='barcelona':threads_per_core=1:inclusive=true:hit=2:\
               locked=8:cluster=24:socket=60:shared=20:across=120:hop=36:gap=11:memory=96:turn=5:\
               snoop=0.25:jitter=0:ring=0:sibling=0.5";
    let text = format!("plain.toml:{keys}");
    let file = |_: &str| Ok(all.replace(':', "\n"));
    spec::read_in(text.trim_end_matches(':'), &[], file).expect("a machine")
}

/// The rows of a text that are neither empty nor comments.
pub(crate) fn rows(text: &str) -> impl Iterator<Item = &str> {
    let is_row = |row: &&str| !row.is_empty() && !row.starts_with('#');
    text.lines().filter(is_row)
}

/// Two sockets of three clusters, each of four cores with two threads.
fn clustered() -> Machine {
    Machine {
        sockets: 2,
        clusters: 3,
        cores: 12,
        threads: 2,
        ..plain()
    }
}

/// Fails where `transfer` compares the clusters of different sockets, takes a socket for a cluster,
/// or forgets a hop.
#[test]
fn a_transfer_costs_more_between_clusters_and_most_between_sockets() {
    let costs = |machine: Machine, cores: &[usize]| -> Vec<u64> {
        let cost = |&core: &usize| machine.transfer(machine.place_of(1), machine.place_of(core));
        cores.iter().map(|core| cost(core).as_ns()).collect()
    };
    let cores = [0, 3, 4, 11, 12, 23];
    let machine = clustered();
    assert_eq!(costs(machine.clone(), &cores), [24, 24, 60, 60, 120, 120]);
    let whole = Machine {
        clusters: 1,
        ..machine
    };
    assert_eq!(costs(whole, &cores), [60, 60, 60, 60, 120, 120]);
    assert_eq!(costs(plain(), &[3, 4, 8, 12]), [60, 120, 120, 156]);
}

/// Sockets, clusters, cores and threads have their numbers in this order; threads come last.
#[test]
fn a_last_level_cache_belongs_to_a_cluster() {
    let machine = clustered();
    let place = machine.place_of(17);
    assert_eq!((place.socket, place.cluster), (1, 1));
    assert_eq!(machine.cores_of(place), 16..20);
    assert_eq!((machine.core_of(41), machine.cpus()), (17, 48));
    assert!(machine.cpus_of(17).eq([17, 41]));
    assert!(machine.cpus_sharing(17).eq((16..20).chain(40..44)));
    let places = machine.places().map(|place| machine.cores_of(place).start);
    assert!(places.eq([0, 4, 8, 12, 16, 20]));
}
