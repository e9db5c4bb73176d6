//! The sources, and the sites that are not for the explorer.

use super::Source;

/// Sites that some locks of a source never reach, by their policy or since they have no use for
/// them. Others do. A lock that reaches one of them is wrong.
#[derive(Clone, Copy, Debug)]
pub struct Unreachable {
    /// The path of the source.
    pub source: &'static str,
    /// The sites: their functions, or parts of their lines.
    pub sites: &'static [&'static str],
    /// The locks.
    pub locks: &'static [&'static str],
}

/// Sites that need another world than a checker has, and the unit test that reaches them.
#[derive(Clone, Copy, Debug)]
pub struct UnitTested {
    /// The path of the source.
    pub source: &'static str,
    /// The function, or a part of the line.
    pub site: &'static str,
    /// The test's file, below the folder of the crates.
    pub file: &'static str,
    /// The test.
    pub test: &'static str,
    /// Why no checker does.
    pub why: &'static str,
}

/// Functions that are no part of a lock's work: snapshots, statistics, what a child of fork does,
/// and what a token's owner does between its uses.
pub const IGNORED: [&str; 10] = [
    "count_wake",
    "forget",
    "forget_waiters",
    "is_contended",
    "is_in_use",
    "is_locked",
    "is_sole_reader",
    "is_write_locked",
    "reset",
    "waits_with_another",
];

macro_rules! sources {
    ($($locks:expr => $($path:literal)*;)*) => {
        &[$($(Source {
            path: concat!("overlock-", $path),
            text: include_str!(concat!("../../../../crates/overlock-", $path)),
            locks: $locks,
        }),*),*]
    };
}

const CANCELLED: &[&str] = &[
    "overlock",
    "kernel_mutex",
    "kernel_mutex_inside",
    "kernel_mutex_none",
    "semaphore",
    "condvar",
];
const LISTED: &[&str] = &[
    "kernel_mutex",
    "kernel_mutex_inside",
    "kernel_mutex_none",
    "rwsem",
    "rwsem_none",
    "rwsem_count",
    "ww_mutex",
    "semaphore",
    "condvar",
    "once",
    "barrier",
];

/// All sources with sites, and the locks that must reach them.
pub const SOURCES: &[Source] = sources! {
    &["overlock_rw"] => "core/src/rw/overlock_rw/upgrade.rs";
    &["overlock_rw", "percpu_rwsem"] =>
        "core/src/rw/overlock_rw.rs"
        "core/src/rw/overlock_rw/wait.rs";
    &["percpu_rwsem"] => "core/src/rw/percpu_rwsem.rs";
    &["barrier"] => "core/src/sleep/barrier.rs";
    CANCELLED => "core/src/sleep/cancel.rs";
    &["condvar"] => "core/src/sleep/condvar.rs";
    &["once"] => "core/src/sleep/once.rs";
    &["overlock", "fair_overlock"] => "core/src/sleep/overlock.rs";
    &["overlock"] => "core/src/sleep/reentrant.rs";
    &["rt_mutex"] => "core/src/sleep/rt_mutex.rs";
    &["semaphore"] => "core/src/sleep/semaphore.rs";
    LISTED => "core/src/sleep/wait_list.rs";
    &["ww_mutex"] =>
        "core/src/sleep/ww_mutex.rs"
        "core/src/sleep/ww_mutex/class.rs"
        "core/src/sleep/ww_mutex/context.rs"
        "core/src/sleep/ww_mutex/wait.rs";
    &["qrwlock"] => "family/src/rw/qrwlock.rs";
    &["kernel_mutex", "kernel_mutex_inside", "kernel_mutex_none"] =>
        "family/src/sleep/mutex.rs"
        "family/src/sleep/mutex/wait.rs";
    &[
        "kernel_mutex", "kernel_mutex_inside", "kernel_mutex_none", "rwsem", "rwsem_none",
        "rwsem_count", "osq",
    ] =>
        "family/src/sleep/osq.rs";
    &["rwsem", "rwsem_none", "rwsem_count"] =>
        "family/src/sleep/rwsem.rs"
        "family/src/sleep/rwsem/queue.rs"
        "family/src/sleep/rwsem/spin.rs"
        "family/src/sleep/rwsem/wake.rs"
        "family/src/sleep/rwsem/word.rs";
    &["backoff_ticket"] => "family/src/spin/backoff_ticket.rs";
    &["fast_queue", "fast_queue_lazy"] =>
        "family/src/spin/fast_queue.rs"
        "family/src/spin/fast_queue/context.rs"
        "family/src/spin/fast_queue/tickets.rs";
    &["fast_queue_lazy"] => "family/src/spin/fast_queue/lazy.rs";
    &["hemlock"] => "family/src/spin/hemlock.rs";
    &["hybrid", "hybrid_short"] => "family/src/spin/hybrid.rs";
    &["mcs"] => "family/src/spin/mcs.rs";
    &["hybrid", "hybrid_short", "pv_queued"] =>
        "family/src/spin/pv.rs"
        "family/src/spin/pv/lock_hash.rs"
        "family/src/spin/pv/lock_hash/line.rs";
    &["pv_queued"] => "family/src/spin/pv_queued.rs";
    &["pv_ticket", "pv_ticket_small", "pv_ticket_tail_flag"] =>
        "family/src/spin/pv_ticket.rs"
        "family/src/spin/pv_ticket/flag.rs"
        "family/src/spin/pv_ticket/waiters.rs";
    &["queued", "qrwlock"] => "family/src/spin/queued.rs";
    &["ticket", "backoff_ticket"] => "family/src/spin/ticket.rs";
    &["unfair"] => "family/src/spin/unfair.rs";
};

