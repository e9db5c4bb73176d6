//! `overlock run --stat`, `overlock top`, `overlock report`: what is counted, and what is said of
//! it.

mod common;
#[path = "common/preload.rs"]
mod preload;
#[path = "common/room.rs"]
mod room;

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{ends, files, overlock, signal};
use preload::{compile, library, run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Acquisitions of each thread's own lock.
const ROUNDS: u64 = 100_000;

fn read(path: &Path) -> Value {
    let document = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/run.schema.json");
    let schema = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    jsonschema::validate(&schema, &document).unwrap();
    document
}

/// The rows of a call site, by its function.
fn at<'a>(process: &'a Value, function: &str) -> Vec<&'a Value> {
    let locks = process["locks"].as_array().unwrap();
    let found = locks
        .iter()
        .filter(|row| row["site"]["function"] == function);
    found.collect()
}

fn sum(rows: &[&Value], key: &str) -> u64 {
    rows.iter().map(|row| row[key].as_u64().unwrap()).sum()
}

/// Runs the program of `name`, and returns its report and its table.
fn report(name: &str) -> (Value, String) {
    let program = compile("hot", name, &[]);
    let dir = tempfile::tempdir().unwrap();
    let (json, svg) = (dir.path().join("r.json"), dir.path().join("r.svg"));
    let report = format!("--report={}", json.display());
    let picture = format!("--svg={}", svg.display());
    let output = run(&["--stat", &report, &picture])
        .arg(program)
        .arg(ROUNDS.to_string())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(7), "{text}");
    let picture = fs::read_to_string(svg).unwrap();
    assert!(picture.contains("<svg") && picture.contains("short_section"));
    (read(&json), text)
}

