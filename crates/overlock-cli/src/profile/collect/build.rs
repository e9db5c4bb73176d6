//! The document of what was collected, with names.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicU32, AtomicU64};

use overlock_profile::{
    Confidence, Interner, Known, Lock, Parts, Process, Profile, Sum, Thread, VERSION, Wait,
};
use overlock_shared::{ObjectKind, Table};

use super::collector::Collected;
use super::holders::{Holders, Namer};
use super::kept::{Kept, Single};
use super::shown::Shown;
use super::whole::{link, spread};
use crate::stat::{self, Symbols};

/// A lock as people know it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Named {
    process: u32,
    name: String,
    kind: String,
    /// Of those without a name: the address if it is one lock, else the call site.
    place: String,
}

/// An entry of a table, with its lock and stack.
#[derive(Clone, Copy, Debug)]
struct Place {
    lock: u32,
    stack: u32,
}

/// Of each entry the one lock that it is of; `None` where there are several.
fn single(table: &Table) -> Vec<Option<u64>> {
    let entries = table.entries.iter();
    let mut single: Vec<_> = entries
        .map(|entry| Some(entry.object.load(Relaxed)))
        .collect();
    // Acquire: pairs with the store after the object was written.
    for object in table
        .objects
        .iter()
        .filter(|object| object.ready.load(Acquire) != 0)
    {
        if let Some(one) = single.get_mut(object.entry.load(Relaxed) as usize)
            && *one != Some(object.address.load(Relaxed))
        {
            *one = None;
        }
    }
    single
}

impl Collected {
    /// How well the parts of the waits are known.
    pub fn known(&self) -> Known {
        let unless = |is_missing| match is_missing {
            true => Confidence::Unknown,
            false => Confidence::Sampled,
        };
        Known {
            ran: Confidence::Sampled,
            preempted: Confidence::Sampled,
            throttled: unless(self.quota.is_none()),
            blocked: unless(self.is_refused),
            handover: Confidence::Measured,
            no_cpu: Confidence::Sampled,
        }
    }
}

/// Makes the document, except for its [`Profile::run`].
pub fn build(mut collected: Collected) -> Profile {
    collected.kept.attribute();
    let mut builder = Builder::default();
    for (index, process) in collected.processes.iter().enumerate() {
        builder.add_process(index, process, &collected.kept);
    }
    builder.add_kept(collected.kept);
    builder.profile.version = VERSION;
    builder.profile
}

#[derive(Debug, Default)]
struct Builder {
    profile: Profile,
    interner: Interner,
    /// Those of the process before, whose files the next one may have too.
    symbols: Symbols,
    locks: HashMap<Named, u32>,
    /// The places of locks without a name.
    unnamed: HashMap<u32, String>,
    objects: HashMap<u32, HashSet<u64>>,
    /// By process and address.
    by_address: HashMap<(usize, u64), u32>,
    /// By lock: the time that it was held, in how many acquisitions.
    holds: HashMap<u32, (u64, u64)>,
    /// By process and entry.
    places: HashMap<(usize, u32), Place>,
    holders: Holders,
    threads: HashMap<(usize, u32), u32>,
}

impl Builder {
    fn add_process(&mut self, index: usize, shown: &Shown, kept: &Kept) {
        let Ok(table) = shown.ring.table() else {
            return;
        };
        let mut symbols = self.symbols.beside();
        stat::meet(&table, &mut symbols);
        self.profile.processes.push(Process {
            pid: shown.pid,
            program: stat::program(&table, &symbols),
        });
        let lost = &mut self.profile.lost;
        lost.waits += shown.ring.header.lost.0.load(Relaxed);
        lost.short_waits += shown.ring.header.short.0.load(Relaxed);
        for (entry, object) in single(&table).into_iter().enumerate() {
            self.add_entry((index, entry as u32), object, &table, &symbols, kept);
        }
        let mut namer = Namer {
            table: &table,
            symbols: &symbols,
            profile: &mut self.profile,
            interner: &mut self.interner,
        };
        self.holders.add(index, kept, &mut namer);
        self.add_threads(index, shown, kept);
        self.symbols = symbols;
    }

    fn stack(&mut self, symbols: &Symbols, addresses: &[u64]) -> u32 {
        let calls = addresses.iter().map(|&address| symbols.frames(address));
        let calls: Vec<_> = calls.collect();
        let frames = calls.iter().flat_map(|frames| frames.iter());
        self.interner.stack(&mut self.profile, frames)
    }

