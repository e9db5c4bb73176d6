//! A file server: requests for files in a tree of directories, each directory under a mutex of its
//! own.
//!
//! The shape of what a file system did before lookups went without locks, and of AIM7's fserver
//! load, by which mutex-waiter-spinning was judged. A request walks from the root to its directory,
//! locking one directory after the other, and then does its work there. Most sections are short.
//! Listing a directory takes so long that its waiters had better sleep, and a rename holds two
//! locks. A few directories get most of the requests, and the root gets all of them.

use super::audit::audit;
use super::random::{Random, zipf};
use super::{Extra, InTime, Sample, Tally, many};
use crate::error::Error;
use crate::lock::BenchLock;
use crate::probe::{Either, Pass, Probe};
use crate::world::{Word, Work, Worker, Workers, World};

/// Directories below a directory.
const FAN_OUT: usize = 8;
/// The directories below the root's, which have the files.
const LEAVES: u16 = 64;
/// The first of them: the root and its own directories lie before.
const FIRST_LEAF: usize = 1 + FAN_OUT;
/// Names in a directory; each may have its file or not.
const NAMES: usize = 64;

/// Private: receiving a request, and answering it.
pub const REQUEST_NS: f64 = 2_000.0;
/// Finding a name in a directory.
pub const LOOKUP_NS: f64 = 100.0;
/// Creating a file, or removing it.
pub const CREATE_NS: f64 = 1_000.0;
/// Moving a file from one directory to another.
pub const RENAME_NS: f64 = 2_000.0;
/// Listing a directory.
pub const LIST_NS: f64 = 30_000.0;

/// The work of each step of a request.
#[derive(Clone, Copy, Debug)]
pub struct Steps {
    /// [`REQUEST_NS`]
    pub request: Work,
    /// [`LOOKUP_NS`]
    pub lookup: Work,
    /// [`CREATE_NS`]
    pub create: Work,
    /// [`RENAME_NS`]
    pub rename: Work,
    /// [`LIST_NS`]
    pub list: Work,
}

/// The kinds of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    Lookup,
    Create,
    Rename,
    List,
}

impl Request {
    /// By a number from 0 to 99: 73 lookups, 18 creations, 5 renames, 4 lists.
    fn of(percentile: usize) -> Self {
        match percentile {
            0..73 => Self::Lookup,
            73..91 => Self::Create,
            91..96 => Self::Rename,
            _ => Self::List,
        }
    }
}

/// A directory. Its lock guards all of it.
#[repr(C, align(128))]
struct Directory<L, C> {
    lock: L,
    /// Acquisitions of the lock.
    visits: C,
    /// How many of the names have a file.
    files: C,
    /// The file of each name, 0 for none.
    names: [C; NAMES],
}

impl<L: BenchLock, C: Word> Directory<L, C> {
    /// With a file for every other name.
    fn new() -> Result<Self, Error> {
        let file = |name: usize| if name.is_multiple_of(2) { 1 } else { 0 };
        Ok(Self {
            lock: L::create()?,
            visits: C::new(0),
            files: C::new(NAMES as u64 / 2),
            names: std::array::from_fn(|name| C::new(file(name))),
        })
    }

    /// The files that a list shows.
    fn list(&self) -> u64 {
        self.names.iter().filter(|file| file.get() != 0).count() as u64
    }

    /// Gives the name a file, or none.
    fn set(&self, name: usize, file: u64) {
        let had = u64::from(self.names[name].get() != 0);
        self.names[name].set(file);
        self.files.add(u64::from(file != 0).wrapping_sub(had));
    }
}

/// The root, its directories, and theirs: each level after the one above.
struct Tree<L, C> {
    directories: Vec<Directory<L, C>>,
    /// Which of the leaves a request is for: a few are much hotter than the others.
    heat: Vec<u16>,
}

impl<L: BenchLock, C: Word> Tree<L, C> {
    fn new() -> Result<Self, Error> {
        let count = FIRST_LEAF + usize::from(LEAVES);
        let directories = many(count, Directory::new)?;
        Ok(Self {
            directories,
            heat: zipf(LEAVES, 4096),
        })
    }

    /// Sums over the directories: visits, files, and files that lists show.
    fn totals(&self) -> [u64; 3] {
        let mut totals = [0; 3];
        for directory in &self.directories {
            totals[0] += directory.visits.get();
            totals[1] += directory.files.get();
            totals[2] += directory.list();
        }
        totals
    }
}

/// One round. Operations are requests that were served before the time was up.
///
/// # Errors
///
/// [`Error::NotExclusive`] if visits or files got lost, [`Error::Torn`] if a list did not show as
/// many files as there are, and those of [`World::run`].
pub fn round<W: World, L: BenchLock>(
    world: &W,
    workers: &Workers,
    steps: &Steps,
    pass: Pass,
) -> Result<Sample, Error> {
    let tree: Tree<L, W::Word> = Tree::new()?;
    let [_, before, _] = tree.totals();
    let outcome = world.run(workers, &|worker| {
        let mut server: Server<'_, W, L> = Server {
            worker,
            tree: &tree,
            steps,
            probe: Either::new(pass),
            did: Did::default(),
        };
        let mut random = Random::new(worker.index() as u64);
        let (mut in_time, mut served) = (InTime::default(), 0);
        while in_time.goes_on(worker, served) {
            server.serve(&mut random);
            served += 1;
        }
        (Tally::new(in_time.count(), server.probe), server.did)
    })?;
    let (outcome, did) = outcome.split();
    let sample = Sample::new(outcome, Extra::None);
    if L::EXCLUDES {
        let did = Did::sum(&did);
        let files = before.wrapping_add(did.files);
        let [visits, counted, listed] = tree.totals();
        let pairs = [(did.visits, visits), (files, counted), (files, listed)];
        audit(&pairs, did.lists, did.torn)?;
    }
    Ok(sample)
}

