//! Random command lines: the program never panics, and what it complains of fits in one line.

use std::ffi::OsString;

use overlock_lab::{Exit, check};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

const OPTIONS: &[&str] = &[
    "--locks",
    "--list",
    "--threads",
    "--overcommit",
    "--cs",
    "--ncs",
    "--arrays",
    "--reads",
    "--hot",
    "--records",
    "--pattern",
    "--seconds",
    "--budget",
    "--runs",
    "--rounds",
    "--latency-rounds",
    "--shapes",
    "--families",
    "--what",
    "--settle",
    "--markdown",
    "--details",
    "--latency-runs",
    "--no-latency",
    "--pin",
    "--quota",
    "--stat",
    "--json",
    "--csv",
    "--svg",
    "--seed",
    "--long-hold",
    "--stutter",
    "--shuffle",
    "--churn",
    "--nest",
    "--patience",
    "--no-signals",
    "--no-boost",
    "--inject",
    "--plan",
    "--machine",
    "--others",
    "--cores",
    "--host",
    "--vcpus",
    "--hypervisor",
    "--ms",
    "--preempted",
    "--hang",
    "--time-limit",
    "--image",
    "--lock",
    "--out",
    "--machines",
    "--hosts",
    "--workloads",
    "--seeds",
    "--shard",
    "--jobs",
    "--by",
    "--keys",
    "--data",
    "--half",
    "--vary",
    "--section",
    "--gap",
    "--report",
    "--show",
    "--quiet",
    "-q",
    "--help",
    "--",
    "-",
];

const WORDS: &[&str] = &[
    "bench",
    "man",
    "completions",
    "help",
    "grid",
    "idle",
    "mutex",
    "65/330",
    "yield,two",
    "micro",
    "semop",
    "qdisc",
    "build",
    "fserver",
    "rw",
    "rwsem",
    "condvar",
    "queue",
    "ping-pong",
    "all",
    "ours",
    "peers",
    "default",
    "overlock",
    "parking_lot",
    "std,glibc",
    "bash",
    "trace",
    "sweep",
    "score",
    "advise",
    "merge",
    "hybrid",
    "kvm-ring3",
    "unknown",
    "barcelona",
    "kvm-2013",
    "1x,2x",
    "0.5x",
    "1",
    "2,32",
    "0",
    "-1",
    "NaN",
    "inf",
    "1e400",
    "18446744073709551616",
    "",
    ",",
    "=",
    "\n",
    "\u{1b}[2J",
    "100",
];

fn word() -> impl Strategy<Value = String> {
    let option = || select(OPTIONS).prop_map(str::to_owned);
    let value = || {
        prop_oneof![
            6 => select(WORDS).prop_map(str::to_owned),
            1 => any::<f64>().prop_map(|number| number.to_string()),
            1 => vec(any::<char>(), 0..8).prop_map(String::from_iter),
        ]
    };
    prop_oneof![
        2 => option(),
        1 => value(),
        3 => (option(), value()).prop_map(|(option, value)| format!("{option}={value}")),
    ]
}

fn line(command: &str, words: Vec<String>) -> Vec<OsString> {
    let start = ["overlock-lab"].into_iter().chain(command.split(' '));
    start
        .map(OsString::from)
        .chain(words.into_iter().map(OsString::from))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_command_line_surprises(
        command in select(&["bench", "bench micro", "bench grid", "bench idle", "torture", "sim", "vm"][..]),
        words in vec(word(), 0..5),
    ) {
        match check(line(command, words)) {
            Err(Exit::Usage(message)) => {
                prop_assert!(!message.is_empty());
                prop_assert!(!message.contains(char::is_control), "{message:?}");
            }
            Ok(()) | Err(Exit::Help(_)) => {}
            Err(other) => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn what_is_in_range_is_taken(
        threads in vec(1..64_usize, 1..4),
        section in 0.0..1e9,
        seconds in 0.001..86_400.0,
        runs in 1..=10_000_u32,
    ) {
        let threads: Vec<String> = threads.iter().map(usize::to_string).collect();
        let words = [
            "--threads".to_owned(),
            threads.join(","),
            format!("--cs={section}"),
            format!("--seconds={seconds}"),
            format!("--runs={runs}"),
        ];
        let result = check(line("bench micro", words.to_vec()));
        prop_assert!(result.is_ok(), "{result:?}");
    }

    #[test]
    fn what_a_simulation_has_room_for_is_taken(
        vcpus in vec(1..=4096_usize, 1..4),
        cores in 1..=18_usize,
        seed in any::<u64>(),
        seconds in 0.000_001..3600.0,
    ) {
        let vcpus: Vec<String> = vcpus.iter().map(usize::to_string).collect();
        let words = [
            format!("--vcpus={}", vcpus.join(",")),
            format!("--cores={cores}"),
            format!("--seed={seed}"),
            format!("--seconds={seconds}"),
        ];
        let result = check(line("sim", words.to_vec()));
        prop_assert!(result.is_ok(), "{result:?}");
    }

    #[test]
    fn what_is_out_of_range_is_refused(runs in 10_001..u64::MAX, section in 1e9 + 1.0..f64::MAX) {
        for word in [format!("--runs={runs}"), format!("--cs={section}"), format!("--ncs=-{section}")] {
            let option = word.split('=').next().unwrap_or_default().to_owned();
            let Err(Exit::Usage(message)) = check(line("bench micro", vec![word])) else {
                return Err(TestCaseError::fail("it was taken"));
            };
            prop_assert!(message.starts_with(&option), "{message}");
        }
    }
}
