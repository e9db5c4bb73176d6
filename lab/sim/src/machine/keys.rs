//! The keys of a machine: one line for each field.

use super::{Level, Links, MOST_CORES, Machine, PRESETS};
use crate::spec::{Domain, Key, Rule, Spec, Words};
use crate::time::Time;

const MOST: u64 = MOST_CORES as u64;
const SOME: Time = Time::ps(100);
const LONG: Time = Time::us(10);
const NONE: Time = Time::ZERO;

#[rustfmt::skip]
static KEYS: &[Key<Machine>] = &[
    Key::new("sockets", "Sockets", Domain::Count(1, MOST), |m| Some(&mut m.sockets)),
    Key::new("clusters", "Clusters of each socket, which share its cores evenly; 1 if it has none", Domain::Count(1, MOST), |m| Some(&mut m.clusters)),
    Key::new("cores_per_socket", "Cores of each socket", Domain::Count(1, MOST), |m| Some(&mut m.cores)),
    Key::new("threads_per_core", "Hardware threads of each core", Domain::Count(1, 8), |m| Some(&mut m.threads)),
    Key::new("last_level", "Which cores have a last-level cache in common", Domain::Word(Level::WORDS), |m| Some(&mut m.last_level)),
    Key::new("inclusive", "The last-level cache knows what its cores have, and answers readers itself", Domain::Flag, |m| Some(&mut m.inclusive)),
    Key::new("migratory", "A read takes a changed line over from its owner, to change it without another request", Domain::Flag, |m| Some(&mut m.migratory)),
    Key::new("links", "Sockets are all connected, or are the corners of a square or cube", Domain::Word(Links::WORDS), |m| Some(&mut m.links)),
    Key::new("hit", "A load or a store that hits the first-level cache", Domain::Time(SOME, LONG), |m| Some(&mut m.costs.hit)),
    Key::new("locked", "A locked instruction on a line that the core owns", Domain::Time(SOME, LONG), |m| Some(&mut m.costs.locked)),
    Key::new("cluster", "A line that another core of the cluster has changed; unused without clusters", Domain::Time(NONE, LONG), |m| Some(&mut m.costs.cluster)),
    Key::new("socket", "A line that a core of the socket, outside of the cluster, has changed", Domain::Time(SOME, LONG), |m| Some(&mut m.costs.socket)),
    Key::new("shared", "Reading a line that the core's last-level cache has", Domain::Time(SOME, LONG), |m| Some(&mut m.costs.shared)),
    Key::new("across", "A line that a core of a socket one hop away has changed", Domain::Time(NONE, LONG), |m| Some(&mut m.costs.across)),
    Key::new("hop", "Additional cost of each further hop", Domain::Time(NONE, LONG), |m| Some(&mut m.costs.hop)),
    Key::new("gap", "Between two readers that one cache serves one after the other", Domain::Time(NONE, LONG), |m| Some(&mut m.costs.gap)),
    Key::new("memory", "A line that no cache has", Domain::Time(SOME, LONG), |m| Some(&mut m.costs.memory)),
    Key::new("turn", "One iteration of a spin loop: a pause instruction, a load that hits, a branch", Domain::Time(SOME, LONG), |m| Some(&mut m.costs.turn)),
    Key::new("request", "The share of a transfer until the request is at the line's home", Domain::Share(0.05, 0.6), |m| Some(&mut m.costs.request)),
    Key::new("snoop", "The mean share of a transfer from there until the owner loses the line; the rest is for the data", Domain::Share(0.05, 0.6), |m| Some(&mut m.costs.snoop)),
    Key::new("locks_line", "The share of a locked instruction before it locks its line", Domain::Share(0.1, 0.9), |m| Some(&mut m.costs.locks_line)),
    Key::new("stores", "How many stores the buffer of a vCPU holds", Domain::Count(1, 1024), |m| Some(&mut m.costs.stores)),
    Key::new("jitter", "The largest random variation of a transfer but for its snoop, as a share of its length; 0 for none", Domain::Share(0.0, 0.9), |m| Some(&mut m.costs.jitter)),
    Key::new("ring", "The largest variation of a transfer by distance, as a share of its length", Domain::Share(0.0, 0.9), |m| Some(&mut m.costs.ring)),
    Key::new("sibling", "The speed of a hardware thread while its sibling computes, as a share of its own", Domain::Share(0.1, 1.0), |m| Some(&mut m.costs.sibling)),
];

impl Spec for Machine {
    const WHAT: &'static str = "machine";
    const RULES: &'static [Rule<Self>] = &[
        Rule {
            keys: &["sockets", "cores_per_socket"],
            what: "sockets * cores_per_socket must be at most 1024",
            holds: |machine| machine.all_cores() <= MOST_CORES,
        },
        Rule {
            keys: &["clusters", "cores_per_socket"],
            what: "cores_per_socket must be a multiple of clusters",
            holds: |machine| machine.cores.is_multiple_of(machine.clusters),
        },
        // The cache counts on both: a place that has copies already is not asked anew.
        Rule {
            keys: &["cluster", "clusters", "socket"],
            what: "cluster must be above 0 and at most socket, with clusters",
            holds: |machine| {
                machine.clusters == 1
                    || (SOME..=machine.costs.socket).contains(&machine.costs.cluster)
            },
        },
        Rule {
            keys: &["request", "snoop"],
            what: "request + snoop must be at most 0.9, as the data of a transfer takes some time",
            holds: |machine| machine.costs.request + machine.costs.snoop <= 0.9,
        },
        Rule {
            keys: &["socket", "across", "sockets"],
            what: "socket must be at most across, with several sockets",
            holds: |machine| machine.sockets == 1 || machine.costs.socket <= machine.costs.across,
        },
    ];
    const NARROWING: &'static [&'static str] = &["cores"];

    fn keys() -> &'static [Key<Self>] {
        KEYS
    }

    fn presets() -> &'static [Self] {
        &PRESETS
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn about(&self) -> &str {
        &self.about
    }

    fn rename(&mut self, name: String, about: String) {
        self.name = name.into();
        self.about = about.into();
    }

    fn narrow(self, value: &str) -> Result<Self, String> {
        self.using_cores(value)
    }
}

impl Words for Links {
    const ALL: &'static [Self] = &[Self::All, Self::Cube];
    const WORDS: &'static [&'static str] = &["all", "cube"];
}

impl Words for Level {
    const ALL: &'static [Self] = &[Self::Socket, Self::Cluster];
    const WORDS: &'static [&'static str] = &["socket", "cluster"];
}