#[test]
fn the_contended_lock_is_on_top_with_its_sites_and_holders() {
    let (document, text) = report("hot-contended");
    let process = &document["processes"][0];
    let top = &process["locks"][0];
    assert_eq!(top["lock"], "hot", "{text}");
    assert_eq!(top["site"]["function"], "short_section");
    assert!(top["site"]["file"].as_str().unwrap().ends_with("hot.c"));
    assert_eq!(top["holders"][0]["site"]["function"], "long_section");
    assert!(top["contentions"].as_u64().unwrap() >= 2, "{text}");
    // The holder sleeps for a millisecond; a waiter waits for a part of that, or for several.
    let avg = top["wait"]["avg_ns"].as_f64().unwrap();
    assert!((50_000.0..1e12).contains(&avg), "{text}");
    let holds: Vec<_> = at(process, "long_section");
    if let Some(hold) = holds.iter().find_map(|row| row["hold"]["avg_ns"].as_f64()) {
        assert!((1_000_000.0..1e12).contains(&hold), "{text}");
    }
    let first = text.lines().nth(2).unwrap();
    assert!(first.contains("hot ") && first.contains("short_"), "{text}");
    let holder = text
        .lines()
        .find(|line| line.contains("100 % long_section hot.c:"));
    assert!(holder.is_some(), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    assert!(text.contains(" time\n #  lock "), "{text}");
}

#[test]
fn acquisitions_are_counted_to_within_the_samples_error() {
    let (document, text) = report("hot-counted");
    let lonely = at(&document["processes"][0], "lonely_section");
    let count = sum(&lonely, "acquisitions");
    let all = 3 * ROUNDS;
    assert!(
        (all * 9 / 10..all * 11 / 10).contains(&count),
        "{count}\n{text}"
    );
    assert_eq!(sum(&lonely, "contentions"), 0, "{text}");
    // The locks of an array are one row, whose figures are estimates.
    let names: Vec<_> = lonely.iter().map(|row| &row["lock"]).collect();
    assert_eq!(names, ["own"], "{text}");
    assert_eq!(lonely[0]["sampled"], true);
    let marked = text
        .lines()
        .find(|line| line.contains(" own ") && line.contains(" ~"));
    assert!(marked.is_some(), "{text}");
}

/// Fails where a program whose locks are not the C library's is said not to wait.
#[test]
fn a_program_without_locks_of_the_c_library_is_told_from_one_that_does_not_wait() {
    let text = |command: &mut Command| String::from_utf8(command.output().unwrap().stderr).unwrap();
    let none = text(run(&["--stat"]).arg("true"));
    assert!(none.contains("took no mutex"), "{none}");
    assert!(
        none.contains("no thread waited by the function syscall"),
        "{none}"
    );
    let few = compile("makes", "makes-counted", &[]);
    let few = text(run(&["--stat"]).arg(few));
    assert!(few.contains("no thread waited for a lock"), "{few}");
}

#[test]
fn waits_in_vain_and_initialisers_are_told() {
    let (document, text) = report("hot-in-vain");
    let hurried = at(&document["processes"][0], "hurried_section");
    assert_eq!(sum(&hurried, "gave_up"), 1, "{text}");
    assert_eq!(sum(&hurried, "contentions"), 1, "{text}");
    assert_eq!(sum(&hurried, "acquisitions"), 0, "{text}");
    assert_eq!(hurried[0]["init"]["function"], "make", "{text}");
    assert!(
        hurried[0]["lock"]
            .as_str()
            .unwrap()
            .starts_with("of make hot.c:")
    );
}

#[test]
fn readers_and_writers_are_told_apart() {
    let program = compile("shared", "shared", &[]);
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("r.json");
    let option = format!("--report={}", json.display());
    let mut command = run(&[&option]);
    let output = command.arg(&program).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}");
    let document = read(&json);
    let process = &document["processes"][0];
    let looks = at(process, "look");
    assert_eq!(looks[0]["kind"], "read");
    assert_eq!(looks[0]["lock"], "table");
    assert!(sum(&looks, "contentions") > 0, "{text}");
    assert_eq!(looks[0]["hold"]["avg_ns"], Value::Null);
    // Others may have found readers inside, with a writer that waits.
    let mut holders = looks[0]["holders"].as_array().unwrap().iter();
    assert!(holders.any(|holder| holder["site"]["function"] == "change"));
    let changes = at(process, "change");
    assert_eq!(changes[0]["kind"], "write");
    assert!(sum(&changes, "contentions") > 0, "{text}");
    assert!(changes[0]["hold"]["max_ns"].as_u64().unwrap() >= 2_000_000);
    // And a writer that has to wait mostly finds readers.
    let mut holders = changes[0]["holders"].as_array().unwrap().iter();
    assert!(
        holders.any(|holder| holder["site"]["function"] == "look"),
        "{text}"
    );
    let glances = sum(&at(process, "glance"), "acquisitions");
    assert!((17_000..23_000).contains(&glances), "{glances}");
}

/// Runs a program of `tests/c` that ends well, and returns its first process's report, and the
/// table.
fn counted(source: &str, name: &str, options: &[&str]) -> (Value, String) {
    let program = compile(source, name, &[]);
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("r.json");
    let report = format!("--report={}", json.display());
    let options = [options, &["--stat", &report]].concat();
    let output = run(&options).arg(&program).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}");
    (read(&json)["processes"][0].take(), text)
}

/// Fails where the fast path of a kind or of a function counts differently from the general path.
#[test]
fn acquisitions_of_each_kind_by_each_function_are_counted() {
    let (process, text) = counted("sampled", "sampled", &[]);
    for kind in ["normal", "adaptive", "recursive", "checking"] {
        for how in ["take", "ask", "limit"] {
            let count = sum(&at(&process, &format!("{how}_{kind}")), "acquisitions");
            assert!(
                (45_000..55_000).contains(&count),
                "{how} {kind}: {count}\n{text}"
            );
        }
    }
}