    fn add_entry(
        &mut self,
        (process, number): (usize, u32),
        single: Option<u64>,
        table: &Table,
        symbols: &Symbols,
        kept: &Kept,
    ) {
        let entry = &table.entries[number as usize];
        let Some(sum) = stat::Sum::of(table, entry, symbols).filter(|sum| !sum.kind.is_kept())
        else {
            return;
        };
        let load = |word: &AtomicU64| word.load(Relaxed);
        let is_lock = load(&entry.as_lock) * 2 > load(&entry.contentions);
        let kind = match (sum.kind, is_lock) {
            (ObjectKind::Cond, true) => "cond as lock",
            (ObjectKind::Sem, true) => "sem as lock",
            (kind, _) => kind.name(),
        };
        let place = match single {
            _ if !sum.lock.is_empty() => String::new(),
            Some(object) => format!("{object:#x}"),
            None => (sum.site.as_ref()).map_or_else(String::new, ToString::to_string),
        };
        let known = Named {
            process: process as u32,
            place,
            name: sum.lock,
            kind: kind.to_owned(),
        };
        let stack =
            |number: &AtomicU32, site| stat::addresses(table, number.load(Relaxed), load(site));
        let init = match entry.name() {
            Some(_) => Vec::new(),
            None => stack(&entry.init_stack, &entry.init),
        };
        let stack = stack(&entry.stack, &entry.site);
        let init = (!init.is_empty()).then(|| self.stack(symbols, &init));
        let stack = self.stack(symbols, &stack);
        let lock = match self.locks.get(&known) {
            Some(&lock) => lock,
            None => {
                let lock = self.profile.locks.len() as u32;
                self.unnamed.insert(lock, sum.unnamed);
                self.profile.locks.push(Lock {
                    process: process as u32,
                    name: known.name.clone(),
                    kind: known.kind.clone(),
                    is_event: sum.kind.is_event() && !is_lock,
                    address: load(&entry.object),
                    objects: 1,
                    init,
                    ..Lock::default()
                });
                self.locks.insert(known, lock);
                lock
            }
        };
        self.places.insert((process, number), Place { lock, stack });
        let object = load(&entry.object);
        self.by_address.insert((process, object), lock);
        self.objects
            .entry(lock)
            .or_default()
            .insert(load(&entry.object));
        let index = lock;
        let lock = &mut self.profile.locks[index as usize];
        if let Some(lengths) = kept.lengths.get(&(process, number)) {
            lock.distribution.add(lengths);
        }
        if !sum.kind.is_sampled() {
            return;
        }
        let more = load(&entry.acquisitions);
        let holds = self.holds.entry(index).or_default();
        holds.0 += load(&entry.hold_ns);
        holds.1 += more.saturating_sub(load(&entry.lost_holds));
        if holds.1 > 0 {
            let longest = load(&entry.hold_max_ns);
            lock.hold_avg_ns = Some(holds.0 as f64 / holds.1 as f64);
            lock.hold_max_ns = Some(lock.hold_max_ns.unwrap_or(0).max(longest));
        }
        lock.acquisitions = Some(lock.acquisitions.unwrap_or(0) + more);
        lock.is_estimated |= more > load(&entry.contentions);
    }

    fn add_threads(&mut self, index: usize, shown: &Shown, kept: &Kept) {
        let waiters = kept.threads.keys().filter(|(process, _)| *process == index);
        let singles = kept.all().filter(|one| one.process == index);
        let holders = singles.map(|one| one.ended.holder).filter(|&tid| tid != 0);
        let mut tids: Vec<u32> = waiters.map(|(_, tid)| *tid).chain(holders).collect();
        tids.extend(shown.threads.keys());
        tids.sort_unstable();
        tids.dedup();
        for tid in tids {
            let seen = shown.threads.get(&tid).cloned().unwrap_or_default();
            let own = shown.ring.thread(tid);
            let ended = own.map(|own| own.cpu_ns.load(Relaxed)).filter(|&ns| ns > 0);
            self.threads
                .insert((index, tid), self.profile.threads.len() as u32);
            self.profile.threads.push(Thread {
                process: index as u32,
                tid,
                name: seen.name,
                cpu_ns: ended.or(seen.cpu_ns),
                wait_ns: kept.threads.get(&(index, tid)).copied().unwrap_or(0),
                held_ns: own.map(|own| own.held_ns.load(Relaxed)),
            });
        }
    }

