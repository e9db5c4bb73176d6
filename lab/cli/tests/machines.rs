//! Machines, hosts and workloads of one's own: files, changed keys, and the page that describes
//! them.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use overlock_bench::workload::Workload;
use overlock_sim::host::Host;
use overlock_sim::machine::Machine;
use overlock_sim::spec::{self, Key, Spec};
use serde_json::Value;
use tempfile::TempDir;

use common::{all_refused, overlock_lab, text};

const PAGE: &str = "docs/lab/sim.md";
const KEYS: &str = "results/simulator-keys.md";
/// A few vCPUs for a moment.
const TINY: &[&str] = &["--locks", "ticket", "--vcpus", "6", "--seconds", "0.0005"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn written(dir: &TempDir, name: &str, text: &str) -> String {
    let path = dir.path().join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn simulated(args: &[&str]) -> Value {
    let document = text(
        overlock_lab()
            .arg("sim")
            .args(TINY)
            .args(args)
            .args(["--json", "-"]),
    );
    serde_json::from_str(&document).unwrap()
}

fn named(document: &Value) -> (&str, &str) {
    let simulation = &document["settings"]["simulation"];
    let name = |key: &str| simulation[key].as_str().unwrap();
    (name("machine"), name("host"))
}

/// The blocks of a language in a section of the page.
fn blocks(section: &str, language: &str) -> Vec<String> {
    let page = fs::read_to_string(root().join(PAGE)).unwrap();
    let (_, section) = page.split_once(&format!("\n## {section}\n")).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let opening = format!("```{language}\n");
    let blocks = section.split(&opening).skip(1);
    let blocks = blocks.map(|block| block.split("```").next().unwrap().to_owned());
    blocks.collect()
}

/// Fails where a documented file is refused, or a documented command is.
#[test]
fn the_documented_files_and_commands_work() {
    let dir = tempfile::tempdir().unwrap();
    let sections = ["A machine of your own", "A workload of your own"];
    let files = sections.map(|section| blocks(section, "toml")).concat();
    let [machine, host, workload] = files.as_slice() else {
        panic!("a machine, a host and a workload, not {}", files.len());
    };
    written(&dir, "my-server.toml", machine);
    written(&dir, "my-host.toml", host);
    written(&dir, "my-load.toml", workload);
    let commands = sections.map(|section| blocks(section, "console").concat());
    let commands = commands.concat();
    let commands = commands
        .lines()
        .filter_map(|line| line.strip_prefix("$ overlock-lab "));
    let mut count = 0;
    for command in commands {
        let args: Vec<&str> = command
            .split(" #")
            .next()
            .unwrap()
            .split_whitespace()
            .collect();
        let args: Vec<&str> = args.into_iter().take_while(|arg| *arg != ">").collect();
        // Briefly, where a command does not say otherwise.
        let brief: &[&str] = if args.contains(&"--show") {
            &[]
        } else {
            &["--seconds", "0.0005", "--quiet"]
        };
        overlock_lab()
            .current_dir(&dir)
            .args(args)
            .args(brief)
            .assert()
            .success();
        count += 1;
    }
    assert!(count >= 9, "{count} commands");
}

#[test]
fn the_page_of_keys_has_every_key() {
    fn check<T: Spec>(page: &str) {
        for Key {
            name, about, kind, ..
        } in T::keys()
        {
            let row = format!("| `{name}` | {about} | {kind} |");
            assert!(page.contains(&row), "{KEYS} lacks {row}");
        }
    }
    let page = fs::read_to_string(root().join(KEYS)).unwrap();
    check::<Machine>(&page);
    check::<Host>(&page);
    check::<Workload>(&page);
}

/// A printed preset is the preset, in all that a simulation shows.
#[test]
fn a_shown_preset_simulates_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let show = |name: &str| {
        let shown = text(overlock_lab().args(["sim", "--show", name]));
        written(&dir, &format!("{name}.toml"), &shown)
    };
    let (machine, host) = (show("barcelona"), show("kvm-2013"));
    let files = simulated(&["--machine", &machine, "--host", &host]);
    let names = simulated(&["--machine", "barcelona", "--host", "kvm-2013"]);
    assert_eq!(files, names);
    let changed = simulated(&["--machine", "barcelona:socket=120", "--host", "kvm-2013"]);
    assert_ne!(changed["rows"], names["rows"]);
}

#[test]
fn results_name_the_machine_with_its_changes() {
    let dir = tempfile::tempdir().unwrap();
    let own = "base = \"barcelona\"\nabout = \"mine\"\nhop = \"0.1us\"\n";
    let file = written(&dir, "own.toml", own);
    let document = simulated(&[
        "--machine",
        &format!("{file}:socket=60:cores=4"),
        "--host",
        "kvm:kick=3000",
    ]);
    assert_eq!(
        named(&document),
        ("barcelona:socket=60ns:hop=100ns", "kvm:kick=3us")
    );
    assert_eq!(document["settings"]["simulation"]["cores"], 4);
    assert_eq!(document["machine"]["cpus_online"], 16);
    let cpu = document["machine"]["cpu"].as_str().unwrap();
    let keys = "barcelona:socket=60ns:hop=100ns";
    assert_eq!(cpu, format!("simulated mine, with socket=60ns ({keys})"));

    let out = dir.path().join("sweep.jsonl");
    let machines = format!("{file},barcelona:turn=5ns:cores=8");
    let sweep = [
        "sweep",
        "--machines",
        &machines,
        "--hosts",
        "threads:tick=4ms",
        "--seeds",
        "1",
    ];
    let run = || {
        let mut command = overlock_lab();
        command.arg("sim").args(sweep).args(TINY).arg("--quiet");
        command.arg("--out").arg(&out).assert().success();
        fs::read_to_string(&out).unwrap()
    };
    let lines = run();
    // Several run at a time, and may end in any order.
    let names: BTreeSet<String> = lines
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["machine"].to_string())
        .collect();
    let wanted = ["barcelona:hop=100ns", "barcelona:turn=5ns:cores=8"];
    assert!(
        names.iter().map(|name| name.trim_matches('"')).eq(wanted),
        "{names:?}"
    );
    assert_eq!(run(), lines, "it goes on with another grid");
    let tables = text(overlock_lab().args(["sim", "merge"]).arg(&out));
    assert!(tables.contains("barcelona:turn=5ns:cores=8, threads:tick=4ms"));
}

