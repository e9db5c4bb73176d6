//! The rows of a table, with names.

use std::cmp::Reverse;
use std::collections::{HashMap, hash_map};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use overlock_shared::{DEPTH, LENGTHS, ObjectKind, Path, Table};
use serde::{Serialize, Serializer};

use super::holders::holders;
use super::sums::Sum;
use super::symbols::{Module, Place, Symbols};
use super::wrappers;

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
    pub(super) fn new(total_ns: u64, max_ns: u64, of: u64) -> Self {
        Self {
            total_ns,
            avg_ns: (of > 0).then(|| total_ns as f64 / of as f64),
            max_ns,
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

/// One of the locks of a row, or of the objects of an event.
#[derive(Clone, Debug, Serialize)]
pub struct Object {
    /// Its variable; null if it is none.
    pub name: Option<String>,
    /// Its address.
    pub address: String,
    /// The waits for it.
    pub waits: u64,
    /// Their sum.
    pub wait_ns: u64,
}

/// Locks that were initialised at one place, at one call site.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The lock: its variable, or where it was initialised, or its address.
    pub lock: String,
    /// The address of the first.
    pub object: String,
    /// Those that threads waited for, the longest waits first.
    pub objects: Vec<Object>,
    /// Its kind.
    #[serde(serialize_with = "name")]
    pub kind: ObjectKind,
    /// The place of its initialisation, if by a call.
    pub init: Option<Place>,
    /// The call site of the acquisitions: of callers the first that is no wrapper of a lock.
    pub site: Place,
    /// All that are known, from the call outwards.
    pub stack: Vec<Place>,
    /// Acquisitions; null for those that count waits only.
    pub acquisitions: Option<u64>,
    /// Whether acquisitions and holds are estimated from samples.
    pub sampled: bool,
    /// Those that had to wait, and waits in vain.
    pub contentions: u64,
    /// Waits in vain.
    pub gave_up: u64,
    /// The waits.
    pub wait: Times,
    /// How many there were of each [length](overlock_shared::length).
    #[serde(skip)]
    pub lengths: [u64; LENGTHS],
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
    /// The address of the first.
    pub object: String,
    /// All of them, the longest waits first.
    pub objects: Vec<Object>,
    /// Its kind.
    #[serde(serialize_with = "name")]
    pub kind: ObjectKind,
    /// The place of its initialisation, if by a call.
    pub init: Option<Place>,
    /// The call site of the waits; null where it is not known.
    pub site: Option<Place>,
    /// All callers that are known, from the call outwards.
    pub stack: Vec<Place>,
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

/// Objects that stay the C library's, and are not counted.
#[derive(Clone, Debug, Serialize)]
pub struct Kept {
    /// Why they do.
    #[serde(serialize_with = "name")]
    pub kind: ObjectKind,
    /// The call site of their initialisation.
    pub site: Option<Place>,
    /// How many were initialised there.
    pub objects: u64,
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

/// All that a table says.
#[derive(Debug, Default)]
pub struct Rows {
    /// Locks, those with the longest waits first.
    pub locks: Vec<Row>,
    /// Places where threads wait for something to happen, the longest waits first.
    pub events: Vec<Event>,
    /// Objects that are not counted.
    pub kept: Vec<Kept>,
}

/// Reads the rows. Entries that people would call the same are one.
pub fn rows(table: &Table, symbols: &Symbols) -> Rows {
    let mut sums: HashMap<(String, ObjectKind, String), Sum> = HashMap::new();
    let mut places: Vec<Option<(String, ObjectKind, String)>> = Vec::new();
    for entry in &table.entries {
        let key = Sum::of(table, entry, symbols).map(|sum| {
            let site = sum.site.as_ref().map_or_else(String::new, Place::to_string);
            let key = (sum.lock.clone(), sum.kind, site);
            match sums.entry(key.clone()) {
                hash_map::Entry::Occupied(mut known) => known.get_mut().add(entry),
                hash_map::Entry::Vacant(free) => free.insert(sum).add(entry),
            }
            key
        });
        places.push(key);
    }
    let key = |entry: u32| places.get(entry as usize)?.as_ref();
    for holder in holders(table) {
        let site = symbols.whole(holder.site).unwrap_or(0);
        let stack = stack(table, holder.stack, site, symbols);
        if let Some(sum) = key(holder.entry).and_then(|key| sums.get_mut(key)) {
            let waits = (holder.waits, holder.wait_ns);
            sum.add_holder(wrappers::holder(&stack), waits);
        }
    }
    for object in &table.objects {
        // Acquire: as above.
        if object.ready.load(Acquire) == 0 {
            continue;
        }
        if let Some(sum) = key(object.entry.load(Relaxed)).and_then(|key| sums.get_mut(key)) {
            let waits = (object.waits.load(Relaxed), object.wait_ns.load(Relaxed));
            sum.add_object(object.address.load(Relaxed), waits, symbols);
        }
    }
    let mut rows = Rows::default();
    for sum in sums.into_values() {
        match sum.kind {
            kind if kind.is_kept() => rows.kept.push(sum.kept()),
            kind if kind.is_event() && !sum.is_lock() => rows.events.push(sum.event()),
            _ => rows.locks.extend(sum.row()),
        }
    }
    sort(&mut rows.locks, &mut rows.events);
    rows.kept.sort_by_key(|kept| Reverse(kept.objects));
    rows
}

/// The longest waits first.
pub(super) fn sort(locks: &mut [Row], events: &mut [Event]) {
    locks.sort_by_cached_key(|row| {
        let counts = (row.wait.total_ns, row.contentions, row.acquisitions);
        (Reverse(counts), row.lock.clone(), row.site.to_string())
    });
    events.sort_by_cached_key(|event| {
        (
            Reverse((event.wait.total_ns, event.waits)),
            event.name.clone(),
        )
    });
}

/// The places of a stack, or of its call site alone.
pub(super) fn stack(table: &Table, number: u32, site: u64, symbols: &Symbols) -> Vec<Place> {
    let frames = addresses(table, number, site).into_iter();
    frames.map(|frame| symbols.call(frame)).collect()
}

/// The return addresses of a stack, or that of its call site alone; none without either.
pub fn addresses(table: &Table, number: u32, site: u64) -> Vec<u64> {
    let mut frames = [0; DEPTH];
    let count = table.stack(number, &mut frames);
    let frames = match count {
        0 => &[site][..],
        _ => &frames[..count],
    };
    let known = frames.iter().filter(|&&frame| frame != 0);
    known.copied().collect()
}
