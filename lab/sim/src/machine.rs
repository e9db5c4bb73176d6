//! Machines: sockets, clusters, cores, hardware threads, and the costs of cache line transfers.

#[cfg(test)]
pub(crate) mod tests;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::spec::{self, Domain, Key, Spec, keys};
use crate::time::Time;

/// The largest number of cores of all sockets.
pub const MOST_CORES: usize = 1024;

const COUNT: Domain = Domain::Count(1, MOST_CORES);
const SOME: Time = Time::ps(100);
const LONG: Time = Time::us(10);
const FLAG: Domain = Domain::Flag;
const COST: Domain = Domain::Time(SOME, LONG);
const OR_NONE: Domain = Domain::Time(Time::ZERO, LONG);
const LEG: Domain = Domain::Share(0.05, 0.6);
const SPREAD: Domain = Domain::Share(0.0, 0.9);

/// The topology of the connections between sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Links {
    /// Fully connected.
    #[default]
    All,
    /// At the corners of a square or a cube, with their numbers as coordinates: one hop along each
    /// edge.
    Cube,
}

/// The place of a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The number of its socket.
    pub socket: usize,
    /// The number of its cluster in the socket.
    pub cluster: usize,
}

keys! {
    /// A machine.
    Machine {
        /// Its name on the command line: a preset, and what differs from it, as in
        /// `e5-2699v3:socket=60ns`.
        name: Cow<'static, str>,
        /// Its description.
        about: Cow<'static, str>,
        #[serde(flatten)]
        costs: Costs,
    }
    sockets: usize = COUNT, "Sockets";
    clusters: usize = COUNT,
        "Clusters of each socket, each with a last-level cache; 1 if it has none";
    cores as "cores_per_socket": usize = COUNT, "Cores of each socket";
    threads as "threads_per_core": usize = Domain::Count(1, 8), "Hardware threads of each core";
    /// Without it each read snoops all cores.
    inclusive: bool = FLAG, "The last-level cache knows its cores' lines, and serves their readers";
    /// Without it the reader and the owner share the line.
    migratory: bool = FLAG, "A read takes a changed line over, to write it without asking again";
    links: Links = Domain::Word(&["all", "cube"]),
        "all: each socket to each; cube: along its edges";
}

keys! {
    /// Costs on a machine, as seen by one core without interference.
    #[derive(Copy)]
    Costs {}
    hit: Time = COST, "A load or a store that hits the first-level cache";
    locked: Time = COST, "A locked instruction on a line that the core owns";
    /// Also where copies in the cluster must be invalidated.
    cluster: Time = OR_NONE, "A line that another core of the cluster, if any, has changed";
    socket: Time = COST, "A line that a core of the socket, outside of the cluster, has changed";
    shared: Time = COST, "Reading a line that the core's last-level cache has";
    across: Time = OR_NONE, "A line that a core of a socket one hop away has changed";
    hop: Time = OR_NONE, "Additional cost of each further hop";
    gap: Time = OR_NONE, "Between two readers that one cache serves one after the other";
    memory: Time = COST, "A line that no cache has";
    turn: Time = COST,
        "One iteration of a spin loop: a pause instruction, a load that hits, a branch";
    request: f64 = LEG, "The share of a transfer until the request is at the line's home";
    snoop: f64 = LEG,
        "The mean share from the line's home until its owner loses the line; data take the rest";
    /// Until then the instruction waits for earlier ones.
    locks_line: f64 = Domain::Share(0.1, 0.9),
        "The share of a locked instruction before it locks its line";
    jitter: f64 = SPREAD,
        "The largest random variation of a transfer without its snoop, as a share";
    /// Each line has a place in the last-level cache, on a ring with the cores.
    ring: f64 = SPREAD, "The largest variation of a transfer by distance, as a share of its length";
    sibling: f64 = Domain::Share(0.1, 1.0),
        "The speed of a hardware thread while its sibling computes, as a share of its own";
}

/// All that have a name.
pub static PRESETS: LazyLock<Vec<Machine>> =
    LazyLock::new(|| spec::presets(include_str!("machine/presets.toml")));