#[test]
fn what_is_wrong_is_named_with_what_is_valid() {
    let dir = tempfile::tempdir().unwrap();
    let bad = |commands: &[&str], option: &str, text: &str, says: &str| {
        let file = written(&dir, "bad.toml", text);
        for command in commands {
            all_refused(&format!("{command} {option} {file} => {says}"));
        }
    };
    let runs = ["sim", "sim trace"];
    let misspelt = "base = \"x7560\"\n\nsokcet = \"60ns\"\n";
    let says = "bad.toml: unknown key 'sokcet'; did you mean 'socket'? | gap, memory";
    bad(&runs, "--machine", misspelt, says);
    bad(&runs, "--machine", "base = [", "bad.toml: | line 1");
    let says = "bad.toml: unknown host 'x7560' | kvm-2013";
    bad(&runs, "--host", "base = \"x7560\"", says);
    let says = "bad.toml: halt must be a time from 1ns to 100ms, not 1s";
    bad(&runs, "--host", "base = \"kvm\"\nhalt = \"1s\"", says);
    let says = "bad.toml | called 'pdp-11'";
    bad(&["sim"], "--show", "base = \"pdp-11\"", says);
    bad(&["sim"], "--show", "cores = 4", "bad.toml: base is missing");
    bad(
        &["sim"],
        "--show",
        "\nbase = 1",
        "bad.toml: base must be a string",
    );
    let says = "bad.toml: must be a regular file of at most 1 MiB";
    bad(&runs, "--host", &" ".repeat((1 << 20) + 1), says);
    let sweep = "sim sweep --vcpus 2 --out unused";
    let says = "bad.toml: unknown machine 'this-machine' | sim --show this-machine";
    bad(&[sweep], "--machines", "base = \"this-machine\"", says);

    let workload = "bad.toml: unknown key 'cs'; the keys of semop are arrays";
    let loads = ["sim", "sim trace", &format!("{sweep} --workloads")];
    bad(&loads, "", "\ncs = \"5ns\"\nbase = \"semop\"\n", workload);
    let says = "bad.toml: unknown workload 'macro'; the workloads are micro";
    bad(&loads, "", "base = \"macro\"", says);
    let says = "bad.toml: unknown key 'recrods'; did you mean 'records'?";
    bad(&loads, "", "base = \"rw\"\nrecrods = 5", says);
    bad(
        &loads,
        "",
        "cs = \"5ns\"",
        "bad.toml: base is missing | the file changes; the workloads are micro | condvar",
    );
    all_refused(
        "sim --machine no/such => no/such: No such file
         sim --machine / => /: must be a regular file
         sim --show /dev/zero => /dev/zero: must be a regular file
         sim --machine x7560:socket => 'socket' must be KEY=VALUE
         sim --show pdp-11 => --show pdp-11 | barcelona | kvm-nople
         sim --show kvm:x=1 => unknown key 'x' | heavy_barrier
         sim traec => unknown workload 'traec'; the workloads are micro
         sim micro:cs=5 --reads 5 => --reads is for `sim rw` only
         sim --show rw:cs=2s => rw:cs=2s: cs must be a time",
    );
}

