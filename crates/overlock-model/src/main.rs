//! x
fn main() {
    use overlock_model::explore::{
        Explorer,
        exec::Rules,
        search::{Mode, search},
    };
    let dep: u32 = std::env::args().nth(1).unwrap().parse().unwrap();
    let max: u64 = std::env::args().nth(2).unwrap().parse().unwrap();
    let only = std::env::args().nth(3);
    for lock in overlock_model::list::locks::<Explorer>() {
        if only.as_deref().is_some_and(|only| only != lock.name) {
            continue;
        }
        for scenario in &lock.scenarios {
            for weak in [true] {
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
                    max,
                    move || body(),
                );
                match result {
                    Ok(d) => println!(
                        "{} {} {} {} {} {:?}",
                        lock.name,
                        scenario.name,
                        d.executions,
                        d.complete,
                        d.longest,
                        start.elapsed()
                    ),
                    Err(f) => {
                        println!("FAILED {} {}: {f}", lock.name, scenario.name);
                        if only.is_some() {
                            println!("{}", f.trace.join("\n"));
                            return;
                        }
                    }
                }
            }
        }
    }
}