#[test]
fn waits_for_events_stand_by_themselves() {
    for lockdep in [&[][..], &["--lockdep"]] {
        let (process, text) = counted("events", "events", lockdep);
        let events = process["events"].as_array().unwrap();
        for (function, kind, name, gave_up, least_ns) in [
            ("await_ready", "cond", "ready", 0, 5_000_000),
            ("await_in_vain", "cond", "ready", 1, 1_000_000),
            ("take_slot", "sem", "slots", 0, 10_000_000),
            ("take_in_vain", "sem", "slots", 1, 1_000_000),
            ("meet", "barrier", "meeting", 0, 10_000_000),
        ] {
            let is_it = |event: &&Value| event["site"]["function"] == function;
            let event = events.iter().find(is_it);
            let event = event.unwrap_or_else(|| panic!("{function}: {text}"));
            assert_eq!([&event["kind"], &event["name"]], [kind, name], "{text}");
            // More than one of a condition where a thread woke spuriously. A call that does not
            // wait is not counted.
            let waits = event["waits"].as_u64().unwrap();
            assert!(waits == 1 || waits > 1 && kind == "cond", "{text}");
            assert!(event["gave_up"].as_u64().unwrap() >= gave_up, "{text}");
            let total = event["wait"]["total_ns"].as_u64().unwrap();
            assert!(total >= least_ns, "{function}: {text}");
        }
        let spun = at(&process, "want_quick");
        assert_eq!([&spun[0]["kind"], &spun[0]["lock"]], ["spin", "quick"]);
        assert_eq!(spun[0]["acquisitions"], Value::Null);
        assert!(spun[0]["wait"]["total_ns"].as_u64().unwrap() >= 10_000_000);
        assert!(process["locks"].as_array().unwrap().iter().all(|row| {
            let kind = row["kind"].as_str().unwrap();
            ["mutex", "spin"].contains(&kind)
        }));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains(" waited for locks, "), "{text}");
        assert!(lines[2].contains("want_quick events.c:"), "{text}");
        assert!(text.contains(" waited for events, which is no contention\n"));
    }
}

/// Fails where waits by `syscall` or for files are not seen, or their spins are not.
#[test]
fn waits_without_locks_are_seen_with_their_spins() {
    let cpus = rustix::thread::sched_getaffinity(None).unwrap().count();
    let begin = Instant::now();
    let mut idle = 0;
    for _ in 0..20 {
        let (had_room, spins) = room::during(cpus, handoffs_have_spins);
        if spins {
            assert!(cpus > 1);
            return;
        }
        idle += u32::from(had_room);
        if idle == 0 && begin.elapsed() > Duration::from_secs(20) {
            break;
        }
    }
    // Nobody spins while others keep the CPUs busy.
    assert!(cpus == 1 || idle < 10, "{idle} runs beside an idle CPU");
    eprintln!("no spins: {cpus} CPUs, {idle} runs beside an idle one");
}

/// Whether a run has any.
fn handoffs_have_spins() -> bool {
    let (process, text) = counted("handoffs", "handoffs", &[]);
    let events = process["events"].as_array().unwrap();
    let sums = |kind: &str, key: &str| {
        let these = events.iter().filter(|event| event["kind"] == kind);
        these.map(|event| event[key].as_u64().unwrap()).sum::<u64>()
    };
    assert!(sums("futex", "waits") > 0, "{text}");
    // A wait that returns at once since its time is over is none.
    assert_eq!(sums("poll", "waits"), 1, "{text}");
    let futex = events.iter().find(|event| event["name"] == "turn").unwrap();
    assert_eq!(futex["kind"], "futex");
    // By address and stack: in C there is no wrapper between.
    assert!(futex["site"]["function"].is_string(), "{text}");
    assert!(!futex["stack"].as_array().unwrap().is_empty());
    assert!(
        text.contains(" waited by the system call futex: "),
        "{text}"
    );
    let spins = ["count", "in_time", "total_ns", "saved_ns"]
        .map(|key| futex["spins"][key].as_u64().unwrap());
    let [count, in_time, total, saved] = spins;
    assert!(in_time <= count && (count > 0) == (total > 0), "{text}");
    assert_eq!(in_time > 0, saved > 0, "{text}");
    count > 0
}