/// A file is printed with the keys of its base, and is then the same without it.
#[test]
fn a_file_is_shown_with_all_keys() {
    let dir = tempfile::tempdir().unwrap();
    let file = written(&dir, "own.toml", "base = \"barcelona\"\nhop = \"0.1us\"\n");
    let shown = text(overlock_lab().args(["sim", "--show", &format!("{file}:socket=60")]));
    let file = written(&dir, "shown.toml", &shown.replace("barcelona", "x7560"));
    let again: Machine = spec::read(&file, &[]).unwrap();
    let named = Machine::named("barcelona:hop=100ns:socket=60ns").unwrap();
    assert_eq!(
        (again.costs, again.sockets, again.cores),
        (named.costs, named.sockets, named.cores)
    );
    for (base, key) in [("kvm", "kick"), ("rw", "reads")] {
        let file = written(&dir, "other.toml", &format!("base = \"{base}\""));
        let shown = text(overlock_lab().args(["sim", "--show", &file]));
        assert!(shown.contains(&format!("\n{key} = ")), "{shown}");
    }
}

/// Fails where a measurement cannot be kept, or has another cost than was measured.
#[test]
fn a_measured_machine_can_be_kept() {
    let shown = overlock_lab()
        .args(["sim", "--show", "this-machine:locked=9"])
        .output()
        .unwrap();
    assert!(shown.status.success(), "{shown:?}");
    let text = String::from_utf8(shown.stdout).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = written(&dir, "kept.toml", &text);
    let machine: Machine = spec::read(&file, &[]).unwrap();
    assert_eq!(
        (machine.sockets, machine.costs.locked),
        (1, overlock_sim::Time::ns(9))
    );
    assert_eq!(
        spec::toml(&machine).lines().skip(3).count(),
        text.lines().skip(3).count()
    );
    assert!(machine.name.contains(":sockets=1:"), "{}", machine.name);
}

/// A file, its printed form, changed keys and options are one workload.
#[test]
fn workloads_have_files_and_keys_too() {
    let dir = tempfile::tempdir().unwrap();
    let own = "base = \"micro\"\nabout = \"mine\"\ncs = \"95ns\"\nncs = \"0.1us\"\n";
    let file = written(&dir, "own.toml", own);
    let wanted = simulated(&["micro", "--cs", "95", "--ncs", "100"]);
    assert_eq!(wanted["settings"]["cs_ns"], 95.0);
    assert_eq!(simulated(&[&file]), wanted);
    assert_eq!(simulated(&["micro:cs=95:ncs=100ns"]), wanted);
    assert_eq!(simulated(&[&format!("{file}:cs=5"), "--cs", "95"]), wanted);
    let shown = text(overlock_lab().args(["sim", "--show", "micro:cs=95:ncs=100"]));
    assert_eq!(simulated(&[&written(&dir, "shown.toml", &shown)]), wanted);

    let out = dir.path().join("sweep.jsonl");
    let workloads = format!("{file}:ncs=0,build");
    let mut sweep = overlock_lab();
    let sweep = sweep.args(["sim", "sweep", "--seeds", "1", "--quiet", "--out"]);
    let sweep = sweep.arg(&out).args(TINY).args(["--workloads", &workloads]);
    sweep.assert().success();
    let lines = fs::read_to_string(&out).unwrap();
    assert!(lines.contains("\"workload\":\"micro:cs=95ns\"") && lines.contains("\"build\""));
    let tables = text(overlock_lab().args(["sim", "merge"]).arg(&out));
    assert!(tables.contains("micro:cs=95ns"), "{tables}");
}
