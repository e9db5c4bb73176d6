//! Machines: sockets, clusters, cores, hardware threads, and the costs of cache line transfers.

mod keys;
#[cfg(test)]
pub(crate) mod tests;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use crate::spec;
use crate::time::Time;

/// All machines that have a name.
pub static PRESETS: LazyLock<Vec<Machine>> =
    LazyLock::new(|| spec::presets(include_str!("machine/presets.toml")));

/// The largest number of cores of all sockets.
pub const MOST_CORES: usize = 1024;

/// The topology of the connections between sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Links {
    /// Fully connected.
    #[default]
    All,
    /// At the corners of a square or a cube, with their numbers as coordinates: one hop along each
    /// edge.
    Cube,
}

/// A part of a machine whose cores have a last-level cache in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// A cluster.
    Cluster,
    /// A socket.
    #[default]
    Socket,
}

/// The place of a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The number of its socket.
    pub socket: usize,
    /// The number of its cluster in the socket.
    pub cluster: usize,
}

/// Costs on a machine, as seen by one core without interference. Its
/// [keys](crate::spec::Spec::keys) say what each is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Costs {
    pub hit: Time,
    pub locked: Time,
    /// Also where copies in the cluster must be invalidated. Without meaning if the sockets have no
    /// clusters.
    pub cluster: Time,
    /// As `cluster`, from another cluster of the socket, or from a core of the socket if it has no
    /// clusters.
    pub socket: Time,
    pub shared: Time,
    /// As `socket`, from a socket one hop away.
    pub across: Time,
    pub hop: Time,
    pub gap: Time,
    pub memory: Time,
    pub turn: Time,
    pub request: f64,
    pub snoop: f64,
    /// Until then the instruction waits for earlier ones.
    pub locks_line: f64,
    pub stores: usize,
    pub jitter: f64,
    /// Each line has a place in the last-level cache, on a ring with the cores.
    pub ring: f64,
    pub sibling: f64,
}

/// A machine. Its [keys](crate::spec::Spec::keys) say what each field is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machine {
    /// Its name on the command line: a preset, and what differs from it, as in
    /// `e5-2699v3:socket=60ns`.
    pub name: Cow<'static, str>,
    pub about: Cow<'static, str>,
    /// All of them together have at most [`MOST_CORES`] cores.
    pub sockets: usize,
    /// Core complexes, tiles, or quadrants of a mesh.
    pub clusters: usize,
    pub cores: usize,
    pub threads: usize,
    pub last_level: Level,
    /// Without it each read snoops all cores.
    pub inclusive: bool,
    /// Without it the reader and the owner share the line.
    pub migratory: bool,
    pub links: Links,
    pub costs: Costs,
}