#[test]
fn acquisitions_past_those_that_wait_are_told() {
    let (process, text) = counted("unfair", "unfair", &[]);
    let greedy = at(&process, "greedy");
    let [unfair, queued] = ["unfair", "queued"].map(|key| sum(&greedy, key));
    assert_eq!(sum(&greedy, "contentions"), queued);
    assert!((1..=1200).contains(&queued), "{text}");
    let share = greedy[0]["unfair_share"].as_f64().unwrap();
    let expected = unfair as f64 / (unfair + queued) as f64;
    assert!((share - expected).abs() < 1e-6, "{text}");
    // The releasing thread is back before a sleeper wakes.
    assert!(share > 0.3, "{text}");
    // Of the first 1024 all are counted, and of the others one in 32.
    assert!(unfair <= 1024 + 8 * 32, "{text}");
    assert!(greedy[0]["passed_avg"].is_f64(), "{text}");
    assert!(!greedy[0]["passed_max"].is_null(), "{text}");
}

/// Of a lock that threads do nothing but acquire, few acquisitions are recorded, and each holder
/// has its callers. Fails where those after each wait are recorded, where a stack is walked through
/// each time, or where a holder is named by the call site alone.
#[test]
fn threads_that_meet_all_the_time_are_seldom_recorded_and_have_callers() {
    let (process, text) = counted("meet", "meet", &[]);
    let rows = process["locks"].as_array().unwrap();
    let rows: Vec<&Value> = rows.iter().filter(|row| row["lock"] == "busy").collect();
    let acquisitions = sum(&rows, "acquisitions");
    let walks = process["walks"].as_u64().unwrap();
    assert!(walks < 2000 + acquisitions / 200, "{walks} walks: {text}");
    for row in rows {
        let (waits, name) = (
            row["contentions"].as_u64().unwrap(),
            &row["site"]["function"],
        );
        let name = name.as_str().unwrap();
        assert!(name.starts_with("section_of_the_"), "{name}: {text}");
        // The count is that of the lock at any time.
        let passed = row["passed_max"].as_u64().unwrap();
        assert!(passed <= 2 * acquisitions, "{passed}: {text}");
        let holders = row["holders"].as_array().unwrap().iter();
        let known = holders.filter(|holder| {
            let name = holder["site"]["function"].as_str().unwrap_or_default();
            name.starts_with("section_of_the_")
        });
        let known: u64 = known.map(|holder| holder["waits"].as_u64().unwrap()).sum();
        // Nobody holds it between a release and the next acquisition. Without a CPU threads seldom
        // meet.
        assert!(
            known * 2 > waits || waits < 20,
            "{known} of {waits}: {text}"
        );
    }
}

#[test]
fn a_mutex_that_is_acquired_again_after_a_wait_is_so_where_that_is() {
    // Threads that were woken and get no CPU for long meet nobody.
    let mut texts = String::new();
    let is_met = (0..10).any(|_| {
        let (process, text) = counted("again", "again", &[]);
        texts += &text;
        let again = at(&process, "await_turn");
        let condition = again.iter().filter(|row| row["lock"] == "busy");
        let contentions = condition.map(|row| row["contentions"].as_u64().unwrap());
        contentions.sum::<u64>() > 0
    });
    assert!(is_met, "{texts}");
}