macro_rules! unreachable_sites {
    ($($source:literal, $locks:expr => $($site:literal)*;)*) => {
        &[$(Unreachable {
            source: concat!("overlock-", $source),
            sites: &[$($site),*],
            locks: $locks,
        }),*]
    };
}

/// All of these.
pub const UNREACHABLE: &[Unreachable] = unreachable_sites! {
    "core/src/rw/overlock_rw.rs", &["overlock_rw"] => "is_write_locked_acquire";
    "core/src/sleep/wait_list.rs", &[
        "kernel_mutex", "kernel_mutex_inside", "kernel_mutex_none", "rwsem", "rwsem_none",
        "rwsem_count", "ww_mutex", "semaphore", "once", "barrier",
    ] => "requeue" "P::halt(word";
    "core/src/sleep/overlock.rs", &["fair_overlock"] => "mark" "try_lock_marked";
    "core/src/sleep/wait_list.rs", LISTED => "halt_cancellable";
    "core/src/sleep/wait_list.rs", &[
        "kernel_mutex", "kernel_mutex_inside", "kernel_mutex_none", "rwsem", "rwsem_none",
        "rwsem_count", "semaphore", "once", "barrier",
    ] => "sleep_until";
    "core/src/sleep/wait_list.rs", &[
        "kernel_mutex", "kernel_mutex_inside", "kernel_mutex_none", "semaphore", "once", "barrier",
    ] => "state";
    "core/src/sleep/wait_list.rs", &[
        "kernel_mutex", "kernel_mutex_inside", "kernel_mutex_none", "rwsem", "rwsem_none",
        "rwsem_count", "ww_mutex", "semaphore", "once",
    ] => "push_ranked";
    "core/src/sleep/wait_list.rs", &["ww_mutex"] => "sleep";
    "core/src/sleep/wait_list.rs", &["semaphore"] => "lock" "wait_lock.store(FREE";
    "core/src/sleep/wait_list.rs", &[
        "rwsem", "rwsem_none", "rwsem_count", "ww_mutex", "once", "barrier",
    ] => "cancel.store";
    "family/src/sleep/mutex/wait.rs", &["kernel_mutex", "kernel_mutex_none"] => "let handed_off";
    "family/src/sleep/rwsem/spin.rs", &["rwsem"] => "Spin::Polls";
    "family/src/sleep/rwsem/spin.rs", &["rwsem_none"] =>
        "disable" "reenable_spinning" "wait_for_readers" "spin_behind_writer";
    "family/src/sleep/rwsem/spin.rs", &["rwsem_count"] =>
        "reenable_spinning" "spin_behind_writer" "Spin::Until(end), |now";
    "family/src/spin/fast_queue/tickets.rs", &["fast_queue"] => ".below.load" "(seen, rest";
    "family/src/spin/pv_ticket/flag.rs", &["pv_ticket", "pv_ticket_small"] =>
        "let before = W::load" "  W::serve" "if tail" "release_slow";
    "family/src/spin/pv_ticket/flag.rs", &["pv_ticket_tail_flag"] =>
        "let old = W::serve" "acquired";
    "family/src/spin/ticket.rs", &["ticket"] => "ahead";
};

