//! x
fn main() {
    use overlock_model::explore::{
        Explorer,
        exec::Rules,
        search::{Mode, search},
    };
    for lock in overlock_model::list::locks::<overlock_model::shuttle::Shuttle>() {
        for scenario in &lock.scenarios {
            if scenario.setting.signals {
                continue;
            }
            for sch in [
                overlock_model::shuttle::Schedules::Random,
                overlock_model::shuttle::Schedules::Pct(3),
            ] {
                let start = std::time::Instant::now();
                let r = overlock_model::shuttle::check(scenario, sch, 1, 10_000);
                println!(
                    "{} {} {:?} {:?} {:?}",
                    lock.name,
                    scenario.name,
                    sch,
                    r,
                    start.elapsed()
                );
            }
        }
    }
    for lock in overlock_model::list::locks::<overlock_model::loom::Loom>() {
        for scenario in &lock.scenarios {
            if scenario.setting.signals || scenario.threads > 3 {
                continue;
            }
            let start = std::time::Instant::now();
            let r = overlock_model::loom::check(
                scenario,
                overlock_model::loom::Bounds {
                    preemptions: 2,
                    executions: 100_000,
                    time: std::time::Duration::from_secs(10),
                },
            );
            println!(
                "{} {} {:?} {:?}",
                lock.name,
                scenario.name,
                r,
                start.elapsed()
            );
        }
    }
    let dep: u32 = std::env::args().nth(1).unwrap().parse().unwrap();
    for lock in overlock_model::list::locks::<Explorer>() {
        for scenario in &lock.scenarios {
            for weak in [false, true] {
                let s = scenario.setting;
                let rules = Rules {
                    weak,
                    chance: true,
                    tick: s.tick,
                    parallelism: s.parallelism,
                    slots: s.slots,
                    steps: 10_000,
                };
                let body = scenario.body.clone();
                let start = std::time::Instant::now();
                let result = search(
                    Mode::Exhaustive { departures: dep },
                    rules,
                    3_000_000,
                    move || body(),
                );
                println!(
                    "{} {} weak {weak}: {:?} {:?}",
                    lock.name,
                    scenario.name,
                    result
                        .as_ref()
                        .map_err(|f| format!("{f}\n{}", f.trace.join("\n"))),
                    start.elapsed()
                );
            }
        }
        let c = overlock_model::coverage::Coverage::take();
        for d in lock.diagrams {
            for (i, a) in d.arrows.iter().enumerate() {
                println!("{:>10} {a}", c.count(d.name, i));
            }
        }
    }
}
