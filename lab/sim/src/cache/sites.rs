//! The sites of cores, computed once: places take divisions.

use std::ops::Range;

use crate::machine::Machine;
use crate::time::Time;

/// A core.
#[derive(Clone, Copy, Debug)]
struct Site {
    /// The number of its place.
    place: usize,
    /// Its number on the ring of its last-level cache.
    stop: usize,
}

/// A place.
#[derive(Debug)]
pub(super) struct Area {
    /// Its cores, those that share its last-level cache, and those of its socket.
    pub cores: Range<usize>,
    pub sharing: Range<usize>,
    pub socket: Range<usize>,
    /// Whether no other place shares its last-level cache.
    pub is_alone: bool,
}

/// All cores and places of a machine.
#[derive(Debug)]
pub(super) struct Sites {
    sites: Vec<Site>,
    areas: Vec<Area>,
    /// The cost of a transfer between two places.
    transfers: Vec<Time>,
    /// The ways between a core and a slice, by the difference of their numbers on the ring.
    ways: Vec<f64>,
}

impl Sites {
    pub fn of(machine: &Machine) -> Self {
        let site = |core| {
            let place = machine.place_of(core);
            Site {
                place: place.socket * machine.clusters + place.cluster,
                stop: machine.stop_of(core),
            }
        };
        let area = |place| Area {
            cores: machine.cores_of(place),
            sharing: machine.sharing(place),
            socket: machine.cores_of_socket(place.socket),
            is_alone: machine.cores_of(place) == machine.sharing(place),
        };
        let from = |from| machine.places().map(move |to| machine.transfer(from, to));
        Self {
            sites: (0..machine.all_cores()).map(site).collect(),
            areas: machine.places().map(area).collect(),
            transfers: machine.places().flat_map(from).collect(),
            ways: machine.ways().collect(),
        }
    }

    /// The number of a core's place.
    pub fn place(&self, core: usize) -> usize {
        self.sites[core].place
    }

    /// The place of that number.
    pub fn area(&self, place: usize) -> &Area {
        &self.areas[place]
    }

    /// Whether two places have a last-level cache in common.
    pub fn share_cache(&self, one: usize, other: usize) -> bool {
        one == other || self.areas[one].sharing == self.areas[other].sharing
    }

    /// Whether two places are on the same socket.
    pub fn share_socket(&self, one: usize, other: usize) -> bool {
        self.areas[one].socket == self.areas[other].socket
    }

    /// Returns the cost of a transfer between two places.
    pub fn transfer(&self, from: usize, to: usize) -> Time {
        self.transfers[from * self.areas.len() + to]
    }

    /// Returns the least cost of a transfer.
    pub fn shortest(&self) -> Time {
        self.transfers.iter().copied().min().unwrap_or(Time::ZERO)
    }

    /// Returns all places with what a transfer from each to `to` costs.
    pub fn transfers_to(&self, to: usize) -> impl Iterator<Item = (&Area, Time)> {
        let costs = self.transfers.iter().skip(to).step_by(self.areas.len());
        self.areas.iter().zip(costs.copied())
    }

    /// The length of the way from a core to a slice, relative to the mean.
    pub fn way(&self, core: usize, slice: usize) -> f64 {
        self.ways[self.sites[core].stop.abs_diff(slice)]
    }
}
