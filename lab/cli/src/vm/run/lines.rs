//! The lines that the guest prints.

use overlock_bench::guest::Counts;
use serde::Deserialize;

/// A line.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Line {
    /// A round of a lock.
    Round(Round),
    /// A vCPU in a round that makes no progress.
    Hang(Hang),
    /// The last line.
    End(End),
    /// The first line.
    Begin(Begin),
}

/// A round of a lock.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Round {
    pub lock: String,
    pub vcpus: usize,
    pub ns: u64,
    /// Of each vCPU.
    pub operations: Vec<u64>,
    #[serde(flatten)]
    pub counts: Counts,
}

/// A vCPU of a guest that hangs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Hang {
    /// The lock.
    pub hang: String,
    pub vcpu: usize,
    pub phase: Phase,
    pub operations: u64,
    /// Its instruction pointer, or 0.
    pub rip: u64,
    /// The address of the word that it halts on, or 0.
    pub halted_on: u64,
}

/// The part of its loop that a vCPU executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Phase {
    Outside,
    Waiting,
    Holding,
}

/// How the guest has ended.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct End {
    pub end: String,
    pub why: Option<String>,
}

/// How the guest has begun.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Begin {
    /// The hypervisor, as the guest finds it.
    #[serde(rename = "begin")]
    pub _hypervisor: String,
    pub cpus: usize,
}

impl Line {
    /// A line of the guest; `None` for those of others, such as Xen's own.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text.trim()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_guest_are_told_apart() {
        let round = r#"{"hypervisor":"xen","cpus":2,"lock":"mcs","vcpus":2,"ns":50,"min":1,"avg":2,"max":3,"total":4,"halts":5,"kicks":4,"unkicked":1,"preempted":7,"operations":[1,3]}"#;
        let Some(Line::Round(round)) = Line::parse(round) else {
            panic!("no round")
        };
        assert_eq!((round.lock.as_str(), round.vcpus, round.ns), ("mcs", 2, 50));
        assert_eq!((round.operations, round.counts.kicks), (vec![1, 3], 4));
        let hang = r#"{"hang":"mcs","vcpu":1,"phase":"Waiting","operations":9,"rip":16,"halted_on":0,"halts":2,"kicks":1}"#;
        let Some(Line::Hang(hang)) = Line::parse(hang) else {
            panic!("no vCPU")
        };
        assert_eq!((hang.phase, hang.rip), (Phase::Waiting, 16));
        let Some(Line::Begin(begin)) =
            Line::parse("{\"begin\":\"kvm\",\"vcpus\":3,\"cpus\":2}\r\n")
        else {
            panic!("no begin")
        };
        assert_eq!(begin.cpus, 2);
        let end = |why: Option<&str>| {
            Line::End(End {
                end: if why.is_some() { "failed" } else { "ok" }.to_owned(),
                why: why.map(str::to_owned),
            })
        };
        assert_eq!(Line::parse(r#"{"end":"ok","ms":5}"#), Some(end(None)));
        let failed = r#"{"end":"failed","why":"mcs: no progress"}"#;
        assert_eq!(Line::parse(failed), Some(end(Some("mcs: no progress"))));
    }

    #[test]
    fn lines_of_others_are_none() {
        for text in [
            "",
            "(XEN) Brought up 2 CPUs",
            "{",
            "{}",
            "[1]",
            "{\"lock\":\"mcs\"}",
        ] {
            assert_eq!(Line::parse(text), None, "{text}");
        }
    }
}
