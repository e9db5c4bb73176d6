//! Programs with two tables, one of the drop-in and one of their own locks; those that become
//! another; and those that have ended without anybody's notice.

mod common;
#[path = "common/preload.rs"]
mod preload;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use preload::{compile, library};
use tempfile::TempDir;

/// `both`, linked to the library for C, of which `dir` gets a copy.
fn compiled(dir: &TempDir, name: &str) -> std::path::PathBuf {
    let built = library().parent().unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "-q", "-p", "overlock-c", "--target-dir"]);
    cargo.arg(built.parent().unwrap());
    if built.ends_with("release") {
        cargo.arg("--release");
    }
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    assert!(cargo.current_dir(manifest).status().unwrap().success());
    fs::copy(
        built.join("liboverlock_c.so"),
        dir.path().join("liboverlock.so.0"),
    )
    .unwrap();
    let linked = dir.path().join("liboverlock.so.0");
    let search = format!("-Wl,-rpath,{}", dir.path().display());
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../overlock-c/include");
    // Libraries are named behind what needs them.
    let flags = [
        "-Wl,--no-as-needed",
        linked.to_str().unwrap(),
        &search,
        include,
    ];
    compile("both", name, &flags)
}

/// The program with the drop-in, under no other process; its tables are in `dir`.
fn started(program: &Path, dir: &TempDir, arguments: &[&str]) -> Child {
    Command::new(program)
        .args(arguments)
        .env("LD_PRELOAD", library())
        .env("OVERLOCK_STAT", "1")
        .env("OVERLOCK_STAT_DIR", dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for a line.
fn says(child: &mut Child, expected: &str) {
    let mut line = String::new();
    let mut byte = [0];
    while !line.ends_with('\n') {
        child
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut byte)
            .unwrap();
        line.push(char::from(byte[0]));
    }
    assert_eq!(line.trim_end(), expected);
}

/// `overlock top --serve`, and its address.
fn served(pid: u32) -> (Child, String) {
    let mut server = Command::new(env!("CARGO_BIN_EXE_overlock"))
        .args(["top", &pid.to_string(), "--serve", "127.0.0.1:0"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut errors = BufReader::new(server.stderr.take().unwrap());
    errors.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("overlock: http://").expect(&line);
    let address = address.strip_suffix("/metrics").unwrap().to_owned();
    (server, address)
}

fn metrics(address: &str) -> String {
    let mut client = TcpStream::connect(address).unwrap();
    write!(client, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    text
}

/// Waits of the lock of this name, at all its call sites.
fn waits(metrics: &str, lock: &str) -> f64 {
    let start = format!("overlock_waits_total{{lock=\"{lock}\",");
    let lines = metrics.lines().filter(|line| line.starts_with(&start));
    let values = lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap());
    values.sum()
}

/// Fails where only the later one of a process's two tables is read, and where the table of the
/// program before is read on.
#[test]
fn locks_of_the_c_library_and_of_the_program_are_shown_together() {
    let dir = tempfile::tempdir().unwrap();
    let program = compiled(&dir, "both-together");
    let mut child = started(&program, &dir, &["anew"]);
    says(&mut child, "first");
    let pid = child.id().to_string();
    for command in [&["top", "--once", &pid][..], &["report", &pid]] {
        let text = common::text(common::overlock().args(command));
        for row in ["theirs", "pool"] {
            let line = text.lines().find(|line| line.contains(row));
            assert!(
                line.is_some_and(|line| line.contains("take_both")),
                "{text}"
            );
        }
        assert!(text.starts_with("both-together (process "), "{text}");
    }
    let (mut server, address) = served(child.id());
    let before = metrics(&address);
    for lock in ["theirs", "pool"] {
        assert!(waits(&before, lock) > 0.0, "{before}");
    }
    // The same program in its own place, which has counted the same again: no more, and not both.
    let input = child.stdin.as_mut().unwrap();
    input.write_all(b"x").unwrap();
    says(&mut child, "ready");
    let after = metrics(&address);
    for lock in ["theirs", "pool"] {
        let counted = waits(&after, lock);
        assert!(counted > 0.0 && counted <= 40.0, "{after}");
    }
    let files = common::files(dir.path());
    let tables = files
        .iter()
        .filter(|path| path.to_string_lossy().contains("overlock-stat."));
    assert_eq!(tables.count(), 4, "{files:?}");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert!(server.wait().unwrap().success());
}

/// Fails where a process is taken to run that has ended, while its parent does not ask for its end.
#[test]
fn serving_ends_with_a_program_that_nobody_waits_for() {
    let dir = tempfile::tempdir().unwrap();
    let program = compiled(&dir, "both-unseen");
    let mut child = started(&program, &dir, &[]);
    says(&mut child, "ready");
    let (mut server, address) = served(child.id());
    assert!(metrics(&address).contains("pool"));
    child.kill().unwrap();
    assert!(server.wait().unwrap().success());
    child.wait().unwrap();
}
