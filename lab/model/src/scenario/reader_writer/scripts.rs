//! The scenarios for reader-writer locks, a line for each.

use crate::scenario::{Length, Setting};

/// One thing that a thread does with the lock, down to its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Reads.
    Read,
    /// Reads if that needs no waiting.
    TryRead,
    /// Reads unless so many nanoseconds pass first.
    ReadWithin(u64),
    /// Reads, and stays for so many nanoseconds.
    ReadFor(u64),
    /// Reads under another lock.
    ReadOther,
    /// Reads, and has written another lock meanwhile.
    ReadUnderOther,
    /// Reads, whoever waits.
    ReadPast,
    /// Reads; whoever waits, after a while.
    ReadLater,
    /// Reads if that needs no waiting, whoever waits.
    TryReadPast,
    /// Reads, whoever waits, unless so many nanoseconds pass first.
    ReadPastWithin(u64),
    /// Reads, then reads again, whoever waits.
    ReadAgain,
    /// Reads with a rank.
    ReadRanked,
    /// Writes with a rank.
    WriteRanked,
    /// Writes with a rank, unless so many nanoseconds pass first.
    WriteRankedWithin(u64),
    /// Writes.
    Write,
    /// Writes if that needs no waiting.
    TryWrite,
    /// Writes unless so many nanoseconds pass first.
    WriteWithin(u64),
    /// Writes; meanwhile, or never, a signal comes whose handler tries to read.
    Interrupted,
    /// Reads; meanwhile, or never, a signal comes whose handler reads too, past writers that wait.
    ReadTwice,
    /// Writes, then goes on reading.
    Downgrade,
    /// Reads as the upgradable reader.
    Upgradable,
    /// The same, and writes another lock meanwhile: correct, since no reader waits for it.
    UpgradableOverOther,
    /// The same if that needs no waiting.
    TryUpgradable,
    /// The same unless so many nanoseconds pass first.
    UpgradableWithin(u64),
    /// Reads as the upgradable reader, then writes.
    Upgrade,
    /// The same if the upgrade needs no waiting.
    TryUpgrade,
    /// The same unless so many nanoseconds pass first.
    UpgradeWithin(u64),
    /// Reads as the upgradable reader, then as a plain one.
    DowngradeUpgradable,
    /// Writes, then reads as the upgradable reader.
    DowngradeToUpgradable,
    /// Reads, and gives the lock to those that wait.
    ReadFair,
    /// Writes, and gives the lock to those that wait.
    WriteFair,
    /// Reads as the upgradable reader, and gives the lock to those that wait.
    UpgradableFair,
    /// Reads, lets others come, and reads on.
    BumpRead,
    /// Writes, lets others come, and writes on.
    BumpWrite,
}

use Act::*;

/// A scenario: what each thread does, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Script(pub &'static str, pub Setting, pub &'static [&'static [Act]]);

const PLAIN: Setting = Setting::PLAIN;
const ONE_NODE: Setting = Setting::ONE_NODE;
const NO_NODE: Setting = Setting::NO_NODE;
const SLOW: Setting = Setting::SLOW;
/// A waiter finds at its next reading of the clock that it has waited for milliseconds.
const VERY_SLOW: Setting = Setting {
    tick: 5_000_000,
    ..PLAIN
};
/// Long enough for the lock to learn: random walks.
const LONG: Setting = Setting {
    length: Length::Long,
    ..PLAIN
};
/// A writer that finds a reader there has spun and fallen asleep when it leaves.
const STAYS: Setting = Setting::TIMED;
/// The same for one that cannot fall asleep.
const STAYS_NO_NODE: Setting = Setting { slots: 0, ..STAYS };
const SIGNALS: Setting = Setting::SIGNALS;

