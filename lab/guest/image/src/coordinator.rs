//! The first vCPU directs the others: it starts and stops their rounds, watches their progress, and
//! prints the results. It takes no lock under test, and halts most of the time.

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize};

use overlock_core::platform::{Kick, backoff_sleep};
use overlock_core::{Cpu, Instant, Platform};
use overlock_guest::interrupts::Off;
use overlock_guest::options::{Options, Workload};
use overlock_guest::vcpu::{self, Counts, MAX_VCPUS};
use overlock_guest::{Guest, backend};

use crate::boot;
use crate::console::say;
use crate::registry::{self, Entry};
use crate::shared::{self, Phase, STOP, Worker};
use crate::{bench, events, torture};

/// Between two checks of the workers' progress.
const STEP_NS: u64 = 2_000_000;

/// How long the vCPUs may take to start.
const START_NS: u64 = 20_000_000_000;

/// The number of the round. Workers without one halt on it.
static ROUND: AtomicU32 = AtomicU32::new(0);
/// The round whose workers may begin. Those that are ready halt on it.
static BEGIN: AtomicU32 = AtomicU32::new(0);
static LOCK: AtomicPtr<Entry> = AtomicPtr::new(ptr::null_mut());
static WORKERS: AtomicUsize = AtomicUsize::new(0);
static TORTURES: AtomicBool = AtomicBool::new(false);
static STARTED: AtomicUsize = AtomicUsize::new(0);
static READY: AtomicUsize = AtomicUsize::new(0);
static DONE: AtomicUsize = AtomicUsize::new(0);

/// Works in rounds, for ever: all that a vCPU other than the first does.
pub fn work() -> ! {
    STARTED.fetch_add(1, Relaxed);
    let mut round = 0;
    loop {
        wait_while(&ROUND, round);
        round = ROUND.load(Acquire);
        if vcpu::index() <= WORKERS.load(Relaxed) {
            work_in(round);
        }
    }
}

fn work_in(round: u32) {
    let entry = lock();
    READY.fetch_add(1, Relaxed);
    wait_while(&BEGIN, round - 1);
    let before = vcpu::this().counts();
    // SAFETY: the coordinator has created the locks, with the entry's type, and drops them after
    // all workers are done.
    unsafe {
        if TORTURES.load(Relaxed) {
            (entry.torture)();
        } else {
            (entry.bench)();
        }
    }
    shared::own().keep(before, vcpu::this().counts());
    // Release: the coordinator sees what this vCPU has counted.
    DONE.fetch_add(1, Release);
}

/// Halts while the word holds this value.
fn wait_while(word: &AtomicU32, value: u32) {
    while word.load(Acquire) == value {
        Guest::halt(word, value, None);
    }
}

fn set_and_kick(word: &AtomicU32, value: u32) {
    // Release, pairing with the acquire in `wait_while`.
    word.store(value, Release);
    Guest::kick(ptr::from_ref(word), Kick::All);
}

fn lock() -> &'static Entry {
    // SAFETY: set before the first round, to an entry of the registry.
    unsafe { &*LOCK.load(Relaxed) }
}

/// How many vCPUs work in this round: those from 1 on.
pub fn workers() -> usize {
    WORKERS.load(Relaxed)
}

/// Whether interrupt handlers of this vCPU take locks now. Not after the stop: where waits are
/// longer than the time between two interrupts, tasks would never come to their end.
fn handlers_lock() -> bool {
    shared::own().handlers_lock.load(Relaxed) && STOP.load(Relaxed) == 0
}

/// The timer's interrupt.
pub fn timer() {
    if handlers_lock() {
        events::push(vcpu::index());
        // SAFETY: this vCPU works in a round of this lock.
        unsafe { (lock().handler)() };
        torture::set_timer();
    }
}

/// The interrupt that vCPUs send each other in the tester, and that the watchdog sends. It has
/// interrupted the code at `rip`.
pub fn call(rip: u64) {
    shared::own().interrupted_at.store(rip, Relaxed);
    if handlers_lock() {
        // SAFETY: this vCPU works in a round of this lock.
        unsafe { (lock().handler)() };
    }
}