impl Spec for Machine {
    const WHAT: &'static str = "machine";
    const KEYS: &'static [&'static [Key]] = &[Self::OWN_KEYS, Costs::OWN_KEYS];
    const CORES: Option<&'static str> = Some("cores");

    fn presets() -> &'static [Self] {
        &PRESETS
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn about(&self) -> &str {
        &self.about
    }

    fn rules(&self) -> Vec<(bool, &'static str)> {
        let (clusters, costs) = (self.clusters, self.costs);
        let near = SOME..=costs.socket;
        vec![
            (
                self.all_cores() <= MOST_CORES,
                "sockets * cores_per_socket must be at most 1024",
            ),
            (
                self.cores.is_multiple_of(clusters),
                "cores_per_socket must be a multiple of clusters",
            ),
            // The cache counts on both: a place that has copies already is not asked anew.
            (
                clusters == 1 || near.contains(&costs.cluster),
                "cluster must be above 0 and at most socket, with clusters",
            ),
            (
                self.sockets == 1 || costs.socket <= costs.across,
                "socket must be at most across, with several sockets",
            ),
            (
                costs.request + costs.snoop <= 0.9,
                "request + snoop must be at most 0.9, as the data of a transfer takes some time",
            ),
        ]
    }

    /// Sockets and clusters are alike, so the cores are those of as few sockets as can share them
    /// evenly, and of as few clusters of each.
    fn using_cores(&self, cores: &str) -> Result<Self, String> {
        let most = self.all_cores();
        let cores = cores.trim().parse().ok();
        let cores = cores.filter(|cores| (1..=most).contains(cores));
        let cores = cores.ok_or_else(|| format!("must be a whole number from 1 to {most}"))?;
        let Some((sockets, clusters)) = self.share_evenly(cores) else {
            let more = (cores..most).find(|more| self.share_evenly(*more).is_some());
            let more = more.unwrap_or(most);
            return Err(format!(
                "its sockets and clusters cannot share them evenly; they can share {more}"
            ));
        };
        let mut used = self.clone();
        (used.sockets, used.clusters, used.cores) = (sockets, clusters, cores / sockets);
        if clusters == 1 && self.clusters > 1 {
            // A socket without clusters is what a cluster was.
            used.costs.socket = used.costs.cluster;
        }
        Ok(used)
    }
}

impl Machine {
    /// Returns the preset of that name.
    pub fn preset(name: &str) -> Option<&'static Self> {
        spec::preset(name)
    }

    /// As [`spec::parse`].
    pub fn named(text: &str) -> Result<Self, String> {
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
        let cores = self.cores_of(self.place_of(self.core_of(cpu)));
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
            let thread = cpu / self.all_cores();
            (thread, in_cluster, place.cluster, place.socket)
        });
        cpus
    }

    /// Returns the place of a core.
    pub fn place_of(&self, core: usize) -> Place {
        Place {
            socket: core / self.cores,
            cluster: core % self.cores / (self.cores / self.clusters),
        }
    }

    /// Returns all places.
    pub fn places(&self) -> impl Iterator<Item = Place> + use<> {
        let clusters = self.clusters;
        (0..self.sockets)
            .flat_map(move |socket| (0..clusters).map(move |cluster| Place { socket, cluster }))
    }

    /// Returns the cores of a place, which have a last-level cache in common.
    pub fn cores_of(&self, place: Place) -> Range<usize> {
        let size = self.cores / self.clusters;
        let first = place.socket * self.cores + place.cluster * size;
        first..first + size
    }

    /// Returns the time to get a changed line from place `from` to a core of place `to`.
    pub fn transfer(&self, from: Place, to: Place) -> Time {
        let hops = match self.links {
            Links::All => u32::from(from.socket != to.socket),
            Links::Cube => (from.socket ^ to.socket).count_ones(),
        };
        match hops {
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
        self.cores / self.clusters
    }

    /// Returns the smallest numbers of sockets, and of clusters of each, that can share these cores
    /// evenly.
    fn share_evenly(&self, cores: usize) -> Option<(usize, usize)> {
        let clusters = |sockets| (1..=self.clusters).map(move |clusters| (sockets, clusters));
        (1..=self.sockets)
            .flat_map(clusters)
            .find(|(sockets, clusters)| {
                let parts = sockets * clusters;
                cores.is_multiple_of(parts) && cores / parts <= self.cores / self.clusters
            })
    }
}
