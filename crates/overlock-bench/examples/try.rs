//! Throw-away.
use overlock_bench::measure::{self};
use overlock_bench::plan::Plan;
use overlock_bench::registry::{Family, select};
use overlock_bench::workload::Workload;
use overlock_bench::world::sim::Simulated;
use overlock_sim::account::State;
use overlock_sim::host::Host;
use overlock_sim::machine::Machine;
use std::sync::Arc;
use std::time::Duration;
fn main() {
    let a: Vec<String> = std::env::args().skip(1).collect();
    let mut machine = Machine::preset(&a[0]).unwrap().clone();
    for (k, v) in std::env::vars() {
        let t = || overlock_sim::Time::from_ns(v.parse().unwrap());
        let c = &mut machine.costs;
        match k.as_str() {
            "C_RING" => c.ring = v.parse().unwrap(),
            "C_GAP" => c.gap = t(),
            "C_SOCKET" => c.socket = t(),
            "C_ACROSS" => c.across = t(),
            "C_SHARED" => c.shared = t(),
            "C_LOCKED" => c.locked = t(),
            "C_TURN" => c.turn = t(),
            "C_JITTER" => c.jitter = v.parse().unwrap(),
            "C_SIBLING" => c.sibling = v.parse().unwrap(),
            "C_HOP" => c.hop = t(),
            _ => {}
        }
    }
    let host = *Host::preset(&a[1]).unwrap();
    let vcpus: Vec<usize> = a[2].split(',').map(|v| v.parse().unwrap()).collect();
    let n = |i: usize| -> f64 { a.get(i).map_or(0.0, |v| v.parse().unwrap()) };
    let ms = n(5);
    let workload = match a[4].as_str() {
        "micro" => Workload::Micro {
            cs: n(6),
            ncs: n(7),
        },
        "semop" => Workload::Semop {
            arrays: if a.len() > 6 { n(6) as usize } else { 4 },
        },
        "qdisc" => Workload::Qdisc,
        "build" => Workload::Build {
            cs: n(6),
            ncs: n(7),
        },
        "fserver" => Workload::Fserver,
        "rw" => Workload::Rw {
            cs: n(6),
            ncs: n(7),
            reads: n(8),
            records: 1,
        },
        "rwsem" => Workload::Rwsem,
        other => panic!("{other}"),
    };
    let locks = select(workload.family(), a[3].split(',')).unwrap();
    for v in vcpus {
        for lock in &locks {
            let world = Simulated::new(machine.clone(), host, 1, Arc::default())
                .beside(std::env::var("OTHERS").map_or(0, |v| v.parse().unwrap()));
            let plan = Plan {
                locks: vec![lock],
                threads: vec![v],
                runs: 1,
                latency_runs: 0,
                round: Duration::from_secs_f64(ms / 1e3),
                stretch: 1.0,
                pin: false,
                stat: false,
                deadline: None,
            };
            let began = std::time::Instant::now();
            match measure::run(
                &world,
                &workload,
                &plan,
                machine.cpus() as f64,
                &mut |_: usize, _: &'static _, _: usize| {},
            ) {
                Err(e) => println!(
                    "{v} {:16} {:?} after {:?}",
                    lock.name,
                    e.error,
                    began.elapsed()
                ),
                Ok(m) => {
                    let s = &m.cells[0].samples[0];
                    let r = &m.cells[0].reports[0];
                    let total = s.total() as f64;
                    let secs = s.elapsed.as_secs_f64();
                    let (mn, mx) = (
                        s.operations.iter().min().unwrap(),
                        s.operations.iter().max().unwrap(),
                    );
                    let all: f64 = State::ALL.iter().map(|&st| r.time(st).as_secs_f64()).sum();
                    let shares: Vec<String> = State::ALL
                        .iter()
                        .map(|&st| {
                            format!(
                                "{} {:.0}",
                                st.name(),
                                r.time(st).as_secs_f64() / all * 100.0
                            )
                        })
                        .collect();
                    println!(
                        "{v} {:16} {:8.3} Mop/s  {:.4}s min/avg/max {mn}/{:.0}/{mx}  modes {:?} q {:.1}%  {:?} | {} | ev {} wall {:.1?} {:.2} Mop/min",
                        lock.name,
                        total / secs / 1e6,
                        secs,
                        total / v as f64,
                        r.modes,
                        r.modes.0 as f64 * 100.0 / (r.modes.0 + r.modes.1).max(1) as f64,
                        r.counts,
                        shares.join(" "),
                        r.events,
                        began.elapsed(),
                        total / 1e6 / began.elapsed().as_secs_f64() * 60.0
                    );
                }
            }
        }
    }
}