#[test]
fn a_child_of_fork_has_a_table_of_its_own() {
    let program = compile("family", "family", &[]);
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("r.json");
    let option = format!("--report={}", json.display());
    let output = run(&[&option]).arg(program).output().unwrap();
    assert!(output.status.success());
    let document = read(&json);
    let processes = document["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 2);
    for (process, own, others) in [
        (&processes[0], "in_parent", "in_child"),
        (&processes[1], "in_child", "in_parent"),
    ] {
        assert_eq!(process["program"], "family");
        let count = sum(&at(process, own), "acquisitions");
        assert!((4000..6000).contains(&count), "{own}: {count}");
        assert!(at(process, others).is_empty());
    }
}

/// Fails where names of C are read as types of C++.
#[test]
fn names_of_c_stay_as_they_are() {
    let (process, text) = counted("inlined", "inlined-plain", &[]);
    assert_eq!(process["locks"][0]["lock"], "m", "{text}");
    let plain = compile("inlined", "inlined-stripped", &["-g0"]);
    let output = run(&["--stat"]).arg(plain).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    let row = text.lines().nth(2).unwrap();
    assert!(row.contains(" m ") && row.contains(" t "), "{text}");
}

/// Fails where the victim and the culprit are both called by the function that they are in.
#[test]
fn functions_that_were_inlined_are_told_apart() {
    let (process, text) = counted("inlined", "inlined-lines", &[]);
    for name in ["lookup", "flush"] {
        let rows = at(&process, name);
        assert_eq!(rows.len(), 1, "{name}: {text}");
        assert_eq!(rows[0]["site"]["inlined_into"][0], "t");
        assert!(text.contains(&format!("{name} inlined.c:")), "{text}");
    }
    let lookup = at(&process, "lookup");
    assert_eq!(
        lookup[0]["holders"][0]["site"]["function"], "flush",
        "{text}"
    );
}

/// A program that stays, when it is ready: our process, and its own id.
fn stays(name: &str) -> (Child, Pid) {
    let program = compile("hot", name, &[]);
    let mut child = run(&["--stat"])
        .arg(program)
        .args(["1000", "stay"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = child.stdout.as_mut().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let pid = fs::read_to_string(children)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    (child, Pid::from_raw(pid).unwrap())
}

fn rest(child: &mut Child) -> String {
    let mut text = String::new();
    let stderr = child.stderr.as_mut().unwrap();
    stderr.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_program_that_is_killed_is_reported() {
    let (mut child, pid) = stays("hot-killed");
    kill_process(pid, Signal::KILL).unwrap();
    assert_eq!(ends(&mut child).signal(), Some(9));
    assert!(rest(&mut child).contains("short_"));
}

#[test]
fn a_signal_has_the_table_printed_and_the_program_goes_on() {
    let (mut child, pid) = stays("hot-asked");
    signal(&child, Signal::USR2);
    let mut first = String::new();
    BufReader::new(child.stderr.as_mut().unwrap())
        .read_line(&mut first)
        .unwrap();
    assert!(first.contains("waited for locks"), "{first}");
    assert!(child.try_wait().unwrap().is_none());
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(ends(&mut child).signal(), Some(15));
}

#[test]
fn top_shows_a_program_that_runs() {
    let (mut child, pid) = stays("hot-watched");
    let pid = pid.as_raw_nonzero().to_string();
    let text = common::text(overlock().args(["top", "--once", &pid]));
    let top = text.lines().nth(2).unwrap();
    assert!(top.contains("hot ") && top.contains("short_"), "{text}");
    // The process that has started it will do as well.
    let parent = child.id().to_string();
    let same = common::text(overlock().args(["top", "--once", &parent]));
    assert!(same.contains(&format!("(process {pid})")), "{same}");
    common::refused(overlock().args(["top", &pid]).assert(), &["--once"]);
    signal(&child, Signal::TERM);
    assert_eq!(ends(&mut child).signal(), Some(15));
    let own = std::process::id().to_string();
    common::refused(
        overlock().args(["top", "--once", &own]).assert(),
        &["counts nothing", "overlock run --stat"],
    );
    common::refused(
        overlock().args(["top", "999999999"]).assert(),
        &["is not there"],
    );
}

/// The rules of OpenMetrics: families are whole, each with the endings of its kind, series are
/// there once, and the end is marked.
fn check_metrics(text: &str) {
    let mut families = HashSet::new();
    let mut series = HashSet::new();
    let mut family = String::new();
    assert!(text.ends_with("\n# EOF\n"), "{text}");
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            family = rest.split(' ').next().unwrap().to_owned();
            assert!(families.insert(family.clone()), "{line}");
            continue;
        }
        if line.starts_with('#') {
            continue;
        }
        let (labelled, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().unwrap() >= 0.0, "{line}");
        assert!(series.insert(labelled.to_owned()), "{line}");
        let name = labelled.split('{').next().unwrap();
        let suffix = name.strip_prefix(family.as_str()).expect("its family");
        match family.as_str() {
            "overlock_wait_length_seconds" => {
                assert!(matches!(suffix, "_bucket" | "_count" | "_sum"), "{line}");
            }
            "overlock_threads" => assert_eq!(suffix, "", "{line}"),
            _ => assert!(matches!(suffix, "_total" | "_info"), "{line}"),
        }
    }
}

#[test]
fn top_serves_the_counts_of_a_program_that_runs() {
    let (mut child, pid) = stays("hot-served");
    let pid = pid.as_raw_nonzero().to_string();
    let mut server = Command::new(env!("CARGO_BIN_EXE_overlock"))
        .args(["top", &pid, "--serve", "127.0.0.1:0"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut errors = BufReader::new(server.stderr.take().unwrap());
    errors.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("overlock: http://").expect(&line);
    let address = address.strip_suffix("/metrics").unwrap();
    let ask = |request: &str| {
        let mut client = TcpStream::connect(address).unwrap();
        write!(client, "{request} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        let (head, content) = text.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), content.to_owned())
    };
    // A client that says nothing delays others, and no more.
    let silent = TcpStream::connect(address).unwrap();
    let (head, text) = ask("GET /metrics");
    drop(silent);
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    assert!(head.contains("application/openmetrics-text; version=1.0.0"));
    check_metrics(&text);
    let of_hot = r#"overlock_waits_total{lock="hot",kind="mutex",site="short_section hot.c:"#;
    assert!(text.contains(of_hot), "{text}");
    // All waits are in the last bucket.
    let of_hot = |start: &str| {
        let mut lines = text.lines();
        let line = lines.find(|line| line.starts_with(start) && line.contains("short_section"));
        let value = line
            .unwrap_or_else(|| panic!("{start}: {text}"))
            .rsplit(' ')
            .next();
        value.unwrap().parse::<f64>().unwrap() as u64
    };
    let all = of_hot("overlock_wait_length_seconds_bucket{le=\"+Inf\",lock=\"hot\"");
    assert_eq!(
        all,
        of_hot("overlock_wait_length_seconds_count{lock=\"hot\"")
    );
    assert!(all > 0);
    assert!(ask("GET /else").0.starts_with("HTTP/1.1 404"));
    assert!(ask("POST /metrics").0.starts_with("HTTP/1.1 405"));
    assert_eq!(ask("HEAD /metrics").1, "");
    common::refused(
        overlock().args(["top", &pid, "--serve", address]).assert(),
        &["cannot listen at", address],
    );
    signal(&child, Signal::TERM);
    assert_eq!(ends(&mut child).signal(), Some(15));
    assert!(ends(&mut server).success());
}

#[test]
fn a_program_without_us_leaves_a_table() {
    let program = compile("hot", "hot-alone", &[]);
    let dir = tempfile::tempdir().unwrap();
    let status = Command::new(program)
        .arg("1000")
        .env("LD_PRELOAD", library())
        .env("OVERLOCK_STAT", "1")
        .env("OVERLOCK_STAT_DIR", dir.path())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(7));
    let tables = files(dir.path());
    let [table] = &tables[..] else {
        panic!("{tables:?}")
    };
    let text = common::text(overlock().arg("report").arg(table));
    assert!(text.contains("short_"), "{text}");
    let json = dir.path().join("r.json");
    common::text(
        overlock()
            .arg("report")
            .arg("--report")
            .arg(&json)
            .arg(table),
    );
    assert_eq!(read(&json)["processes"][0]["locks"][0]["lock"], "hot");
    common::refused(
        overlock().args(["report", "/etc/passwd"]).assert(),
        &["/etc/passwd: is no table"],
    );
}

/// Fails where the modules are not read again within a tenth of a second: then nobody knows whose
/// code it was.
#[test]
fn a_library_that_was_unloaded_soon_is_named() {
    let flags = ["-DLIBRARY", "-shared", "-fPIC"];
    let library = compile("unloaded", "unloaded-library.so", &flags);
    let program = compile("unloaded", "unloaded", &["-ldl"]);
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("r.json");
    let report = format!("--report={}", json.display());
    let output = run(&["--stat", &report])
        .arg(program)
        .arg(&library)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let document = read(&json);
    let locks = document["processes"][0]["locks"].as_array().unwrap();
    let named = |row: &Value| row["site"]["module"] == library.to_str().unwrap();
    assert!(locks.iter().any(named), "{locks:?}");
}
