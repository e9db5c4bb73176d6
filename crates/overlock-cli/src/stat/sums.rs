//! Sums of a table's entries that people would call the same.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use overlock_shared::{Entry, LENGTHS, ObjectKind, Path, Table};

use super::rows::{Event, Holder, Kept, Object, Row, Spins, Times, stack};
use super::symbols::{Place, Symbols};
use super::wrappers;

/// The counts of an entry, summed.
#[derive(Debug, Default)]
struct Counts {
    acquisitions: u64,
    contentions: u64,
    unfair: u64,
    gave_up: u64,
    wait_ns: u64,
    wait_max_ns: u64,
    passed: u64,
    passed_max: u64,
    lost_holds: u64,
    hold_ns: u64,
    hold_max_ns: u64,
    spins: u64,
    spins_in_time: u64,
    spin_ns: u64,
    saved_ns: u64,
    wakes: u64,
    wake_ns: u64,
    as_lock: u64,
    lengths: [u64; LENGTHS],
}

/// The name that the program has given to its locks.
fn given(table: &Table, number: u32) -> Option<String> {
    let name = table.names.get((number as usize).checked_sub(1)?)?;
    let mut buffer = [0; Path::MAX];
    let text = name.get(&mut buffer)?;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// Entries with the same names.
#[derive(Debug)]
pub struct Sum {
    pub lock: String,
    /// Its place, for want of a name.
    pub unnamed: String,
    pub kind: ObjectKind,
    pub site: Option<Place>,
    object: u64,
    init: Option<Place>,
    stack: Vec<Place>,
    counts: Counts,
    holders: HashMap<String, Holder>,
    objects: HashMap<u64, Object>,
}

impl Sum {
    /// The names of an entry, without its counts. `None` for one that is free, or not ready.
    pub fn of(table: &Table, entry: &Entry, symbols: &Symbols) -> Option<Self> {
        // Acquire: pairs with the store after its names were written.
        if entry.ready.load(Acquire) == 0 {
            return None;
        }
        let kind = ObjectKind::of(entry.kind.load(Relaxed))?;
        let object = entry.object.load(Relaxed);
        let places = |number: &std::sync::atomic::AtomicU32, site: &AtomicU64| {
            stack(table, number.load(Relaxed), site.load(Relaxed), symbols)
        };
        let given = entry.name().and_then(|number| given(table, number));
        let init = match given {
            Some(_) => None,
            None => wrappers::named(&places(&entry.init_stack, &entry.init)).cloned(),
        };
        let stack = places(&entry.stack, &entry.site);
        let variable = symbols.variable(object);
        // Of an array or a structure: its locks are one row.
        let variable = variable.map(|(name, _)| name);
        let name = given.or(variable);
        let name = name.or_else(|| init.as_ref().map(|init| format!("of {init}")));
        let unknown = || match kind {
            // Of an epoll object there is the file descriptor.
            ObjectKind::Poll if (1..1 << 20).contains(&object) => format!("epoll {object}"),
            // All that are waited for there.
            _ => String::new(),
        };
        Some(Self {
            lock: name.unwrap_or_else(unknown),
            unnamed: symbols
                .data(object)
                .unwrap_or_else(|| format!("{object:#x}")),
            kind,
            site: wrappers::named(&stack).cloned(),
            object,
            init,
            stack,
            counts: Counts::default(),
            holders: HashMap::new(),
            objects: HashMap::new(),
        })
    }

    /// Adds the counts of an entry.
    pub fn add(&mut self, entry: &Entry) {
        let sums = &mut self.counts;
        for (sum, count) in [
            (&mut sums.acquisitions, &entry.acquisitions),
            (&mut sums.contentions, &entry.contentions),
            (&mut sums.unfair, &entry.unfair),
            (&mut sums.gave_up, &entry.gave_up),
            (&mut sums.wait_ns, &entry.wait_ns),
            (&mut sums.passed, &entry.passed),
            (&mut sums.lost_holds, &entry.lost_holds),
            (&mut sums.hold_ns, &entry.hold_ns),
            (&mut sums.spins, &entry.spins),
            (&mut sums.spins_in_time, &entry.spins_in_time),
            (&mut sums.spin_ns, &entry.spin_ns),
            (&mut sums.saved_ns, &entry.saved_ns),
            (&mut sums.wakes, &entry.wakes),
            (&mut sums.wake_ns, &entry.wake_ns),
            (&mut sums.as_lock, &entry.as_lock),
        ] {
            *sum = sum.saturating_add(count.load(Relaxed));
        }
        for (sum, count) in sums.lengths.iter_mut().zip(&entry.lengths) {
            *sum = sum.saturating_add(count.load(Relaxed));
        }
        for (most, count) in [
            (&mut sums.wait_max_ns, &entry.wait_max_ns),
            (&mut sums.passed_max, &entry.passed_max),
            (&mut sums.hold_max_ns, &entry.hold_max_ns),
        ] {
            *most = (*most).max(count.load(Relaxed));
        }
    }

    /// Adds waits that a holder has caused.
    pub fn add_holder(&mut self, site: Option<Place>, (waits, wait_ns): (u64, u64)) {
        let name = site.as_ref().map_or_else(String::new, Place::to_string);
        let none = || Holder {
            site,
            waits: 0,
            wait_ns: 0,
        };
        let holder = self.holders.entry(name).or_insert_with(none);
        holder.waits += waits;
        holder.wait_ns += wait_ns;
    }

    /// Adds waits for one of the objects.
    pub fn add_object(&mut self, address: u64, (waits, wait_ns): (u64, u64), symbols: &Symbols) {
        let none = || Object {
            name: symbols
                .variable(address)
                .map(|(name, within)| match within {
                    0 => name,
                    within => format!("{name}+{within:#x}"),
                }),
            address: format!("{address:#x}"),
            waits: 0,
            wait_ns: 0,
        };
        let object = self.objects.entry(address).or_insert_with(none);
        object.waits += waits;
        object.wait_ns += wait_ns;
    }

    /// Whether it is a condition or a semaphore that is used as a lock.
    pub fn is_lock(&self) -> bool {
        self.counts.as_lock * 2 > self.counts.contentions
    }

    fn objects(&mut self) -> Vec<Object> {
        let mut objects: Vec<Object> = self.objects.drain().map(|(_, object)| object).collect();
        objects.sort_by(|one, other| {
            let key = |object: &Object| (Reverse(object.wait_ns), Reverse(object.waits));
            (key(one), &one.address).cmp(&(key(other), &other.address))
        });
        objects
    }

    /// The name of locks that have none: the place if there is one, or their number.
    fn lock(&self, objects: &[Object]) -> String {
        match (self.lock.is_empty(), objects) {
            (false, _) => self.lock.clone(),
            (true, [] | [_]) => self.unnamed.clone(),
            (true, objects) => format!("{} objects", objects.len()),
        }
    }

    /// `None` without a call site, which only events do without.
    pub fn row(mut self) -> Option<Row> {
        let objects = self.objects();
        let lock = self.lock(&objects);
        let Counts {
            acquisitions,
            contentions,
            gave_up,
            ..
        } = self.counts;
        let known = acquisitions.saturating_sub(self.counts.lost_holds);
        let queued = contentions.saturating_sub(gave_up);
        let counts = self.kind.is_sampled();
        let unfair = counts.then_some(self.counts.unfair);
        let share = |unfair: u64| unfair as f64 / (unfair + queued) as f64;
        let mut holders: Vec<Holder> = self.holders.into_values().collect();
        holders.sort_by_key(|holder| Reverse(holder.wait_ns));
        Some(Row {
            lock,
            object: format!("{:#x}", self.object),
            objects,
            kind: self.kind,
            init: self.init,
            site: self.site?,
            stack: self.stack,
            // Of few that do not wait none may have been sampled, but those that were unfair are
            // counted at first.
            acquisitions: unfair.map(|unfair| acquisitions.max(queued + unfair)),
            sampled: acquisitions > queued,
            contentions,
            gave_up,
            wait: Times::new(self.counts.wait_ns, self.counts.wait_max_ns, contentions),
            lengths: self.counts.lengths,
            hold: Times::new(self.counts.hold_ns, self.counts.hold_max_ns, known),
            queued,
            unfair,
            unfair_share: unfair.filter(|unfair| unfair + queued > 0).map(share),
            passed_avg: (counts && queued > 0).then(|| self.counts.passed as f64 / queued as f64),
            passed_max: counts.then_some(self.counts.passed_max),
            holders,
        })
    }

    pub fn event(mut self) -> Event {
        let objects = self.objects();
        let counts = &self.counts;
        Event {
            name: self.lock(&objects),
            object: format!("{:#x}", self.object),
            objects,
            kind: self.kind,
            init: self.init,
            site: self.site,
            stack: self.stack,
            waits: counts.contentions,
            gave_up: counts.gave_up,
            wait: Times::new(counts.wait_ns, counts.wait_max_ns, counts.contentions),
            spins: Spins {
                count: counts.spins,
                in_time: counts.spins_in_time,
                total_ns: counts.spin_ns,
                saved_ns: counts.saved_ns,
            },
            wake_avg_ns: (counts.wakes > 0).then(|| counts.wake_ns as f64 / counts.wakes as f64),
        }
    }

    pub fn kept(self) -> Kept {
        Kept {
            kind: self.kind,
            site: self.site,
            objects: self.counts.acquisitions,
        }
    }
}
