//! scripts/install installs all that a program needs: the commands of docs/use/c.md build the
//! examples from there.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{home, run, succeed};

/// All files below a directory.
fn files(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path.display().to_string());
        }
    }
    found
}

fn install(options: &[&str]) -> Command {
    let mut command = Command::new(home().join("../../scripts/install"));
    command.args(options);
    command
}

#[test]
fn programs_are_built_from_what_is_installed() {
    if Command::new("pkg-config")
        .arg("--version")
        .output()
        .is_err()
    {
        eprintln!("skipped: there is no pkg-config");
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let prefix = scratch.path().join("prefix").display().to_string();
    succeed(&mut install(&["--library", "--prefix", &prefix]));

    let libraries = format!("{prefix}/lib");
    let build = |line: &str| {
        succeed(
            Command::new("sh")
                .args(["-c", line])
                .env("PKG_CONFIG_PATH", format!("{libraries}/pkgconfig"))
                .env("OUT", scratch.path())
                .current_dir(home()),
        );
    };
    let start = |name: &str| {
        let mut command = Command::new(scratch.path().join(name));
        command.env("LD_LIBRARY_PATH", &libraries);
        succeed(&mut command)
    };
    build(
        "cc -O2 examples/workers.c $(pkg-config --cflags --libs overlock) -pthread -o $OUT/workers",
    );
    assert_eq!(start("workers"), "100000 jobs done\n");
    build(
        "c++ -std=c++14 -O2 examples/cache.cpp $(pkg-config --cflags --libs overlock) -pthread -o $OUT/cache",
    );
    let squares: u64 = (0..100).map(|number| number * number).sum();
    assert_eq!(start("cache"), format!("sum {}\n", 8 * 100 * squares));
    build(
        "cc -O2 bench/uncontended.c $(pkg-config --cflags --libs overlock) -pthread -o $OUT/uncontended",
    );
    // The library alone, without one at run time.
    build(
        "cc -O2 examples/workers.c $(pkg-config --cflags overlock) -Wl,-Bstatic $(pkg-config --libs overlock) -Wl,-Bdynamic -pthread -o $OUT/alone",
    );
    let mut alone = Command::new(scratch.path().join("alone"));
    assert_eq!(
        succeed(alone.env_remove("LD_LIBRARY_PATH")),
        "100000 jobs done\n"
    );

    // Nothing at all at run time. The linker warns of `dlopen`, which such a program never calls.
    build(
        "cc -static -O2 examples/workers.c $(pkg-config --static --cflags --libs overlock) -o $OUT/static",
    );
    assert_eq!(start("static"), "100000 jobs done\n");

    let version = env!("CARGO_PKG_VERSION");
    let said = succeed(
        Command::new("pkg-config")
            .args(["--modversion", "overlock"])
            .env("PKG_CONFIG_PATH", format!("{libraries}/pkgconfig")),
    );
    assert_eq!(said.trim(), version);

    succeed(&mut install(&[
        "--library",
        "--prefix",
        &prefix,
        "--uninstall",
    ]));
    assert_eq!(files(Path::new(&prefix)), [""; 0]);
}

/// A package's files lie below the destination, and name the prefix.
#[test]
fn packages_are_built_below_another_directory() {
    let scratch = tempfile::tempdir().unwrap();
    let destination = scratch.path().display().to_string();
    let options = [
        "--library",
        "--prefix",
        "/usr",
        "--libdir",
        "/usr/lib64",
        "--destdir",
    ];
    succeed(install(&options).arg(&destination));
    let description =
        fs::read_to_string(scratch.path().join("usr/lib64/pkgconfig/overlock.pc")).unwrap();
    assert!(
        description.contains("prefix=/usr\nlibdir=/usr/lib64\n"),
        "{description}"
    );
    assert!(scratch.path().join("usr/lib64/liboverlock.so.0").exists());
    assert!(
        scratch
            .path()
            .join("usr/share/man/man3/overlock.3")
            .exists()
    );
    succeed(install(&options).arg(&destination).arg("--uninstall"));
    assert_eq!(files(scratch.path()), [""; 0]);
}

#[test]
fn what_it_does_not_know_is_refused() {
    for options in [
        &["--prefx", "/usr"][..],
        &["--prefix"],
        &["--prefix", "usr"],
    ] {
        assert_eq!(
            run(&mut install(options)).status.code(),
            Some(2),
            "{options:?}"
        );
    }
}
