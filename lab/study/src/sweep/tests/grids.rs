//! Valid grids.

use overlock_sim::machine::Machine;

use super::*;

#[test]
fn grids_have_each_thing_once_and_no_peers() {
    let twice = Grid {
        vcpus: [4, 200, 4].map(Load::Vcpus).into(),
        ..grid(&[4], 2)
    };
    let twice = twice.check().unwrap();
    assert_eq!(twice.vcpus, [4, 200].map(Load::Vcpus));
    // The small ticket takes 127 at most.
    assert_eq!(
        twice.limited().collect::<Vec<_>>(),
        [("pv_ticket_small", 127)]
    );
    assert_eq!(twice.points().len(), 2 * 2 * (3 + 2));

    let peer = Grid {
        locks: locks(&["std"]),
        ..grid(&[4], 2)
    };
    let peer = peer.check().unwrap_err().to_string();
    assert_eq!(peer, "std does not run on a simulated machine");
}

/// The machines have 36 CPUs and 16.
#[test]
fn levels_of_overcommit_depend_on_the_machine() {
    let grid = Grid {
        vcpus: vec![
            Load::Overcommit(0.25),
            Load::Overcommit(4.0),
            Load::Vcpus(9),
        ],
        ..grid(&[4], 1)
    };
    let grid = grid.check().unwrap();
    let mut vcpus: Vec<usize> = grid.points().iter().map(|point| point.vcpus).collect();
    vcpus.dedup();
    assert_eq!(vcpus, [9, 144, 4, 64, 9]);
    assert_eq!(grid.limited().count(), 1);
    assert_eq!(grid.names().grid().unwrap().vcpus, grid.vcpus);
}

#[test]
fn grids_survive_as_names() {
    let changed = [
        "barcelona:socket=60ns",
        "barcelona:sockets=2:hop=0ns:cores=6",
    ];
    let grid = Grid {
        machines: changed.map(|name| Machine::named(name).unwrap()).into(),
        hosts: vec![Host::threads(), Host::named("kvm:poll=0ns").unwrap()],
        ..grid(&[4, 8], 2)
    };
    let again = grid.names().grid().unwrap();
    assert_eq!(again.names(), grid.names());
    assert_eq!(again.machines, grid.machines);
    assert_eq!(again.hosts, grid.hosts);
    assert_eq!(grid.points().last().unwrap().key().machine, changed[1]);
    assert_eq!(again.round, grid.round);
}
