//! Machines: sockets, cores, hardware threads, and the costs of cache line transfers.

mod keys;
mod presets;

use std::borrow::Cow;

use crate::time::Time;

pub use presets::PRESETS;

/// The largest number of cores: a set of them fits one word.
pub const MOST_CORES: usize = 128;

/// The topology of the connections between sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// Fully connected.
    All,
    /// At the corners of a square or a cube, with their numbers as coordinates: one hop along each
    /// edge.
    Cube,
}

/// Costs on a machine, as seen by one core without interference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// A load or a store that hits the first-level cache.
    pub hit: Time,
    /// A locked instruction on a line that the core owns.
    pub locked: Time,
    /// Getting a line that another core of the socket has changed, or whose copies there must be
    /// invalidated.
    pub socket: Time,
    /// Reading a line that the socket's last-level cache has.
    pub shared: Time,
    /// As `socket`, from a socket one hop away.
    pub across: Time,
    /// Additional cost of each further hop.
    pub hop: Time,
    /// Between two readers that one cache serves one after the other.
    pub gap: Time,
    /// A line that no cache has.
    pub memory: Time,
    /// One iteration of a spin loop: a pause instruction, a load that hits, a branch.
    pub turn: Time,
    /// The largest random variation of a transfer, as a share of its length.
    pub jitter: f64,
    /// The largest variation of a core's way to a line by distance, as a share of its length. Each
    /// line has a place in the last-level cache, on a ring with the cores.
    pub ring: f64,
    /// The speed of a hardware thread while its sibling computes, too, as a share of its speed
    /// alone.
    pub sibling: f64,
}

/// A machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Its name on the command line: a preset, and what differs from it, as in
    /// `e5-2699v3:socket=60ns`.
    pub name: Cow<'static, str>,
    /// Its description.
    pub about: Cow<'static, str>,
    /// Number of sockets.
    pub sockets: usize,
    /// Number of cores of each socket.
    pub cores: usize,
    /// Number of hardware threads of each core.
    pub threads: usize,
    /// Whether a socket's last-level cache knows what its cores have, and so can answer readers by
    /// itself. Otherwise each read snoops all cores.
    pub inclusive: bool,
    /// Whether a read of a line that its owner has changed takes the line over, so that the reader
    /// can change it without another request. Otherwise both share it.
    pub migratory: bool,
    /// The connections between sockets.
    pub links: Links,
    /// The costs of operations.
    pub costs: Costs,
}

