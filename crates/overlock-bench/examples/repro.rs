//! Throw-away.
use overlock_bench::reproduce::{Options, TABLES};
use std::sync::Arc;
fn main() {
    let a: Vec<String> = std::env::args().skip(1).collect();
    let options = Options { length: a[1].parse().unwrap(), seed: 1, jobs: 2, interrupt: Arc::default() };
    for t in TABLES { if a[0] != "all" && !a[0].split(',').any(|n| n == t.name) { continue; }
        let began = std::time::Instant::now();
        println!("== {}", t.name);
        match t.reproduce(&options, |_| {}) { Err(e) => println!("{e:?}"), Ok(v) => {
            for l in &v.lines { println!("{:26} {:34} {:14.3} {:14.3} {:6.3} {}", l.place, l.what, l.measured, l.published, l.ratio, match l.reached { Some(true) => "ok", Some(false) => "MISS", None => "" }); }
            for c in &v.claims { println!("  {} {}", if c.holds {"holds"} else {"FAILS"}, c.what); }
            println!("  reached {:?} held {:?} in {:.1?}", v.reached(), v.held(), began.elapsed());
        } }
    }
}
