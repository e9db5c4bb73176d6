//! A profile as a busy server has it, and names that files must escape.

#![allow(dead_code)] // each test program uses a part of it

use std::collections::HashMap;

use overlock_profile::{
    Blocked, Confidence, Distribution, Frame, FrameKind, Known, Lock, Lost, Parts, Process,
    Profile, Run, Stack, Sum, Thread, VERSION, Wait,
};

/// How large the profile is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub waits: u32,
    pub locks: u32,
    pub threads: u32,
}

pub const SMALL: Size = Size {
    waits: 300,
    locks: 12,
    threads: 8,
};

/// Ten thousand rows of a thousand threads.
pub const LARGE: Size = Size {
    waits: 10_000,
    locks: 200,
    threads: 1000,
};

const BEGAN_NS: u64 = 5_000_000_000_000;
const SECONDS: u64 = 10;

/// A name that ends a script, an attribute and a line, if it is not escaped.
pub const WILD: &str = "</script><b>\"'&;\u{2028} 42";

/// The same profile for the same size. Times of waits differ by `factor`.
pub fn profile(size: Size, factor: f64) -> Profile {
    let mut random = Random(1);
    let mut places = Places::new();
    let mut profile = Profile {
        version: VERSION,
        run: run(),
        processes: vec![
            process(4000, "server"),
            process(4001, "worker <&> \"quoted\""),
        ],
        lost: Lost {
            single_waits: 17,
            short_waits: 1234,
            ..Lost::default()
        },
        ..Profile::default()
    };
    names(&mut profile);
    for index in 0..size.threads {
        profile.threads.push(Thread {
            process: u32::from(index % 10 == 9),
            tid: 4000 + index,
            name: format!("worker {index}"),
            cpu_ns: (index % 7 != 0).then(|| random.below(9_000_000_000)),
            wait_ns: 0,
            held_ns: (index % 5 != 0).then(|| random.below(2_000_000_000)),
        });
    }
    for index in 0..size.locks {
        profile.locks.push(lock(index, &mut random));
    }
    for _ in 0..size.waits {
        let wait = wait(&mut profile, &mut places, size, factor, &mut random);
        profile.waits.push(wait);
    }
    chain(&mut profile.waits);
    profile
}

fn run() -> Run {
    Run {
        command: ["/usr/sbin/server", "--threads", "1000"]
            .map(str::to_owned)
            .to_vec(),
        date_s: 1_790_000_000,
        began_ns: BEGAN_NS,
        seconds: SECONDS as f64,
        source: "drop-in".to_owned(),
        locks: "overlock".to_owned(),
        threshold_ns: 1000,
        cpus: 8,
        quota: Some(4.0),
        known: Known {
            ran: Confidence::Measured,
            preempted: Confidence::Sampled,
            throttled: Confidence::Sampled,
            blocked: Confidence::Sampled,
            handover: Confidence::Measured,
            no_cpu: Confidence::Unknown,
        },
    }
}

fn process(pid: u32, program: &str) -> Process {
    Process {
        pid,
        program: program.to_owned(),
    }
}

/// 60 stacks: each begins with a wrapper, and has an inlined function.
fn names(profile: &mut Profile) {
    let mut frame = |function: &str, line: u32, kind, is_wrapper| {
        profile.frames.push(Frame {
            function: function.to_owned(),
            file: Some("src/pool.c".to_owned()),
            line: Some(line),
            module: Some("/usr/sbin/server".to_owned()),
            build_id: Some("00ff00ff".to_owned()),
            offset: Some(0x1000 + u64::from(line)),
            kind,
            is_wrapper,
        });
        profile.frames.len() as u32 - 1
    };
    let wrapper = frame("uv_mutex_lock", 1, FrameKind::Native, true);
    let main = frame("main", 2, FrameKind::Native, false);
    let serve = frame("serve<&T>", 3, FrameKind::Native, false);
    let wild = frame(WILD, 4, FrameKind::Jit, false);
    for index in 0..60 {
        let leaf = frame(
            &format!("task_{index}"),
            100 + index,
            FrameKind::Native,
            false,
        );
        let inlined = frame(
            &format!("pool::get<{index}>"),
            200 + index,
            FrameKind::Inlined,
            false,
        );
        let mut stack = vec![wrapper, inlined, leaf, serve, main];
        if index % 9 == 0 {
            stack.insert(3, wild);
        }
        profile.stacks.push(Stack(stack));
    }
    profile.stacks.push(Stack(Vec::new()));
    profile.stacks.push(Stack(vec![wrapper]));
}