impl Machine {
    /// Returns the preset of that name.
    pub fn preset(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|machine| machine.name == name)
    }

    /// Returns the machine of a name with changed keys, such as `e5-2699v3:socket=60ns:cores=8`.
    ///
    /// # Errors
    ///
    /// [`spec::Error`](crate::spec::Error) names the preset or key that is wrong. Files are not
    /// read: [`spec::read`](crate::spec::read) does that.
    pub fn named(text: &str) -> Result<Self, crate::spec::Error> {
        crate::spec::parse(text)
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
        cpu % self.all_cores()
    }

    /// Returns the CPUs of a core.
    pub fn cpus_of(&self, core: usize) -> impl Iterator<Item = usize> + use<> {
        (core..self.cpus()).step_by(self.all_cores())
    }

    /// Returns the socket of a core.
    pub fn socket_of(&self, core: usize) -> usize {
        core / self.cores
    }

    /// Returns the number of hops between two sockets.
    pub fn hops(&self, one: usize, other: usize) -> u32 {
        match self.links {
            Links::All => u32::from(one != other),
            Links::Cube => (one ^ other).count_ones(),
        }
    }

    /// Returns the time to get a changed line from socket `from` to a core of socket `to`.
    pub fn transfer(&self, from: usize, to: usize) -> Time {
        match self.hops(from, to) {
            0 => self.costs.socket,
            hops => self.costs.across + self.costs.hop.times(u64::from(hops) - 1),
        }
    }

    /// Returns the length of the way from `core` to `line`, relative to the mean, by their distance
    /// on the ring.
    pub fn way(&self, core: usize, line: usize) -> f64 {
        // A hash spreads addresses over the slices.
        let slice = (line.wrapping_mul(0x9e37_79b9) >> 7) % self.cores;
        let apart = (core % self.cores).abs_diff(slice);
        let apart = apart.min(self.cores - apart) as f64;
        let farthest = (self.cores / 2).max(1) as f64;
        1.0 + self.costs.ring * (2.0 * apart / farthest - 1.0)
    }

    /// Returns the same machine with this many of its cores, as under a CPU affinity. Sockets are
    /// alike, so the cores are those of as few sockets as can share them evenly. If no number of
    /// sockets can, there are a few more cores than requested: 19 of 2 x 18 are 2 x 10.
    #[must_use]
    pub fn with_cores(&self, cores: usize) -> Self {
        let cores = cores.clamp(1, self.all_cores());
        let fewest = cores.div_ceil(self.cores);
        let evenly = (fewest..=self.sockets).find(|sockets| cores.is_multiple_of(*sockets));
        let sockets = evenly.unwrap_or(fewest);
        Self {
            sockets,
            cores: cores.div_ceil(sockets),
            ..self.clone()
        }
    }

    /// Returns the same machine with exactly this many of its cores.
    ///
    /// # Errors
    ///
    /// Says why, if the machine has fewer, or if no number of sockets can share them evenly.
    pub fn sharing(&self, cores: &str) -> Result<Self, String> {
        let most = self.all_cores();
        let Some(cores) = cores
            .trim()
            .parse()
            .ok()
            .filter(|cores| (1..=most).contains(cores))
        else {
            return Err(format!("must be a whole number from 1 to {most}"));
        };
        let used = self.with_cores(cores);
        if used.all_cores() == cores {
            return Ok(used);
        }
        Err(format!(
            "{} sockets cannot share them evenly; they can share {}",
            used.sockets,
            used.all_cores()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_have_unique_names_and_valid_sizes() {
        for machine in PRESETS {
            assert!(machine.all_cores() <= MOST_CORES, "{}", machine.name);
            let same = PRESETS.iter().filter(|other| other.name == machine.name);
            assert_eq!(same.count(), 1, "{}", machine.name);
            assert_eq!(Machine::preset(&machine.name), Some(machine));
        }
    }

    #[test]
    fn hops_follow_the_edges() {
        let square = Machine {
            links: Links::Cube,
            sockets: 4,
            ..PRESETS[0].clone()
        };
        assert_eq!([0, 1, 2, 3].map(|to| square.hops(0, to)), [0, 1, 1, 2]);
        assert_eq!(
            square.transfer(1, 2),
            square.costs.across + square.costs.hop
        );
    }

    /// Fails where only the smallest possible number of sockets is tried, or where a socket gets
    /// more cores than it has.
    #[test]
    fn fewer_cores_are_shared_evenly_by_sockets() {
        for machine in PRESETS {
            for cores in 1..=machine.all_cores() {
                let used = machine.with_cores(cores);
                let fits = |sockets: usize| {
                    cores.is_multiple_of(sockets) && cores / sockets <= machine.cores
                };
                let exact = (1..=machine.sockets).any(fits);
                assert_eq!(used.all_cores() == cores, exact, "{} {cores}", machine.name);
                assert!((cores..cores + used.sockets).contains(&used.all_cores()));
                assert!(used.sockets <= machine.sockets && used.cores <= machine.cores);
            }
        }
        let of = |name: &str, cores: usize| {
            let used = Machine::preset(name).unwrap().with_cores(cores);
            (used.sockets, used.cores)
        };
        assert_eq!(of("e5-2699v3", 18), (1, 18));
        assert_eq!(of("e5-2699v3", 19), (2, 10));
        assert_eq!(of("e5-2699v3", 20), (2, 10));
        assert_eq!(of("x7560", 15), (3, 5));
    }

    #[test]
    fn siblings_share_a_core() {
        let machine = Machine::preset("e5-2620v4").unwrap();
        assert_eq!(machine.cpus(), 32);
        assert_eq!([0, 8, 16, 24].map(|cpu| machine.core_of(cpu)), [0, 8, 0, 8]);
        assert_eq!(machine.cpus_of(8).collect::<Vec<_>>(), [8, 24]);
        assert_eq!(
            [0, 7, 8, 15].map(|core| machine.socket_of(core)),
            [0, 0, 1, 1]
        );
    }
}
