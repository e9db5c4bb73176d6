//! `overlock profile` of programs in C, C++ and Rust: functions by name, and the chain of waits.

#[path = "common/preload.rs"]
mod preload;
#[path = "common/profiled.rs"]
mod profiled;

use std::path::{Path, PathBuf};
use std::process::Command;

use overlock_profile::{Profile, Wait};
use preload::compile;
use profiled::profile_of;

/// The program's profile, and what was said of it.
fn profile(program: &Path, options: &[&str]) -> (Profile, String) {
    profile_of(program, &[], options)
}

fn functions(profile: &Profile, stack: u32) -> Vec<&str> {
    let frames = profile.stacks[stack as usize].0.iter();
    let frames = frames.map(|&frame| profile.frames[frame as usize].function.as_str());
    frames.collect()
}

/// The only wait for the lock of this name.
fn wait<'a>(profile: &'a Profile, name: &str, said: &str) -> &'a Wait {
    let is_it = |wait: &&Wait| profile.locks[wait.lock as usize].name == name;
    let waits: Vec<&Wait> = profile.waits.iter().filter(is_it).collect();
    let [wait] = waits[..] else {
        panic!("{name}: {waits:?} {said}");
    };
    wait
}

/// That the functions are named so, and the chain is told: `locks` are the till and the safe.
fn has_chain(program: &Path, functions_of: [&str; 3], locks: [&str; 2]) {
    let [clerk, manager, guard] = functions_of;
    for options in [&[][..], &["--locks", "glibc"]] {
        let (profile, said) = profile(program, options);
        let has = |stack: Option<u32>, function: &str| {
            let found = stack.map(|stack| functions(&profile, stack));
            let has = found.iter().flatten().any(|name| *name == function);
            assert!(has, "{options:?} {function}: {found:?}\n{said}");
        };
        let [till, safe] = locks.map(|lock| wait(&profile, lock, &said));
        has(Some(till.stack), clerk);
        has(Some(safe.stack), manager);
        has(till.holder_stack, manager);
        has(safe.holder_stack, guard);
        let chain = format!(
            "for {}, held by {}",
            locks[0],
            profile.threads[till.holder.unwrap() as usize].tid
        );
        let text = said.replace("\n ", "");
        assert!(text.contains(&chain), "{said}");
        let rest = format!("which waited for {}, held by ", locks[1]);
        assert!(text.contains(&rest), "{said}");
        // Without what tells instances apart.
        let look =
            |name| text.contains(&format!("acquired in {}: ", overlock_profile::brief(name)));
        assert!(look(manager) || look(clerk), "{said}");
    }
}

#[test]
fn a_chain_in_c_has_its_functions() {
    let program = compile("chain", "chain-c", &[]);
    has_chain(&program, ["clerk", "manager", "guard"], ["till", "safe"]);
}

#[test]
fn a_chain_in_cpp_has_its_methods() {
    let program = compile("chain.cpp", "chain-cpp", &["-std=c++20"]);
    let of = ["clerk", "manager", "guard"].map(|name| format!("Shop<int>::{name}()"));
    has_chain(
        &program,
        of.each_ref().map(String::as_str),
        ["till", "safe"],
    );
}

#[test]
fn a_chain_in_rust_has_its_paths() {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/c/chain.rs");
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("chain-rust");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut rustc = Command::new(rustc);
    rustc.args(["--edition=2024", "-O", "-g", "-Aunused", source, "-o"]);
    assert!(rustc.arg(&program).status().unwrap().success());
    let of = ["clerk", "manager", "guard"].map(|name| format!("chain::shop::{name}"));
    let of = of.each_ref().map(String::as_str);
    has_chain(&program, of, ["chain::TILL", "chain::SAFE"]);
}

/// Fails where a lock without a name is one for each place at which threads wait.
#[test]
fn a_lock_without_a_name_is_one_lock() {
    let program = compile("heap", "heap", &[]);
    let (profile, said) = profile(&program, &[]);
    let locks = profile.locks.iter().filter(|lock| !lock.is_event);
    let locks: Vec<_> = locks.map(|lock| &lock.name).collect();
    assert_eq!(locks.len(), 1, "{locks:?} {said}");
    assert!(profile.sums.iter().filter(|sum| sum.waits > 0).count() >= 2);
}

/// Whether most waits for a lock have a holder, and some were seen to be behind one that sleeps.
fn has_holders(profile: &Profile, name: &str) -> bool {
    let of_lock = |lock: u32| profile.locks[lock as usize].name == name;
    let waits = profile.waits.iter().filter(|wait| of_lock(wait.lock));
    let waits: Vec<&Wait> = waits.collect();
    let is_known = |wait: &&&Wait| {
        let stack = wait.holder_stack.map(|stack| functions(profile, stack));
        let has_stack = stack.is_some_and(|stack| stack.contains(&"section"));
        has_stack && wait.holder.is_some_and(|holder| holder != wait.thread)
    };
    let known = waits.iter().filter(is_known).count();
    let is_asleep = |wait: &&Wait| !wait.parts.blocked.is_empty();
    known * 2 > waits.len() && waits.iter().any(is_asleep)
}

/// Fails where nobody knows who has a lock that has no room for its owner.
#[test]
fn semaphores_spin_locks_and_conditions_have_holders() {
    let program = compile("held", "held", &[]);
    // The C library's spin locks are not watched.
    for (kind, name, all) in [
        ("sem", "gate", &["overlock", "glibc"][..]),
        ("spin", "spin", &["overlock"]),
        ("cond", "turn", &["overlock", "glibc"]),
    ] {
        for locks in all {
            let mut said = Vec::new();
            // Threads hardly meet, and looks are late, where the CPUs are busy.
            let is_right = (0..4).any(|_| {
                let (profile, text) = profile_of(&program, &[kind], &["--locks", locks]);
                said.push(text);
                has_holders(&profile, name)
            });
            assert!(is_right, "{kind}, {locks}: {said:#?}");
        }
    }
}