macro_rules! unit_tested {
    ($($source:literal, $site:literal => $file:literal, $test:ident: $why:literal;)*) => {
        &[$(UnitTested {
            source: concat!("overlock-", $source),
            site: $site,
            file: concat!("overlock-", $file),
            test: stringify!($test),
            why: $why,
        }),*]
    };
}

/// All of these.
pub const UNIT_TESTED: &[UnitTested] = unit_tested! {
    "core/src/rw/percpu_rwsem.rs", "free_entry" => "core/src/rw/percpu_rwsem/tests.rs",
    a_thread_that_reads_more_locks_than_it_has_entries_counts_itself_in_the_others:
        "a thread would have to read another lock too";
    "core/src/sleep/condvar.rs", "wake_in_order" => "core/src/sleep/condvar/tests.rs",
    all_waiters_are_woken_at_once_where_one_has_a_rank: "no scenario of it has ranks";
    "core/src/sleep/wait_list.rs", "rank_of(other).load" => "core/src/sleep/condvar/tests.rs",
    a_notification_is_for_the_highest_rank: "the same";
    "core/src/sleep/semaphore.rs", "rank_of(other).load" => "core/src/sleep/semaphore/tests.rs",
    the_highest_rank_is_served_first: "the same";
    "core/src/sleep/once.rs", "state" => "core/src/sleep/once/tests.rs",
    callers_sleep_while_a_run_is_in_progress: "a snapshot";
    "core/src/sleep/overlock.rs", "P::kick(&self.word" => "core/src/sleep/overlock/tests.rs",
    an_adopter_kicks_after_an_unlock_that_came_before_the_requeue:
        "an unlock in the middle of an adoption is one departure too many";
    "core/src/sleep/overlock.rs", "fetch_or(TIGHT" => "core/src/sleep/overlock/tests/turns.rs",
    a_waiter_marks_a_lock_whose_owner_is_soon_back: "one wait in 32 looks, by the clock";
    "core/src/sleep/overlock.rs", "fetch_and(!TIGHT" => "core/src/sleep/overlock/tests/turns.rs",
    a_waiter_leaves_a_tight_lock_to_its_owner_for_a_turn:
        "two looks in a row at a tight lock are too many";
    "core/src/sleep/rt_mutex.rs", "store(0, Release)" => "core/src/sleep/rt_mutex/tests.rs",
    a_lock_held_before_a_fork_is_unlocked_under_the_new_id: "the process would have to fork";
    "core/src/sleep/wait_list.rs", "is_busy" => "core/src/sleep/condvar/tests.rs",
    drain_waits_for_a_waiter_that_gives_up: "no scenario frees a condition variable";
    "core/src/sleep/wait_list.rs", "P::kick(&node.kicks, Kick::One);" =>
    "core/src/sleep/overlock/tests.rs",
    an_adopter_kicks_after_an_unlock_that_came_before_the_requeue: "all checkers can requeue";
    "family/src/rw/qrwlock.rs", "report_full" => "family/src/rw/qrwlock/tests.rs",
    a_reader_more_than_can_be_counted_does_not_get_in: "it takes 4,194,304 readers";
    "family/src/sleep/rwsem/spin.rs", "compare_exchange(0, DISABLED" =>
    "family/src/sleep/rwsem/tests/spin.rs",
    a_writer_that_came_in_time_stays_the_owner: "its failure is one departure too many";
    "family/src/spin/fast_queue/lazy.rs", "Err(_) if" => "family/src/spin/fast_queue/tests.rs",
    a_lazy_lock_that_finds_no_tickets_fails_before_it_changes_anything:
        "all tickets would have to be in use";
    "family/src/spin/pv/lock_hash.rs", ".compare_exchange" => "family/src/spin/pv/lock_hash.rs",
    a_search_that_misses_the_free_bucket_is_repeated: "it takes more locks";
    "family/src/spin/pv_ticket.rs", "refuse" => "family/src/spin/pv_ticket/tests.rs",
    a_refused_waiter_with_others_behind_it_passes_its_turn_on: "it takes 28,672 waiters";
    "family/src/spin/ticket.rs", "refuse" => "family/src/spin/ticket/tests.rs",
    a_waiter_too_many_is_refused_and_leaves_no_trace: "it takes 57,344 waiters";
};
