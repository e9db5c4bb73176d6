//! The rows of a table, with names.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use overlock_shared::{Entry, ObjectKind, Path, Table};
use serde::{Serialize, Serializer};

use super::symbols::{Module, Place, Symbols};

fn name<S: Serializer>(kind: &ObjectKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.name())
}

/// Times of one sort.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Times {
    /// Their sum.
    pub total_ns: u64,
    /// Their average, if there was one.
    pub avg_ns: Option<f64>,
    /// The longest.
    pub max_ns: u64,
}

impl Times {
    fn new(total: &AtomicU64, max: &AtomicU64, of: u64) -> Self {
        let total_ns = total.load(Relaxed);
        Self {
            total_ns,
            avg_ns: (of > 0).then(|| total_ns as f64 / of as f64),
            max_ns: max.load(Relaxed),
        }
    }
}

/// A call site that made others wait.
#[derive(Clone, Debug, Serialize)]
pub struct Holder {
    /// The call site of the acquisition; null where it is not known.
    pub site: Option<Place>,
    /// Waits that began then.
    pub waits: u64,
    /// Their sum.
    pub wait_ns: u64,
}

/// One lock at one call site.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The lock: its variable, or where it was initialised, or its address.
    pub lock: String,
    /// Its address.
    pub object: String,
    /// Its kind.
    #[serde(serialize_with = "name")]
    pub kind: ObjectKind,
    /// The place of its initialisation, if by a call.
    pub init: Option<Place>,
    /// The call site of the acquisitions.
    pub site: Place,
    /// Acquisitions; null for those that count waits only.
    pub acquisitions: Option<u64>,
    /// Those that had to wait, and waits in vain.
    pub contentions: u64,
    /// Waits in vain.
    pub gave_up: u64,
    /// The waits.
    pub wait: Times,
    /// How long it was held, from samples.
    pub hold: Times,
    /// Waits that ended with the lock.
    pub queued: u64,
    /// Acquisitions that found others waiting and did not wait, from samples; null where that is
    /// not looked at.
    pub unfair: Option<u64>,
    /// Their share of the two.
    pub unfair_share: Option<f64>,
    /// How often others acquired the lock during a wait, on average; null for locks that do not
    /// count.
    pub passed_avg: Option<f64>,
    /// The same of one wait, at most.
    pub passed_max: Option<u64>,
    /// The holders that made them wait, most of the time first.
    pub holders: Vec<Holder>,
}

/// Costs and savings of spins before sleeps.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Spins {
    /// Waits that began with a spin.
    pub count: u64,
    /// Those that ended within it.
    pub in_time: u64,
    /// The sum of all spins.
    pub total_ns: u64,
    /// The wake-ups that those in time have saved, at what a wake-up cost then.
    pub saved_ns: u64,
}

/// A place where threads wait for something to happen.
#[derive(Clone, Debug, Serialize)]
pub struct Event {
    /// The name of the object: its variable, the place of its initialisation, or its address.
    pub name: String,
    /// Its address.
    pub object: String,
    /// Its kind.
    #[serde(serialize_with = "name")]
    pub kind: ObjectKind,
    /// The place of its initialisation, if by a call.
    pub init: Option<Place>,
    /// The call site of the waits; null where it is not known.
    pub site: Option<Place>,
    /// Waits.
    pub waits: u64,
    /// Those that ended otherwise.
    pub gave_up: u64,
    /// How long they took.
    pub wait: Times,
    /// The spins before sleeps.
    pub spins: Spins,
    /// The time from the call that wakes a sleeper to its return, on average; null where no such
    /// call was seen.
    pub wake_avg_ns: Option<f64>,
}

/// The names in an entry of any kind.
struct Names {
    name: String,
    object: String,
    kind: ObjectKind,
    init: Option<Place>,
    site: Option<Place>,
}

/// Brings the names up to what the table has.
pub fn meet(table: &Table, symbols: &mut Symbols) {
    // Acquire: pairs with the store after a module was written.
    let count = table.header.modules.load(Acquire) as usize;
    for module in table.modules.iter().take(count).skip(symbols.modules()) {
        let mut path = [0; Path::MAX];
        let path = std::ffi::OsStr::from_bytes(module.path.get(&mut path));
        symbols.add(Module {
            start: module.start.load(Relaxed),
            end: module.end.load(Relaxed),
            offset: module.offset.load(Relaxed),
            path: PathBuf::from(path),
        });
    }
}

