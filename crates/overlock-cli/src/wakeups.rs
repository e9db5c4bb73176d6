//! `overlock wakeups`

use std::fs;
use std::io;
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::exit::Exit;
use crate::terminal::print;

/// Measure what a wake-up costs on this machine, in a second
///
/// One thread sleeps until another wakes it, by the system call that all locks sleep by. The first
/// figure is the time from the wake-up to the sleeper's return, while the machine is otherwise
/// idle. `overlock run` saves it where a thread waits for less than that.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  overlock wakeups
  overlock wakeups --json | jq .median_us

Exit codes: 0, 2 bad use.")]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Wake-ups that are timed, one by one.
const WAKE_UPS: usize = 1000;
/// The sleeper is asleep by then, and its CPU idle.
const PAUSE: Duration = Duration::from_micros(300);
const ROUND_TRIPS: Duration = Duration::from_millis(300);

#[derive(Debug, Serialize)]
struct Figures {
    /// From the wake-up to the return.
    median_us: f64,
    p99_us: f64,
    round_trips_per_second: f64,
    /// The halt polling of a guest: how long an idle CPU polls before it halts. None if the kernel
    /// cannot.
    guest_halt_poll_us: Option<u64>,
}

pub fn run(args: &Args) -> Result<(), Exit> {
    let mut times = latencies();
    times.sort_unstable();
    let micros =
        |part: usize| times[(times.len() * part / 100).min(times.len() - 1)].as_secs_f64() * 1e6;
    let figures = Figures {
        median_us: micros(50),
        p99_us: micros(99),
        round_trips_per_second: round_trips(),
        guest_halt_poll_us: halt_poll(),
    };
    let text = match args.json {
        true => serde_json::to_string_pretty(&figures).unwrap_or_default() + "\n",
        false => text(&figures),
    };
    print(io::stdout().lock(), text.as_bytes())
}

fn text(figures: &Figures) -> String {
    let mut text = format!(
        "A wake-up takes {:.0} us (median; one in a hundred takes {:.0} us or more).\n\
         Two threads that only wake each other make {:.0} round trips a second.\n",
        figures.median_us, figures.p99_us, figures.round_trips_per_second
    );
    text += match figures.median_us {
        ..10.0 => "That is as on bare hardware: waits of a few us gain by `overlock run`.\n",
        _ => {
            "That is dear, as in most virtual machines: an idle CPU halts, and its hypervisor wakes it.\n\
             Programs whose threads pass work to each other gain most by `overlock run`.\n"
        }
    };
    if figures.guest_halt_poll_us == Some(0) {
        text += "The kernel's own means is off: /sys/module/haltpoll/parameters/guest_halt_poll_ns is 0.\n";
    }
    text
}

fn halt_poll() -> Option<u64> {
    let nanos = fs::read_to_string("/sys/module/haltpoll/parameters/guest_halt_poll_ns").ok()?;
    Some(nanos.trim().parse::<u64>().ok()? / 1000)
}

fn futex(word: &AtomicU32, operation: libc::c_int, value: u32) {
    let none: *const libc::timespec = ptr::null();
    // SAFETY: the word outlives the call.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            operation | libc::FUTEX_PRIVATE_FLAG,
            value,
            none,
        )
    };
}

/// Sleeps until the word has at least this value.
fn wait_for(word: &AtomicU32, value: u32) {
    loop {
        // Acquire: pairs with the release of `set`.
        let now = word.load(Acquire);
        if now >= value {
            return;
        }
        futex(word, libc::FUTEX_WAIT, now);
    }
}

fn set(word: &AtomicU32, value: u32) {
    word.store(value, Release);
    futex(word, libc::FUTEX_WAKE, 1);
}

fn latencies() -> Vec<Duration> {
    let word = AtomicU32::new(0);
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            (1..=WAKE_UPS as u32)
                .map(|number| {
                    wait_for(&word, number);
                    Instant::now()
                })
                .collect::<Vec<_>>()
        });
        let woken: Vec<Instant> = (1..=WAKE_UPS as u32)
            .map(|number| {
                // A waker that slept too would share its CPU with the sleeper.
                let start = Instant::now();
                while start.elapsed() < PAUSE {
                    std::hint::spin_loop();
                }
                let now = Instant::now();
                set(&word, number);
                now
            })
            .collect();
        let awake = sleeper.join().unwrap_or_default();
        woken
            .iter()
            .zip(awake)
            .map(|(woken, awake)| awake - *woken)
            .collect()
    })
}

fn round_trips() -> f64 {
    const OVER: u32 = u32::MAX;
    let (there, back) = (AtomicU32::new(0), AtomicU32::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1.. {
                loop {
                    match there.load(Acquire) {
                        OVER => return,
                        now if now == number => break,
                        now => futex(&there, libc::FUTEX_WAIT, now),
                    }
                }
                set(&back, number);
            }
        });
        let start = Instant::now();
        let mut number = 0;
        while start.elapsed() < ROUND_TRIPS {
            number += 1;
            set(&there, number);
            wait_for(&back, number);
        }
        let rate = f64::from(number) / start.elapsed().as_secs_f64();
        set(&there, OVER);
        rate
    })
}