/// Directs all rounds, and ends the guest.
pub fn run(options: &Options<'_>) -> ! {
    let end = Guest::now().plus_nanos(START_NS);
    while STARTED.load(Relaxed) + 1 < options.vcpus() {
        if Guest::now() > end {
            fail(format_args!("only {} vCPUs start", vcpu::count()));
        }
        backoff_sleep::<Guest>(STEP_NS);
    }
    let begin = Guest::now();
    say!(
        "{{\"begin\":\"{}\",\"vcpus\":{},\"cpus\":{}}}",
        backend::hypervisor(),
        options.vcpus(),
        Guest::parallelism()
    );
    check_halt_without_interrupts();
    bench::calibrate(options);
    for workers in options.counts() {
        run_rounds(options, workers);
    }
    let ms = Guest::now().nanos_since(begin) / 1_000_000;
    say!("{{\"end\":\"ok\",\"ms\":{ms}}}");
    boot::end(0)
}

/// Runs all rounds with so many workers. The locks alternate within a round, so that the machine's
/// drift hits all alike. Each round begins with another lock, so that none always follows the same
/// one.
fn run_rounds(options: &Options<'_>, workers: usize) {
    let is_named = !options.locks.is_empty();
    let locks =
        registry::all().filter(|lock| options.wants(lock.name) && (is_named || !lock.is_faulty));
    let count = locks.clone().count();
    for round in 0..options.rounds {
        for entry in locks.clone().cycle().skip(round).take(count) {
            LOCK.store(ptr::from_ref(entry).cast_mut(), Relaxed);
            match options.workload {
                Workload::Micro => bench::run(options, entry, workers),
                Workload::Torture => torture::run(options, entry, workers),
            }
        }
    }
}