/// All locks by call site, those with the longest waits first.
pub fn rows(table: &Table, symbols: &Symbols) -> Vec<Row> {
    let mut holders: Vec<Vec<Holder>> = table.entries.iter().map(|_| Vec::new()).collect();
    for holder in &table.holders {
        // Acquire: pairs with the store after its names were written.
        if holder.ready.load(Acquire) == 0 {
            continue;
        }
        let site = symbols.whole(holder.site.load(Relaxed));
        if let Some(holders) = holders.get_mut(holder.entry.load(Relaxed) as usize) {
            holders.push(Holder {
                site: site.map(|site| symbols.call(site)),
                waits: holder.waits.load(Relaxed),
                wait_ns: holder.wait_ns.load(Relaxed),
            });
        }
    }
    let pairs = table.entries.iter().zip(holders);
    let named = pairs.filter_map(|(entry, holders)| {
        let names = names(entry, symbols)?;
        row(entry, holders, names)
    });
    let mut rows: Vec<Row> = named.filter(|row| !row.kind.is_event()).collect();
    rows.sort_by_key(|row| {
        let Row {
            wait,
            contentions,
            acquisitions,
            ..
        } = row;
        std::cmp::Reverse((wait.total_ns, *contentions, *acquisitions))
    });
    rows
}

/// All places where threads wait for something to happen, those with the longest waits first.
pub fn events(table: &Table, symbols: &Symbols) -> Vec<Event> {
    let named = table.entries.iter();
    let named = named.filter_map(|entry| Some((entry, names(entry, symbols)?)));
    let mut events: Vec<Event> = named
        .filter(|(_, names)| names.kind.is_event())
        .map(|(entry, names)| event(entry, names))
        .collect();
    events.sort_by_key(|event| std::cmp::Reverse((event.wait.total_ns, event.waits)));
    events
}

/// `None` for an entry that is free, or not ready.
fn names(entry: &Entry, symbols: &Symbols) -> Option<Names> {
    // Acquire: as above.
    if entry.ready.load(Acquire) == 0 {
        return None;
    }
    let kind = ObjectKind::of(entry.kind.load(Relaxed))?;
    let object = entry.object.load(Relaxed);
    let init = Some(entry.init.load(Relaxed)).filter(|&init| init != 0);
    let init = init.map(|init| symbols.call(init));
    let variable = symbols.variable(object);
    let name = variable.or_else(|| init.as_ref().map(|init| format!("of {init}")));
    let unknown = || match kind {
        // Of an epoll object there is the file descriptor.
        ObjectKind::Poll if (1..1 << 20).contains(&object) => format!("epoll {object}"),
        _ => format!("{object:#x}"),
    };
    Some(Names {
        name: name.unwrap_or_else(unknown),
        object: format!("{object:#x}"),
        kind,
        init,
        site: Some(entry.site.load(Relaxed))
            .filter(|&site| site != 0)
            .map(|site| symbols.call(site)),
    })
}

/// `None` without a call site, which only events do without.
fn row(entry: &Entry, mut holders: Vec<Holder>, names: Names) -> Option<Row> {
    holders.sort_by_key(|holder| std::cmp::Reverse(holder.wait_ns));
    let kind = names.kind;
    let acquisitions = entry.acquisitions.load(Relaxed);
    let contentions = entry.contentions.load(Relaxed);
    let gave_up = entry.gave_up.load(Relaxed);
    let known = acquisitions.saturating_sub(entry.lost_holds.load(Relaxed));
    let queued = contentions.saturating_sub(gave_up);
    let counts = kind.is_sampled();
    let unfair = counts.then(|| entry.unfair.load(Relaxed));
    let share = |unfair: u64| unfair as f64 / (unfair + queued) as f64;
    let passed = entry.passed.load(Relaxed);
    Some(Row {
        lock: names.name,
        object: names.object,
        kind: names.kind,
        init: names.init,
        site: names.site?,
        // Of few that do not wait none may have been sampled, but those that were unfair are
        // counted at first.
        acquisitions: unfair.map(|unfair| acquisitions.max(queued + unfair)),
        contentions,
        gave_up,
        wait: Times::new(&entry.wait_ns, &entry.wait_max_ns, contentions),
        hold: Times::new(&entry.hold_ns, &entry.hold_max_ns, known),
        queued,
        unfair,
        unfair_share: unfair.filter(|unfair| unfair + queued > 0).map(share),
        passed_avg: (counts && queued > 0).then(|| passed as f64 / queued as f64),
        passed_max: counts.then(|| entry.passed_max.load(Relaxed)),
        holders,
    })
}

fn event(entry: &Entry, names: Names) -> Event {
    let waits = entry.contentions.load(Relaxed);
    Event {
        name: names.name,
        object: names.object,
        kind: names.kind,
        init: names.init,
        site: names.site,
        waits,
        gave_up: entry.gave_up.load(Relaxed),
        wait: Times::new(&entry.wait_ns, &entry.wait_max_ns, waits),
        spins: Spins {
            count: entry.spins.load(Relaxed),
            in_time: entry.spins_in_time.load(Relaxed),
            total_ns: entry.spin_ns.load(Relaxed),
            saved_ns: entry.saved_ns.load(Relaxed),
        },
        wake_avg_ns: Some(entry.wakes.load(Relaxed))
            .filter(|&wakes| wakes > 0)
            .map(|wakes| entry.wake_ns.load(Relaxed) as f64 / wakes as f64),
    }
}