fn lock(index: u32, random: &mut Random) -> Lock {
    Lock {
        process: u32::from(index % 10 == 9),
        name: match index {
            0 => WILD.to_owned(),
            1 => String::new(),
            _ => format!("lock_{index}"),
        },
        kind: ["mutex", "read", "write", "spin", "cond"][index as usize % 5].to_owned(),
        is_event: index % 5 == 4,
        address: 0x7f00_0000_0000 + u64::from(index) * 64,
        objects: 1 + u64::from(index % 3),
        init: index.is_multiple_of(2).then_some(index % 60),
        acquisitions: (index % 4 != 3).then(|| 1000 + random.below(1_000_000)),
        is_estimated: index % 4 == 1,
        distribution: Distribution::default(),
        hold_avg_ns: Some(500.0 + f64::from(index)),
        hold_max_ns: Some(90_000),
    }
}

/// The place of the sum of a lock, a waiter's and a holder's stack.
type Places = HashMap<(u32, u32, Option<u32>), usize>;

fn wait(
    profile: &mut Profile,
    places: &mut Places,
    size: Size,
    factor: f64,
    random: &mut Random,
) -> Wait {
    // Low numbers are hot.
    let hot = random.below(u64::from(size.locks)) * random.below(100) / 100;
    let index = hot as u32;
    let thread = random.below(u64::from(size.threads)) as u32;
    let stack = random.below(profile.stacks.len() as u64) as u32;
    // From microseconds to tens of milliseconds.
    let scale = 1u64 << random.below(14);
    let wait_ns = ((2000 + random.below(2000) * scale) as f64 * factor) as u64;
    let began_ns = BEGAN_NS + random.below(SECONDS * 1_000_000_000 - 50_000_000);
    let is_known = random.below(10) < 9;
    let parts = parts(wait_ns, random);
    let wait = Wait {
        thread,
        lock: index,
        stack,
        began_ns,
        wait_ns,
        holder: is_known.then(|| (thread + 1) % size.threads),
        holder_stack: is_known.then(|| (stack + 7) % 60),
        released_ns: is_known.then_some(began_ns + wait_ns * 9 / 10),
        gave_up: random.below(50) == 0,
        parts,
        behind: None,
    };
    profile.threads[thread as usize].wait_ns += wait_ns;
    profile.locks[index as usize].distribution.record(wait_ns);
    let key = (wait.lock, wait.stack, wait.holder_stack);
    let next = profile.sums.len();
    let at = *places.entry(key).or_insert(next);
    if at == next {
        profile.sums.push(Sum {
            lock: wait.lock,
            stack: wait.stack,
            holder_stack: wait.holder_stack,
            ..Sum::default()
        });
    }
    let sum = &mut profile.sums[at];
    sum.waits += 1;
    sum.wait_ns += wait_ns;
    sum.max_ns = sum.max_ns.max(wait_ns);
    sum.gave_up += u64::from(wait.gave_up);
    sum.passed += random.below(3);
    sum.parts.add(&wait.parts);
    wait
}

fn parts(wait_ns: u64, random: &mut Random) -> Parts {
    let tenth = wait_ns / 10;
    let mut parts = Parts {
        ran_ns: tenth * random.below(4),
        preempted_ns: tenth,
        throttled_ns: tenth * random.below(2),
        blocked: vec![Blocked {
            by: ["write", "page fault", "lock lock_3", "fsync"][random.below(4) as usize]
                .to_owned(),
            ns: tenth * 2,
        }],
        handover_ns: tenth / 2,
        no_cpu_ns: tenth,
        unknown_ns: 0,
    };
    parts.unknown_ns = wait_ns - parts.total_ns();
    parts
}

/// Makes some waits wait behind earlier ones; the first two behind each other, as damaged documents
/// may have it.
fn chain(waits: &mut [Wait]) {
    for index in (5..waits.len()).step_by(5) {
        waits[index].behind = Some(index as u32 - 3);
        waits[index - 3].behind = (index > 20).then(|| index as u32 - 7);
    }
    waits[0].behind = Some(1);
    waits[1].behind = Some(0);
}

/// Knuth's MMIX generator.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 16) % limit
    }
}
