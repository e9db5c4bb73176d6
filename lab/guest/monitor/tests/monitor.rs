//! The monitor with tiny guests: a few instructions each. Skipped without /dev/kvm.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::io::ErrorKind;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use overlock_vm::monitor::{self, End, Error, Settings};

/// The address of each guest, and of its first instruction.
const BASE: u64 = 0x10_0000;
const LIMIT: Duration = Duration::from_secs(120);
/// In one attempt after another, what a vCPU has to begin.
const LATE_MS: [u32; 4] = [20, 300, 3_000, 30_000];

/// mov edx, port; mov eax, value; out dx, eax
fn request(port: u16, value: u32) -> Vec<u8> {
    let mut code = vec![0xba];
    code.extend(u32::from(port).to_le_bytes());
    code.push(0xb8);
    code.extend(value.to_le_bytes());
    code.push(0xef);
    code
}

const HALT: u16 = 0x500;
const KICK: u16 = 0x504;
const PUT: u16 = 0x508;
const DONE: u16 = 0x50c;
/// jmp to itself.
const SPIN: [u8; 2] = [0xeb, 0xfe];
/// ud2
const UNDEFINED: [u8; 2] = [0x0f, 0x0b];

/// test rdi, rdi; jnz over `first`: the first vCPU executes that, the others go on behind it.
fn first_and_others(first: &[u8], others: &[u8]) -> Vec<u8> {
    let mut code = vec![0x48, 0x85, 0xff, 0x75, first.len() as u8];
    code.extend(first);
    code.extend(others);
    code
}

/// An image whose only segment is the code.
fn image(code: &[u8]) -> Vec<u8> {
    let mut file = vec![0; 64 + 2 * 56];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"\x7fELF\x02\x01");
    put(32, &64u64.to_le_bytes());
    put(54, &[56, 0, 2, 0]);
    let contents = 64 + 2 * 56;
    let segments = [
        (1u32, contents, code.len() as u64),
        (4, contents + code.len() as u64, 64),
    ];
    for (header, (kind, offset, size)) in [64, 120].into_iter().zip(segments) {
        put(header, &kind.to_le_bytes());
        put(header + 8, &offset.to_le_bytes());
        put(header + 24, &BASE.to_le_bytes());
        put(header + 32, &size.to_le_bytes());
    }
    file.extend(code);
    for word in [9u32, 40, 1] {
        file.extend(word.to_le_bytes());
    }
    file.extend(*b"overlock\0\0\0\0");
    // Entry, boot block, boot line, GS.
    for word in [BASE, BASE + 0x1000, BASE + 0x2000, BASE + 0x3000, 128] {
        file.extend(word.to_le_bytes());
    }
    file
}

/// One guest at a time, so that each test sees its own threads alone.
fn alone() -> Option<MutexGuard<'static, ()>> {
    static ALONE: Mutex<()> = Mutex::new(());
    let kvm = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/kvm");
    if kvm.is_err() {
        eprintln!("skipped: /dev/kvm cannot be opened");
        return None;
    }
    Some(
        ALONE
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner()),
    )
}

/// Runs the code on two vCPUs. Returns how it ended, and what it has printed.
fn run(code: &[u8], limit: Duration) -> (Result<u32, Error>, String) {
    let (end, printed) = run_until(code, limit, || false);
    (end.map(|end| end.code), printed)
}

/// The same, cancelled once `is_cancelled` says so.
fn run_until(
    code: &[u8],
    limit: Duration,
    is_cancelled: impl Fn() -> bool,
) -> (Result<End, Error>, String) {
    let printed = Arc::new(Mutex::new(String::new()));
    let print = Arc::clone(&printed);
    let settings = Settings {
        vcpus: 2,
        line: "",
        limit,
    };
    let print = move |text: &str| {
        print.lock().unwrap().push_str(text);
        Ok(())
    };
    let end = monitor::run(&image(code), &settings, print, is_cancelled);
    let printed = printed.lock().unwrap().clone();
    (end, printed)
}

fn threads_of_vcpus() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let names = threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("comm")).ok());
    names.filter(|name| name.starts_with("vcpu ")).count()
}

#[test]
fn a_guest_prints_and_ends_with_its_code() {
    let Some(_alone) = alone() else { return };
    let text = b"hello\n";
    let mut code = first_and_others(
        &[request(PUT, BASE as u32 + 0x40), request(DONE, 7)].concat(),
        &SPIN,
    );
    code.resize(0x40, 0);
    code.extend((text.len() as u32).to_le_bytes());
    code.extend((BASE as u32 + 0x48).to_le_bytes());
    code.extend(text);
    let (end, printed) = run(&code, LIMIT);
    assert_eq!(end.unwrap(), 7);
    assert_eq!(printed, "hello\n");
    assert_eq!(threads_of_vcpus(), 0);
}