/// A thread's counters.
#[derive(Clone, Copy, Debug, Default)]
struct Did {
    visits: u64,
    /// Created, less those removed: wraps.
    files: u64,
    lists: u64,
    /// Lists that did not show as many files as there are.
    torn: u64,
}

impl Did {
    fn sum(all: &[Self]) -> Self {
        let mut sum = Self::default();
        for did in all {
            sum.visits += did.visits;
            sum.files = sum.files.wrapping_add(did.files);
            sum.lists += did.lists;
            sum.torn += did.torn;
        }
        sum
    }
}

struct Server<'a, W: World, L> {
    worker: &'a W::Worker,
    tree: &'a Tree<L, W::Word>,
    steps: &'a Steps,
    probe: Either,
    did: Did,
}

impl<W: World, L: BenchLock> Server<'_, W, L> {
    /// Answers a request.
    fn serve(&mut self, random: &mut Random) {
        let (worker, steps) = (self.worker, self.steps);
        worker.work(steps.request);
        let leaf = self.leaf(random);
        let name = random.index(NAMES);
        self.walk(leaf);
        match Request::of(random.index(100)) {
            Request::Lookup => {
                self.within(leaf, |directory, _| {
                    directory.names[name].get();
                    worker.work(steps.lookup);
                });
            }
            Request::Create => {
                self.within(leaf, |directory, did| {
                    let create = directory.names[name].get() == 0;
                    directory.set(name, u64::from(create));
                    did.files = did.files.wrapping_add(if create { 1 } else { u64::MAX });
                    worker.work(steps.create);
                });
            }
            Request::Rename => {
                let target = self.leaf(random);
                let new = random.index(NAMES);
                self.walk(target);
                self.rename((leaf, name), (target, new));
            }
            Request::List => {
                self.within(leaf, |directory, did| {
                    let files = directory.files.get();
                    worker.work(steps.list);
                    did.lists += 1;
                    did.torn += u64::from(directory.list() != files);
                });
            }
        }
    }

    /// The directory that a request is for.
    fn leaf(&self, random: &mut Random) -> usize {
        let heat = &self.tree.heat;
        FIRST_LEAF + usize::from(heat[random.index(heat.len())])
    }

    /// Looks up the way to `leaf`: in the root, and in the directory that `leaf` is in.
    fn walk(&mut self, leaf: usize) {
        let (worker, lookup) = (self.worker, self.steps.lookup);
        for directory in [0, parent(leaf)] {
            self.within(directory, |directory, _| {
                directory.names[leaf % NAMES].get();
                worker.work(lookup);
            });
        }
    }

    /// Does something in a directory.
    #[inline]
    fn within(&mut self, directory: usize, section: impl FnOnce(&Directory<L, W::Word>, &mut Did)) {
        let directory = &self.tree.directories[directory];
        let guard = self.probe.lock(self.worker, &directory.lock);
        directory.visits.add(1);
        section(directory, &mut self.did);
        drop(guard);
        self.probe.released();
        self.did.visits += 1;
    }

    /// Moves a file, if there is one of that name and none of the new. The wait is that for both
    /// locks.
    fn rename(&mut self, (from, name): (usize, usize), (to, new): (usize, usize)) {
        let tree = self.tree;
        let (source, target) = (&tree.directories[from], &tree.directories[to]);
        // The lower address is locked first, so that no cycle of waits can form.
        let (low, high) = (
            &tree.directories[from.min(to)].lock,
            &tree.directories[from.max(to)].lock,
        );
        let guards = self.probe.around(self.worker, || {
            let low = low.lock();
            (low, (from != to).then(|| high.lock()))
        });
        source.visits.add(1);
        self.did.visits += 1;
        if from != to {
            target.visits.add(1);
            self.did.visits += 1;
        }
        let file = source.names[name].get();
        if file != 0 && target.names[new].get() == 0 {
            source.set(name, 0);
            target.set(new, file);
        }
        self.worker.work(self.steps.rename);
        drop(guards);
        self.probe.released();
    }
}

/// The directory that a leaf is in.
fn parent(leaf: usize) -> usize {
    (leaf - 1) / FAN_OUT
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::peers::Std;

    #[test]
    fn the_tree_is_one() {
        let tree = Tree::<Std, AtomicU64>::new().unwrap();
        let last = tree.directories.len() - 1;
        assert_eq!([parent(FIRST_LEAF), parent(last)], [1, FAN_OUT]);
        assert_eq!((1..FIRST_LEAF).map(parent).max(), Some(0));
        assert!(
            tree.heat
                .iter()
                .all(|&leaf| FIRST_LEAF + usize::from(leaf) <= last)
        );
    }

    #[test]
    fn directories_count_their_files() {
        let directory = Directory::<Std, AtomicU64>::new().unwrap();
        assert_eq!(directory.files.get(), directory.list());
        for (name, file) in [(0, 0), (0, 0), (1, 1), (1, 2), (0, 3)] {
            directory.set(name, file);
            assert_eq!(directory.files.get(), directory.list(), "{name}: {file}");
        }
    }

    #[test]
    fn requests_are_mixed() {
        let share = |request| (0..100).filter(|&at| Request::of(at) == request).count();
        let shares = [
            Request::Lookup,
            Request::Create,
            Request::Rename,
            Request::List,
        ]
        .map(share);
        assert_eq!(shares, [73, 18, 5, 4]);
    }
}