/// Halts with interrupts off, although nobody kicks. If the back end cannot kick such a vCPU, that
/// returns at once. Otherwise it ends by its deadline.
fn check_halt_without_interrupts() {
    let word = AtomicU32::new(0);
    let off = Off::begin();
    let end = Guest::now().plus_nanos(STEP_NS);
    let until = backend::can_halt(false, false).then(|| end.into());
    Guest::halt(&word, 0, until);
    drop(off);
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Round {
    /// Nanoseconds of the measured part.
    pub nanos: u64,
    /// The sums of the workers' counts, over the whole round.
    pub counts: Counts,
    /// Workers that were preempted when the coordinator checked the progress, summed over its
    /// checks. 0 if the hypervisor does not say.
    pub preempted: u64,
}

/// The part of a round's time that goes before to warm up: until all vCPUs have had a CPU, and
/// compete for the lock.
const WARM_UP: u64 = 4;

/// Runs a round of the lock, and checks it. Ends the guest if something is wrong.
pub fn round(options: &Options<'_>, entry: &Entry, workers: usize) -> Round {
    if !(entry.create)() {
        fail(format_args!("{} cannot be created", entry.name));
    }
    shared::reset();
    READY.store(0, Relaxed);
    DONE.store(0, Relaxed);
    STOP.store(0, Relaxed);
    WORKERS.store(workers, Relaxed);
    TORTURES.store(options.workload == Workload::Torture, Relaxed);
    let number = ROUND.load(Relaxed) + 1;
    let mut preempted = 0;
    let mut watch = |until: Option<Instant>, count: Option<&AtomicUsize>| {
        preempted += watch(options, entry, workers, until, count);
    };
    set_and_kick(&ROUND, number);
    watch(None, Some(&READY));
    set_and_kick(&BEGIN, number);
    let nanos = options.ms * 1_000_000;
    watch(Some(Guest::now().plus_nanos(nanos / WARM_UP)), None);
    let begin = Guest::now();
    shared::begin_measuring();
    watch(Some(begin.plus_nanos(nanos)), None);
    shared::end_measuring();
    let nanos = Guest::now().nanos_since(begin);
    STOP.store(1, Relaxed);
    watch(None, Some(&DONE));
    TORTURES.store(false, Relaxed);
    let counts = check(entry, workers);
    // SAFETY: created above, and all workers are done.
    unsafe { (entry.drop)() };
    Round {
        nanos,
        counts,
        preempted,
    }
}

/// Waits until the time has come, or until all workers have counted themselves. Ends the guest if
/// no worker makes progress for too long. Returns how many workers it has found preempted.
fn watch(
    options: &Options<'_>,
    entry: &Entry,
    workers: usize,
    until: Option<Instant>,
    count: Option<&AtomicUsize>,
) -> u64 {
    let mut preempted = 0;
    let mut seen = u64::MAX;
    let mut since = Guest::now();
    loop {
        let now = Guest::now();
        let counted = count.map_or(0, |count| count.load(Acquire));
        if until.is_some_and(|until| now >= until) || counted == workers {
            return preempted;
        }
        let cpus = (1..=workers as u32).map(Cpu);
        preempted += cpus.filter(|cpu| Guest::preempted(*cpu)).count() as u64;
        let states = shared::workers(workers).iter();
        let progress = states.map(|state| state.operations.load(Relaxed));
        let progress = progress.sum::<u64>() + counted as u64;
        if progress != seen {
            (seen, since) = (progress, now);
        } else if now.nanos_since(since) > options.hang * 1_000_000 {
            report_hang(entry, workers);
        }
        let step = now.plus_nanos(STEP_NS);
        let nanos = until.map_or(step, |until| until.min(step)).nanos_since(now);
        backoff_sleep::<Guest>(nanos);
    }
}

/// How long a vCPU has to answer the watchdog's interrupt.
const ANSWER_NS: u64 = 100_000_000;

/// The watchdog's findings about a vCPU.
#[derive(Clone, Copy, Default)]
struct Found {
    phase: Phase,
    operations: u64,
    halted_on: usize,
    counts: Counts,
}

impl Found {
    fn of(state: &Worker, vcpu: usize) -> Self {
        Found {
            phase: state.phase(),
            operations: state.operations.load(Relaxed),
            halted_on: vcpu::all()[vcpu].halted_on(),
            counts: vcpu::all()[vcpu].counts(),
        }
    }
}

fn report_hang(entry: &Entry, workers: usize) -> ! {
    let states = shared::workers(workers);
    // All of it before the first interrupt, which ends halts: the vCPU may go on.
    let mut all = [Found::default(); MAX_VCPUS];
    for ((found, state), vcpu) in all.iter_mut().zip(states).zip(1..) {
        *found = Found::of(state, vcpu);
        state.interrupted_at.store(0, Relaxed);
    }
    (1..=workers).for_each(backend::call);
    backoff_sleep::<Guest>(ANSWER_NS);
    for ((found, state), vcpu) in all.iter().zip(states).zip(1..) {
        say!(
            "{{\"hang\":\"{}\",\"vcpu\":{vcpu},\"phase\":\"{:?}\",\"operations\":{},\
             \"rip\":{},\"halted_on\":{},\"halts\":{},\"kicks\":{}}}",
            entry.name,
            found.phase,
            found.operations,
            state.interrupted_at.load(Relaxed),
            found.halted_on,
            found.counts.halts,
            found.counts.kicks
        );
    }
    fail(format_args!("{}: no progress", entry.name));
}

/// Checks a round that is over: exclusion, wake-ups, and that the lock is at rest. Returns the sums
/// of the workers' counts.
fn check(entry: &Entry, workers: usize) -> Counts {
    let mut sum = Counts::default();
    // By tasks and by handlers.
    let (mut changes, mut handled) = (0, 0);
    for state in shared::workers(workers) {
        let kept = state.kept();
        sum.halts += kept.halts;
        sum.kicks += kept.kicks;
        sum.unkicked += kept.unkicked;
        changes += state.operations.load(Relaxed) - state.reads.load(Relaxed);
        handled += state.handled.load(Relaxed) - state.handled_reads.load(Relaxed);
    }
    let faults = [
        (
            shared::is_violated(),
            "two vCPUs held it at a time, or one changed what another read",
        ),
        (changes != shared::TASK.count(), "tasks have lost updates"),
        (
            handled != shared::HANDLER.count(),
            "handlers have lost updates",
        ),
        (
            sum.halts != sum.kicks + sum.unkicked,
            "halts are not kicks and those that ended without one",
        ),
        (!events::are_whole(), "events are lost"),
        // SAFETY: all workers are done, and it is not dropped yet.
        (unsafe { (entry.is_busy)() }, "it is not free at the end"),
    ];
    if let Some((_, why)) = faults.iter().find(|(wrong, _)| *wrong) {
        fail(format_args!("{}: {why}: {sum:?}", entry.name));
    }
    sum
}

/// Ends the guest after a fault.
fn fail(why: core::fmt::Arguments<'_>) -> ! {
    say!("{{\"end\":\"failed\",\"why\":\"{}\"}}", crate::Quoted(why));
    boot::end(1)
}
