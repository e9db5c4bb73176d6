use super::*;
use crate::measure;
use crate::plan::Plan;
use crate::registry::{Family, select};
use crate::workload::Workload;

/// The report of a round with that lock, and its operations: six vCPUs on two CPUs, no other load.
fn round(lock: &str) -> (Report, u64) {
    guests(1, lock, Workload::micro(95.0, 0.0))
}

/// The same of a workload in so many guests of six vCPUs each.
fn guests(guests: usize, lock: &str, workload: Workload) -> (Report, u64) {
    let machine = Machine::named("e5-2699v3:cores=2").unwrap();
    let world =
        Simulated::new(machine, Host::named("kvm").unwrap(), 1, Arc::default()).in_guests(guests);
    let cell = cell(&world, lock, workload, 6 * guests);
    (cell.reports[0].clone(), cell.samples[0].total())
}

fn cell(world: &Simulated, lock: &str, workload: Workload, vcpus: usize) -> measure::Cell {
    let locks = match lock {
        "none" => vec![Family::Exclusive.limit().unwrap()],
        lock => select(Family::Exclusive, [lock]).unwrap(),
    };
    let plan = Plan {
        locks,
        threads: vec![vcpus],
        runs: 1,
        latency_runs: 0,
        round: Duration::from_millis(20),
        stretch: 1.0,
        pin: false,
        stat: false,
        deadline: None,
    };
    let ignore = |_, _, _| {};
    let measurement = measure::run(world, &workload, &plan, 2.0, ignore).unwrap();
    measurement.cells.into_iter().next().unwrap()
}

/// An owner that loses its CPU lets all others wait, and that time counts.
#[test]
fn a_rate_has_the_time_in_which_the_owner_is_preempted() {
    let rate = |vcpus| {
        let machine = Machine::named("e5-2699v3:cores=2").unwrap();
        let world = Simulated::new(machine, Host::threads(), 1, Arc::default());
        let cell = cell(&world, "unfair", Workload::micro(2_000.0, 0.0), vcpus);
        cell.samples[0].ops_per_sec()
    };
    let [once, twice] = [2, 4].map(rate);
    assert!(twice < 0.8 * once, "{twice} of {once}");
}

#[test]
fn both_modes_of_the_hybrid_lock_are_counted() {
    let (report, operations) = guests(1, "hybrid", Workload::micro(95.0, 500.0));
    let (queued, unfair) = report.modes;
    assert!(queued > 10 && unfair > 10, "{queued} and {unfair}");
    // All others found it free. Each of the six vCPUs may have lost its CPU before it counts one.
    assert!(queued + unfair <= operations + 6, "{queued} and {unfair}");
}

/// Fails where guests share a site: the work would be that of one.
#[test]
fn each_guest_builds_by_itself() {
    let build = Workload::Build {
        cs: 300.0,
        ncs: 25_000.0,
    };
    let [(one, operations), (three, threefold)] =
        [1, 3].map(|count| guests(count, "ticket", build));
    assert!((operations * 29 / 10..operations * 31 / 10).contains(&threefold));
    assert!(three.elapsed > one.elapsed * 5 / 2);
}

/// Without a lock the measured time begins at once, when some vCPUs have not had a CPU. Fails where
/// nothing is said of that.
#[test]
fn the_limit_says_whether_it_has_settled() {
    let machine = Machine::named("e5-2699v3:cores=2").unwrap();
    let world = Simulated::new(machine, Host::threads(), 1, Arc::default());
    for (vcpus, settled) in [(2, true), (6, false)] {
        let cell = cell(&world, "none", Workload::micro(95.0, 0.0), vcpus);
        assert_eq!(cell.reports[0].settled, Some(settled), "{vcpus} vCPUs");
        assert_eq!(cell.reports[0].warm_up, Duration::ZERO);
    }
}

/// Sections of 15 ms, of which the first may have begun before the round. Fails where later ones
/// count, or their CPU time.
#[test]
fn what_ends_after_the_round_does_not_count() {
    let micro = Workload::micro(15e6, 0.0);
    let (report, operations) = guests(1, "ticket", micro);
    let most = report.elapsed.as_millis() as u64 / 15 + 1;
    assert!(operations <= most, "{operations} of {most}");
    let account = report
        .accounts
        .iter()
        .fold(Account::default(), |mut sum, account| {
            sum.add(account);
            sum
        });
    assert!(
        account.on_cpu().duration() <= 2 * report.elapsed,
        "{account:?}"
    );
    assert_eq!(account.total().duration(), 6 * report.elapsed);
}

#[test]
fn a_panic_is_an_error_of_the_lock() {
    let machine = Machine::named("e5-2699v3:cores=2").unwrap();
    let world = Simulated::new(machine, Host::named("kvm").unwrap(), 1, Arc::default());
    let workers = |threads| Workers {
        lock: "test",
        threads,
        pin: false,
        stop_after: Duration::from_millis(1),
        measured: Part::Warm,
    };
    let body = |worker: &SimulatedWorker| assert!(worker.index() != 1, "one too many");
    let ended = world.run(&workers(3), &body);
    assert_eq!(ended.unwrap_err().to_string(), "panicked: one too many");
    // The next one is not disturbed.
    assert!(world.run(&workers(1), &body).is_ok());
}

#[test]
fn a_lock_without_a_queue_has_no_modes() {
    assert_eq!(round("ticket").0.modes, (0, 0));
}