    fn add_kept(&mut self, kept: Kept) {
        self.name_locks(&kept);
        for (place, &ns) in &kept.held {
            let Some(place) = self.places.get(place) else {
                continue;
            };
            // Of the C library's none is known: another thread may have passed by.
            let longest = &mut self.profile.locks[place.lock as usize].hold_max_ns;
            *longest = longest.map(|longest| longest.max(ns));
        }
        let mut sums: HashMap<((u32, u32), Option<u32>), Sum> = HashMap::new();
        for (key, total) in kept.totals {
            let Some(&place) = self.places.get(&(key.process, key.entry)) else {
                self.profile.lost.waits += total.waits;
                continue;
            };
            for (holder, total) in self.holders.divided(&key, total) {
                let sum = sums
                    .entry(((place.lock, place.stack), holder))
                    .or_insert_with(|| Sum {
                        lock: place.lock,
                        stack: place.stack,
                        holder_stack: holder,
                        ..Sum::default()
                    });
                sum.waits += total.waits;
                sum.wait_ns += total.wait_ns;
                sum.max_ns = sum.max_ns.max(total.max_ns);
                sum.gave_up += total.gave_up;
                sum.passed += total.passed;
                sum.parts.add(&self.named(key.process, total.parts));
            }
        }
        let mut sums: Vec<Sum> = sums.into_values().collect();
        sums.iter_mut().for_each(|sum| spread(&mut sum.parts));
        sums.sort_by_key(|sum| (std::cmp::Reverse(sum.wait_ns), sum.lock, sum.stack));
        self.profile.sums = sums;
        let lists = [kept.singles, kept.events.unwrap_or_default()];
        self.profile.lost.single_waits += lists.iter().map(|list| list.lost).sum::<u64>();
        let mut waits = Vec::new();
        for single in lists.into_iter().flat_map(|list| list.kept) {
            let lock = (single.process, single.ended.object);
            match self.wait(single) {
                Some(wait) => waits.push((lock, wait)),
                None => self.profile.lost.single_waits += 1,
            }
        }
        waits.sort_by_key(|(_, wait)| wait.began_ns);
        link(&mut waits);
        self.profile.waits = waits.into_iter().map(|(_, wait)| wait).collect();
    }

    /// Names the locks that have no name, by their places.
    fn name_locks(&mut self, kept: &Kept) {
        for single in kept.all() {
            let (process, object) = (single.process, single.ended.object);
            if let Some(place) = self.places.get(&(process, single.ended.entry)) {
                self.objects.entry(place.lock).or_default().insert(object);
                self.by_address.insert((process, object), place.lock);
            }
        }
        for (lock, objects) in &self.objects {
            let unnamed = self.unnamed.remove(lock).unwrap_or_default();
            let lock = &mut self.profile.locks[*lock as usize];
            lock.objects = objects.len() as u64;
            if lock.name.is_empty() {
                lock.name = match lock.objects {
                    1 => unnamed,
                    several => format!("{several} objects"),
                };
            }
        }
    }

    /// Parts with the names of locks in place of their addresses.
    fn named(&self, process: usize, parts: Parts) -> Parts {
        let mut named = Parts::default();
        for mut blocked in parts.blocked.iter().cloned() {
            let address = blocked.by.strip_prefix("lock 0x");
            let address = address.and_then(|digits| u64::from_str_radix(digits, 16).ok());
            let lock = address.and_then(|address| self.by_address.get(&(process, address)));
            if let Some(lock) = lock {
                blocked.by = format!("lock {}", self.profile.locks[*lock as usize].name);
            }
            named.add(&Parts {
                blocked: vec![blocked],
                ..Parts::default()
            });
        }
        Parts {
            blocked: named.blocked,
            ..parts
        }
    }

    /// `None` if its place or its thread is not known.
    fn wait(&mut self, single: Single) -> Option<Wait> {
        let holder_stack = self.holders.stack(&single.key());
        let Single {
            process,
            ended,
            parts,
        } = single;
        let place = *self.places.get(&(process, ended.entry))?;
        Some(Wait {
            thread: *self.threads.get(&(process, ended.tid))?,
            lock: place.lock,
            stack: place.stack,
            began_ns: ended.began_ns,
            wait_ns: ended.ns(),
            holder: self.threads.get(&(process, ended.holder)).copied(),
            holder_stack,
            released_ns: ended.released_ns,
            gave_up: ended.gave_up,
            parts: self.named(process, parts),
            behind: None,
        })
    }
}