/// For every reader-writer lock that can do what a line asks.
#[rustfmt::skip]
pub const SCRIPTS: &[Script] = &[
    Script("write-write",   PLAIN,    &[&[Write], &[Write]]),
    Script("read-write",    PLAIN,    &[&[Read], &[Write]]),
    Script("again",         PLAIN,    &[&[Write, Read], &[Read, Write]]),
    Script("two-readers",   PLAIN,    &[&[Read], &[Read], &[Write]]),
    Script("two-writers",   PLAIN,    &[&[Write], &[Write], &[Read]]),
    Script("three-readers", PLAIN,    &[&[Write], &[Read], &[Read], &[Read]]),
    Script("alternating",   PLAIN,    &[&[Write], &[Read], &[Write], &[Read]]),
    Script("another-lock",  PLAIN,    &[&[ReadOther, Read, Read, ReadOther], &[Write]]),
    Script("try",           PLAIN,    &[&[Write, Read], &[TryRead, TryWrite], &[TryWrite, TryRead]]),
    Script("within",        PLAIN,    &[&[Write, Read], &[ReadWithin(1_000), Write], &[WriteWithin(1_000)]]),
    Script("give-up",       PLAIN,    &[&[Read, Write], &[WriteWithin(1_000)], &[Read, Read]]),
    Script("downgrade",     PLAIN,    &[&[Downgrade], &[Read], &[Write]]),
    Script("upgrade",       PLAIN,    &[&[Upgrade], &[Read], &[Upgrade]]),
    Script("upgrade-write", PLAIN,    &[&[Upgrade], &[Write], &[Upgradable, Read]]),
    Script("try-upgrade",   PLAIN,    &[&[TryUpgrade], &[Read, TryUpgradable], &[Write]]),
    Script("upgrade-within", PLAIN,   &[&[UpgradeWithin(1_000)], &[Read, Read], &[UpgradableWithin(1_000), Write]]),
    Script("downgrades",    PLAIN,    &[&[DowngradeUpgradable], &[DowngradeToUpgradable], &[Write]]),
    Script("fair",          PLAIN,    &[&[WriteFair, Read], &[ReadFair], &[Write]]),
    Script("upgradable-fair", PLAIN,  &[&[UpgradableFair], &[Upgradable], &[Write]]),
    Script("bump",          PLAIN,    &[&[BumpWrite], &[BumpRead], &[Write]]),
    Script("one-node",      ONE_NODE, &[&[Write], &[Write, Read], &[Read]]),
    Script("no-node",       NO_NODE,  &[&[Write], &[Read], &[Write]]),
    Script("slow",          SLOW,     &[&[Write, Read, Read, Read], &[Read, Write, Read], &[Read, Read]]),
    Script("very-slow",     VERY_SLOW, &[&[Write, Write, Write], &[Write, Read], &[Write, Write]]),
    Script("four-writers",  PLAIN,    &[&[Write], &[Write], &[Write], &[Write]]),
    Script("long",          LONG,     &[&[Write; 26], &[Write; 26]]),
    Script("long-readers",  LONG.ticking(2_000), &[&[Read; 50], &[Read; 50], &[Read; 50]]),
    Script("long-very-slow", LONG.ticking(5_000_000), &[&[Write; 6], &[Write; 6], &[Write; 6], &[Write; 6], &[Write; 6]]),
    Script("long-within",   LONG,     &[&[Write; 10], &[WriteWithin(50_000); 10], &[WriteWithin(50_000); 10], &[WriteWithin(10_000); 10]]),
    Script("long-fair",     LONG.ticking(400_000), &[&[WriteFair; 10], &[WriteFair; 10], &[Write; 10]]),
    Script("stays",         STAYS,    &[&[Read, Read, ReadFor(1_000_000)], &[Write]]),
    Script("stays-no-node", STAYS_NO_NODE, &[&[ReadFor(1_000_000)], &[Write]]),
    Script("interrupted",   SIGNALS,  &[&[Interrupted], &[Read], &[Write]]),
];

/// For a lock whose readers may pass those that wait.
#[rustfmt::skip]
pub const PASSING: &[Script] = &[
    Script("past",          PLAIN,    &[&[Write], &[ReadPast], &[Write]]),
    Script("past-all",      PLAIN,    &[&[Write], &[ReadPast], &[ReadPast], &[Read]]),
    Script("past-two",      STAYS,    &[&[Write], &[ReadPast], &[ReadPast]]),
    Script("past-within",   PLAIN,    &[&[Write, Read], &[ReadPastWithin(1_000)], &[WriteWithin(1_000)]]),
    Script("past-ample",    PLAIN,    &[&[Write, Read], &[ReadPastWithin(1_000_000), ReadWithin(1_000_000)], &[WriteWithin(1_000_000)]]),
    Script("past-try",      PLAIN,    &[&[Read, Write], &[TryReadPast, TryReadPast], &[Write]]),
    Script("later",         PLAIN,    &[&[Write], &[ReadLater], &[Write]]),
    Script("later-slow",    SLOW,     &[&[Write, Read], &[ReadLater], &[Write, Write]]),
    Script("later-very-slow", VERY_SLOW, &[&[Write, Write], &[ReadLater], &[Write, Read]]),
    Script("within-very-slow", VERY_SLOW, &[&[Write, Read], &[ReadWithin(1_000)], &[WriteWithin(1_000), Write]]),
    Script("past-upgrade",  STAYS,    &[&[Upgrade], &[ReadPast, ReadFor(1_000_000)], &[Read]]),
    Script("upgrade-stays", STAYS,    &[&[Upgrade], &[ReadFor(1_000_000)], &[Write]]),
    Script("upgrade-within-stays", STAYS, &[&[UpgradeWithin(100_000)], &[ReadFor(1_000_000)], &[Read, Upgradable]]),
    Script("upgradable-over-other", VERY_SLOW, &[&[UpgradableOverOther], &[Upgradable], &[ReadUnderOther]]),
    Script("upgrade-very-slow", VERY_SLOW, &[&[Upgradable, Upgradable], &[Upgrade, Upgradable], &[Upgradable, Read]]),
    Script("reads-again",   PLAIN,    &[&[ReadAgain], &[Write], &[Write]]),
    Script("both-again",    PLAIN,    &[&[ReadAgain], &[Write], &[ReadAgain]]),
    Script("ranked",        PLAIN,    &[&[Write], &[WriteRanked], &[Read]]),
    Script("ranked-two",    PLAIN,    &[&[Read], &[WriteRanked], &[WriteRanked]]),
    Script("ranked-gate",   PLAIN,    &[&[Read], &[Write], &[WriteRanked]]),
    Script("ranked-slow",   SLOW,     &[&[Write, Read], &[WriteRanked], &[Write]]),
    Script("ranked-reader", PLAIN,    &[&[Read], &[Write], &[ReadRanked]]),
    Script("ranked-both",   PLAIN,    &[&[Write], &[WriteRanked], &[ReadRanked]]),
    Script("ranked-within", PLAIN,    &[&[Read, Write], &[WriteRankedWithin(1_000)], &[Write]]),
    Script("ranked-within-readers", PLAIN, &[&[Read, Read], &[WriteRankedWithin(1_000)], &[Read]]),
    Script("ranked-upgrade", STAYS,   &[&[Upgrade], &[WriteRanked], &[Read]]),
    Script("ranked-fair",   PLAIN,    &[&[WriteFair], &[ReadRanked], &[Read]]),
    Script("ranked-fair-all", PLAIN,  &[&[UpgradableFair], &[WriteRanked], &[ReadRanked, WriteFair]]),
    Script("long-ranked",   LONG,     &[&[Write; 10], &[WriteRanked; 10], &[ReadRanked; 10], &[Read; 10]]),
    Script("long-past",     LONG,     &[&[Write; 10], &[ReadPast; 10], &[ReadAgain; 10], &[ReadLater; 10]]),
];