/// Fails where a kick that comes before the halt is lost: the first vCPU halts twice, and whichever
/// halt is late finds the kick.
#[test]
fn a_kick_ends_a_halt_that_has_begun_or_not() {
    let Some(_alone) = alone() else { return };
    let first = [request(HALT, 0), request(DONE, 0)].concat();
    for others in [
        [request(KICK, 0), SPIN.to_vec()].concat(),
        // Later: the halt has a limit of 20 ms and nobody ends it before.
        [request(HALT, 20_000), request(KICK, 0), SPIN.to_vec()].concat(),
    ] {
        let (end, _) = run(&first_and_others(&first, &others), LIMIT);
        assert_eq!(end.unwrap(), 0);
    }
}

#[test]
fn a_halt_ends_by_its_limit() {
    let Some(_alone) = alone() else { return };
    let begin = Instant::now();
    let first = [request(HALT, 30_000), request(DONE, 0)].concat();
    let (end, _) = run(&first_and_others(&first, &SPIN), LIMIT);
    assert_eq!(end.unwrap(), 0);
    assert!(begin.elapsed() >= Duration::from_millis(30));
}

#[test]
fn a_guest_that_hangs_ends_by_the_limit_and_its_places_are_known() {
    let Some(_alone) = alone() else { return };
    let first = [request(HALT, 0), SPIN.to_vec()].concat();
    let have_begun = LATE_MS.into_iter().any(|limit| {
        let (end, _) = run(
            &first_and_others(&first, &SPIN),
            Duration::from_millis(limit.into()),
        );
        let Err(Error::Limit(places)) = end else {
            panic!("{end:?}")
        };
        assert_eq!(places.len(), 2);
        assert_eq!(threads_of_vcpus(), 0);
        places[0].halted && !places[1].halted && places[1].rip == BASE + 5 + first.len() as u64
    });
    assert!(have_begun);
}

#[test]
fn a_guest_ends_when_its_caller_wants_it() {
    let Some(_alone) = alone() else { return };
    let begin = Instant::now();
    let (end, _) = run_until(&SPIN, LIMIT, || begin.elapsed() > Duration::from_millis(20));
    let Err(Error::Limit(places)) = end else {
        panic!("{end:?}")
    };
    assert_eq!(places.len(), 2);
    assert!(begin.elapsed() < LIMIT / 2);
    assert_eq!(threads_of_vcpus(), 0);
}

/// The first vCPU ends the guest while the other spins.
#[test]
fn the_places_of_all_are_known_at_the_end() {
    let Some(_alone) = alone() else { return };
    let has_begun = LATE_MS.into_iter().any(|halt| {
        let first = [request(HALT, 1000 * halt), request(DONE, 1)].concat();
        let (end, _) = run_until(&first_and_others(&first, &SPIN), LIMIT, || false);
        let End { code, places } = end.unwrap();
        assert_eq!((code, places.len()), (1, 2));
        places[1].rip == BASE + 5 + first.len() as u64
    });
    assert!(has_begun);
}

#[test]
fn a_fault_and_an_unknown_request_end_the_guest() {
    let Some(_alone) = alone() else { return };
    for first in [
        UNDEFINED.to_vec(),
        request(0x600, 0),
        request(PUT, 0xffff_0000),
    ] {
        let (end, _) = run(&first_and_others(&first, &SPIN), LIMIT);
        let Err(Error::Fault(place, _)) = end else {
            panic!("{end:?}")
        };
        assert_eq!(place.vcpu, 0);
    }
    assert_eq!(threads_of_vcpus(), 0);
}

#[test]
fn wrong_settings_are_refused() {
    let file = image(&SPIN);
    let run = |vcpus, line| {
        let settings = Settings {
            vcpus,
            line,
            limit: LIMIT,
        };
        monitor::run(&file, &settings, |_| Ok(()), || false)
    };
    assert!(matches!(run(0, ""), Err(Error::Settings(_))));
    assert!(matches!(run(65, ""), Err(Error::Settings(_))));
    assert!(matches!(run(1, &"x".repeat(2000)), Err(Error::Settings(_))));
    assert!(matches!(
        monitor::run(
            b"",
            &Settings {
                vcpus: 1,
                line: "",
                limit: LIMIT
            },
            |_| Ok(()),
            || false
        ),
        Err(Error::Image(_))
    ));
}

#[test]
fn a_guest_whose_output_is_lost_ends() {
    let Some(_alone) = alone() else { return };
    let settings = Settings {
        vcpus: 1,
        line: "",
        limit: LIMIT,
    };
    let mut code = [request(PUT, BASE as u32 + 0x40), SPIN.to_vec()].concat();
    // An empty text.
    code.resize(0x48, 0);
    let print = |_: &str| Err(ErrorKind::BrokenPipe.into());
    let end = monitor::run(&image(&code), &settings, print, || false);
    let Err(Error::Fault(_, why)) = end else {
        panic!("{end:?}")
    };
    assert!(why.contains("output is lost"), "{why}");
}
