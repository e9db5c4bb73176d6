//! Timed waits of programs whose clocks are faked by a library, before ours or after it.

#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

mod common;

use std::path::Path;
use std::thread;

use common::{compile, compile_as, library, run, text};

/// Each library: its name and flags, the time of the waits by the kernel's clock, and whether it
/// fakes the monotonic clock too.
const FAKES: [(&str, &[&str], &str, &str); 6] = [
    ("none", &[], "1200", "real"),
    ("ahead", &["-DSHIFT=31536000"], "1200", "real"),
    ("behind", &["-DSHIFT=-31536000", "-DALL"], "1200", "all"),
    ("fast", &["-DSHIFT=100", "-DRATE=6"], "200", "real"),
    (
        "waits",
        &["-DSHIFT=31536000", "-DALL", "-DWAITS"],
        "1200",
        "all",
    ),
    (
        "fast-waits",
        &["-DRATE=6", "-DALL", "-DWAITS"],
        "200",
        "all",
    ),
];

/// Fails where the deadlines of some waits, or the looks at some clock, are the kernel's; where a
/// deadline is converted twice; or ("does not end") where the locks read the faked clock.
#[test]
fn timed_waits_follow_the_clocks_that_the_program_sees() {
    let program = compile("clocks.c", &[]);
    let expected = run(&program, &[Path::new("1200"), Path::new("all")], &[]);
    let expected = text(&expected.stdout);
    assert!(!expected.contains("wait "), "{expected}");
    let ours = library();
    let ours = ours.to_str().unwrap();
    thread::scope(|scope| {
        for (name, flags, time, clocks) in FAKES {
            let flags = [&["-shared", "-fPIC"], flags].concat();
            let shim = compile_as("clock_shim.c", &format!("clock-shim-{name}.so"), &flags);
            let shim = shim.to_str().unwrap().to_owned();
            let (program, expected) = (&program, &expected);
            for libraries in [format!("{ours}:{shim}"), format!("{shim}:{ours}")] {
                scope.spawn(move || {
                    let arguments = [Path::new(time), Path::new(clocks)];
                    let environment = [("LD_PRELOAD", libraries.as_str())];
                    let answer = run(program, &arguments, &environment);
                    assert_eq!(text(&answer.stdout), *expected, "{libraries}");
                    assert!(answer.status.success(), "{libraries}");
                });
            }
        }
    });
}