impl Machine {
    /// Returns the preset of that name.
    pub fn preset(name: &str) -> Option<&'static Self> {
        spec::preset(name)
    }

    /// Returns the machine of a name with changed keys, such as `e5-2699v3:socket=60ns:cores=8`.
    ///
    /// # Errors
    ///
    /// [`spec::Error`] names the preset or key that is wrong. Files are not read: [`spec::read`]
    /// does that.
    pub fn named(text: &str) -> Result<Self, spec::Error> {
        spec::parse(text)
    }

    /// Returns the number of cores of all sockets.
    pub fn all_cores(&self) -> usize {
        self.sockets * self.cores
    }

    /// Returns the number of CPUs, as the operating system counts them: hardware threads of all
    /// cores.
    pub fn cpus(&self) -> usize {
        self.all_cores() * self.threads
    }

    /// Returns the core of a CPU. As in Linux, the first threads of all cores come first, then
    /// their siblings.
    pub fn core_of(&self, cpu: usize) -> usize {
        match self.threads {
            1 => cpu,
            _ => cpu % self.all_cores(),
        }
    }

    /// Returns the CPUs of a core.
    pub fn cpus_of(&self, core: usize) -> impl Iterator<Item = usize> + use<> {
        (core..self.cpus()).step_by(self.all_cores())
    }

    /// Returns the CPUs that have a last-level cache in common with this one, in their order.
    pub fn cpus_sharing(&self, cpu: usize) -> impl Iterator<Item = usize> + use<> {
        let cores = self.sharing(self.place_of(self.core_of(cpu)));
        let firsts = (0..self.cpus()).step_by(self.all_cores());
        firsts.flat_map(move |first| cores.clone().map(move |core| first + core))
    }

    /// Returns the CPUs in the order in which busy threads are spread over them: sockets, then
    /// clusters, then cores take turns, and the second threads of cores come last.
    pub fn spread_cpus(&self) -> Vec<usize> {
        let mut cpus: Vec<usize> = (0..self.cpus()).collect();
        cpus.sort_by_key(|&cpu| {
            let core = self.core_of(cpu);
            let place = self.place_of(core);
            let in_cluster = core - self.cores_of(place).start;
            (
                cpu / self.all_cores(),
                in_cluster,
                place.cluster,
                place.socket,
            )
        });
        cpus
    }

    /// Returns the place of a core.
    pub fn place_of(&self, core: usize) -> Place {
        Place {
            socket: core / self.cores,
            cluster: core % self.cores / self.cores_of_cluster(),
        }
    }

    fn cores_of_cluster(&self) -> usize {
        self.cores / self.clusters
    }

    /// Returns all places.
    pub fn places(&self) -> impl Iterator<Item = Place> + use<> {
        let clusters = self.clusters;
        (0..self.sockets)
            .flat_map(move |socket| (0..clusters).map(move |cluster| Place { socket, cluster }))
    }

    /// Returns the cores of a place.
    pub fn cores_of(&self, place: Place) -> Range<usize> {
        let size = self.cores_of_cluster();
        let first = place.socket * self.cores + place.cluster * size;
        first..first + size
    }

    /// Returns the cores of a socket.
    pub fn cores_of_socket(&self, socket: usize) -> Range<usize> {
        socket * self.cores..(socket + 1) * self.cores
    }

    /// Returns the cores that share the last-level cache of a place.
    pub fn sharing(&self, place: Place) -> Range<usize> {
        match self.last_level {
            Level::Cluster => self.cores_of(place),
            Level::Socket => self.cores_of_socket(place.socket),
        }
    }

    /// Whether two places have a last-level cache in common.
    pub fn share_cache(&self, one: Place, other: Place) -> bool {
        self.sharing(one) == self.sharing(other)
    }

    /// Returns the number of hops between two sockets.
    pub fn hops(&self, one: usize, other: usize) -> u32 {
        match self.links {
            Links::All => u32::from(one != other),
            Links::Cube => (one ^ other).count_ones(),
        }
    }

    /// Returns the time to get a changed line from place `from` to a core of place `to`.
    pub fn transfer(&self, from: Place, to: Place) -> Time {
        match self.hops(from.socket, to.socket) {
            0 if self.clusters > 1 && from.cluster == to.cluster => self.costs.cluster,
            0 => self.costs.socket,
            hops => self.costs.across + self.costs.hop.times(u64::from(hops) - 1),
        }
    }

    /// Returns the number of a core on the ring of its last-level cache.
    pub fn stop_of(&self, core: usize) -> usize {
        core % self.stops()
    }

    /// Returns the number of the slice that a line is in.
    pub fn slice_of(&self, line: usize) -> usize {
        // A hash spreads addresses over the slices.
        (line.wrapping_mul(0x9e37_79b9) >> 7) % self.stops()
    }

    /// Returns the lengths of the ways between a core and a slice, relative to the mean, by the
    /// difference of their numbers.
    pub fn ways(&self) -> impl Iterator<Item = f64> + use<> {
        let (stops, ring) = (self.stops(), self.costs.ring);
        let farthest = (stops / 2).max(1) as f64;
        (0..stops).map(move |apart| {
            let apart = apart.min(stops - apart) as f64;
            1.0 + ring * (2.0 * apart / farthest - 1.0)
        })
    }

    /// The number of cores and slices of a ring.
    fn stops(&self) -> usize {
        self.sharing(Place::default()).len()
    }

    /// Returns the same machine with this many of its cores, as under a CPU affinity. Sockets and
    /// clusters are alike, so the cores are those of as few sockets as can share them evenly, and
    /// of as few clusters of each. If no number of them can, there are a few more cores than
    /// requested: 19 of 2 x 18 are 2 x 10.
    #[must_use]
    pub fn with_cores(&self, cores: usize) -> Self {
        let cores = cores.clamp(1, self.all_cores());
        let shares = |cores: usize| Some((cores, self.share_evenly(cores)?));
        let shares = (cores..=self.all_cores()).find_map(shares);
        let (cores, (sockets, clusters)) = shares.expect("all parts can share all cores");
        let mut costs = self.costs;
        if clusters == 1 && self.clusters > 1 {
            // A socket without clusters is what a cluster was.
            costs.socket = costs.cluster;
        }
        Self {
            sockets,
            clusters,
            cores: cores / sockets,
            costs,
            ..self.clone()
        }
    }

    /// Returns the same machine with exactly this many of its cores.
    ///
    /// # Errors
    ///
    /// Says why, if the machine has fewer, or if no number of sockets and clusters can share them
    /// evenly.
    pub fn using_cores(&self, cores: &str) -> Result<Self, String> {
        let most = self.all_cores();
        let cores = cores.trim().parse().ok();
        let cores = cores
            .filter(|cores| (1..=most).contains(cores))
            .ok_or_else(|| format!("must be a whole number from 1 to {most}"))?;
        let used = self.with_cores(cores);
        match used.all_cores() {
            same if same == cores => Ok(used),
            more => Err(format!(
                "its sockets and clusters cannot share them evenly; they can share {more}"
            )),
        }
    }

    /// Returns the smallest numbers of sockets, and of clusters of each, that can share these cores
    /// evenly.
    fn share_evenly(&self, cores: usize) -> Option<(usize, usize)> {
        let sockets = cores.div_ceil(self.cores)..=self.sockets;
        sockets
            .flat_map(|sockets| (1..=self.clusters).map(move |clusters| (sockets, clusters)))
            .find(|&(sockets, clusters)| {
                let parts = sockets * clusters;
                cores.is_multiple_of(parts) && cores / parts <= self.cores_of_cluster()
            })
    }
}