/// For a lock that its last owner may free: what all threads do before they come to it for the last
/// time.
#[rustfmt::skip]
pub const FREED: &[Script] = &[
    Script("freed-write-write",  PLAIN, &[&[Write], &[Write]]),
    Script("freed-read-write",   PLAIN, &[&[Read], &[Write]]),
    Script("freed-three",        PLAIN, &[&[Write], &[Read], &[Write]]),
    Script("freed-readers",      PLAIN, &[&[Read], &[Read], &[Write]]),
    Script("freed-past",         PLAIN, &[&[Write], &[ReadPast], &[ReadPast]]),
    Script("freed-within",       PLAIN, &[&[Write], &[WriteWithin(1_000)], &[ReadWithin(1_000)]]),
    Script("freed-upgrade",      PLAIN, &[&[Upgrade], &[Upgradable], &[Read]]),
    Script("freed-downgrades",   PLAIN, &[&[DowngradeToUpgradable], &[DowngradeUpgradable], &[Downgrade]]),
    Script("freed-fair",         PLAIN, &[&[WriteFair], &[UpgradableFair], &[ReadFair]]),
    Script("freed-stays",        STAYS, &[&[ReadFor(1_000_000)], &[Write], &[Write]]),
    Script("freed-four",         PLAIN, &[&[Write], &[Read], &[ReadPast], &[Write]]),
];

/// For a lock that signal handlers may read.
#[rustfmt::skip]
pub const IN_HANDLERS: &[Script] = &[
    Script("read-twice", SIGNALS, &[&[ReadTwice], &[Write, Write], &[Write]]),
    Script("both-twice", SIGNALS, &[&[ReadTwice, ReadTwice], &[Write], &[ReadTwice]]),
];

/// For a lock whose readers are visible from the second on.
#[rustfmt::skip]
pub const VISIBLE: &[Script] = &[
    Script("visible",         PLAIN,    &[&[Read, Read], &[Write]]),
    Script("visible-writers", PLAIN,    &[&[Read, Read, Read], &[Write], &[Write, Read]]),
    Script("visible-readers", PLAIN,    &[&[Read, Read, Read], &[Read, Read], &[Write]]),
    Script("visible-another-lock", PLAIN, &[&[Read, ReadOther, Read, ReadOther, Read, ReadOther], &[Write]]),
    Script("visible-try",     PLAIN,    &[&[Read, Read, TryRead], &[TryWrite, TryRead, TryWrite], &[Write]]),
    Script("visible-within",  PLAIN,    &[&[Read, Read, Read], &[WriteWithin(1_000), ReadWithin(30_000_000)], &[Write]]),
    Script("visible-one-node", ONE_NODE, &[&[Read, Read, Read], &[Write], &[Read]]),
    Script("visible-stays",   STAYS,    &[&[Read, Read, ReadFor(1_000_000)], &[Write]]),
    Script("visible-within-very-slow", VERY_SLOW, &[&[Write, Write], &[Read, ReadWithin(30_000_000)], &[Write]]),
    Script("visible-slow",    SLOW,     &[&[Read, Read, Read, Write], &[Read, Write, Read]]),
];
