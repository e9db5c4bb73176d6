//! A guest from its start to its end: its lines become the cells of the reports.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use overlock_bench::interrupt::Interrupt;
use overlock_bench::measure::Cell;
use overlock_bench::workload::{Extra, Sample};

use super::choice::{Choice, Lock};
use super::hang;
use super::lines::{Begin, End, Hang, Line, Round};
use super::machine::{Ended, Guest, Launch};
use crate::exit::Exit;
use crate::measure::progress::Progress;
use crate::vm::Hypervisor;

/// Between two checks of the time and of Ctrl-C.
const POLL: Duration = Duration::from_millis(50);

/// How long the hypervisor may take to end after the guest has.
const GRACE: Duration = Duration::from_secs(5);

/// The state of a run.
pub struct Session<'a> {
    choice: &'a Choice,
    hypervisor: Hypervisor,
    progress: &'a Progress,
    rounds: Vec<Round>,
    hangs: Vec<Hang>,
    begin: Option<Begin>,
    end: Option<End>,
}

impl<'a> Session<'a> {
    pub fn new(choice: &'a Choice, hypervisor: Hypervisor, progress: &'a Progress) -> Self {
        Self {
            choice,
            hypervisor,
            progress,
            rounds: Vec::new(),
            hangs: Vec::new(),
            begin: None,
            end: None,
        }
    }

    /// Runs the guest to its end.
    pub fn run(&mut self, launch: &Launch<'_>, interrupt: &Interrupt) -> Result<(), Exit> {
        let (mut guest, output) = launch.start()?;
        let is_late = self.listen(guest.as_mut(), &output, interrupt);
        let ended = guest.end();
        if interrupt.is_raised() {
            return Err(Exit::Interrupted);
        }
        match (&self.end, ended.error.as_deref()) {
            (Some(end), _) if end.end == "ok" => self.check(),
            (Some(end), _) => Err(self.failed(end, &ended, launch)),
            (None, _) if is_late => Err(self.late(&ended)),
            (None, why) => Err(Exit::Failed(format!(
                "the guest under {} has not come to its end{}",
                self.hypervisor.name(),
                why.map(|why| format!(": {why}")).unwrap_or_default()
            ))),
        }
    }

    /// Takes the guest's lines until it ends, or until the time is over, or Ctrl-C. Returns whether
    /// the time was over.
    fn listen(
        &mut self,
        guest: &mut dyn Guest,
        output: &Receiver<String>,
        interrupt: &Interrupt,
    ) -> bool {
        let begin = Instant::now();
        let mut limit = self.choice.limit;
        let mut is_stopped = false;
        loop {
            match output.recv_timeout(POLL) {
                Ok(text) => text.lines().for_each(|line| self.take(line)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return is_stopped,
            }
            if self.end.is_some() {
                limit = limit.min(begin.elapsed() + GRACE);
            }
            let is_over = begin.elapsed() > limit || interrupt.is_raised();
            if is_over && !is_stopped {
                is_stopped = true;
                guest.stop();
            }
        }
    }

    fn take(&mut self, text: &str) {
        match Line::parse(text) {
            Some(Line::Round(round)) => {
                self.rounds.push(round);
                self.announce();
            }
            Some(Line::Hang(hang)) => self.hangs.push(hang),
            Some(Line::Begin(begin)) => {
                self.begin = Some(begin);
                self.announce();
            }
            Some(Line::End(end)) => self.end = Some(end),
            None => {}
        }
    }

    /// Shows how far the run is.
    fn announce(&self) {
        let what = format!("{}, {} vCPUs", self.hypervisor.name(), self.count());
        self.progress.at(self.rounds.len(), &what);
    }

    /// The number of vCPUs in the present round.
    fn count(&self) -> usize {
        let each = self.choice.rounds * self.choice.locks.len();
        let counts = &self.choice.counts;
        let place = (self.rounds.len() / each).min(counts.len() - 1);
        counts[place]
    }

    /// The CPUs of the guest, as it knows.
    pub fn cpus(&self) -> usize {
        self.begin.as_ref().map_or(1, |begin| begin.cpus)
    }

    /// A guest that has ended well has run all rounds, and none of a broken lock.
    fn check(&self) -> Result<(), Exit> {
        let mut locks = self.choice.locks.iter();
        if let Some(lock) = locks.find(|lock| lock.entry.is_none()) {
            return Err(Exit::Failed(format!(
                "{} is broken, and the guest has not noticed",
                lock.name
            )));
        }
        match (self.rounds.len(), self.choice.total()) {
            (found, total) if found == total => Ok(()),
            (found, total) => Err(Exit::Failed(format!(
                "the guest has printed {found} of {total} rounds"
            ))),
        }
    }

    /// The guest has found a fault.
    fn failed(&self, end: &End, ended: &Ended, launch: &Launch<'_>) -> Exit {
        let mut text = format!(
            "{}, with {} vCPUs under {}",
            end.why.as_deref().unwrap_or("the guest has failed"),
            self.count(),
            self.hypervisor.name()
        );
        text += &hang::describe(&self.hangs, &ended.places, launch.image);
        Exit::Failed(text)
    }

    /// The guest has not ended in time.
    fn late(&self, ended: &Ended) -> Exit {
        let mut text = format!(
            "the guest under {} has not ended within {} s; it had run {} of {} rounds",
            self.hypervisor.name(),
            self.choice.limit.as_secs_f64(),
            self.rounds.len(),
            self.choice.total()
        );
        for place in &ended.places {
            text += &format!("\n  {place}");
        }
        Exit::Failed(text)
    }

    /// The cells of the reports, by number of vCPUs, then in the order of the locks.
    pub fn cells(&self) -> Vec<Cell> {
        let counts = self.choice.counts.iter();
        let cells = counts.flat_map(|&count| {
            let locks = self.choice.locks.iter();
            locks.filter_map(move |lock| self.cell(lock, count))
        });
        cells.collect()
    }

    fn cell(&self, lock: &Lock, count: usize) -> Option<Cell> {
        let rounds = self.rounds.iter();
        let rounds: Vec<&Round> = rounds
            .filter(|round| round.lock == lock.name && round.vcpus == count)
            .collect();
        Some(Cell {
            entry: lock.entry?,
            threads: count,
            samples: rounds.iter().map(|round| sample(round)).collect(),
            waits: None,
            roles: None,
            counters: None,
            reports: Vec::new(),
            guests: rounds.iter().map(|round| round.counts).collect(),
        })
    }
}

fn sample(round: &Round) -> Sample {
    Sample {
        operations: round.operations.clone(),
        elapsed: Duration::from_nanos(round.ns),
        // No hypervisor tells.
        cpu: Duration::ZERO,
        switches: 0,
        windows: Vec::new(),
        waits: None,
        roles: None,
        extra: Extra::None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::choice::tests::choice;
    use super::*;

    fn round(lock: &str, vcpus: usize, operations: u64) -> String {
        format!(
            r#"{{"lock":"{lock}","vcpus":{vcpus},"ns":1000,"operations":[{operations},2],"halts":3,"kicks":3,"unkicked":0,"preempted":0}}"#
        )
    }

    fn message(result: Result<(), Exit>) -> String {
        match result.unwrap_err() {
            Exit::Failed(message) => message,
            other => panic!("no failure: {other:?}"),
        }
    }

    #[test]
    fn rounds_become_the_cells_of_their_lock() {
        let words = ["--vcpus", "2,4", "--locks", "mcs,hybrid", "--rounds", "2"];
        let choice = choice(&words).unwrap();
        let mut session = Session::new(&choice, Hypervisor::Xen, &Progress::Hidden);
        session.take(r#"{"begin":"xen","vcpus":5,"cpus":2}"#);
        session.take("(XEN) Scrubbing Free RAM");
        let mut operations = 0;
        for vcpus in [2, 4] {
            for lock in ["mcs", "hybrid", "hybrid", "mcs"] {
                assert_eq!(session.count(), vcpus);
                assert!(message(session.check()).ends_with(" of 8 rounds"));
                operations += 1;
                session.take(&round(lock, vcpus, operations));
            }
        }
        session.check().unwrap();
        assert_eq!(session.cpus(), 2);
        let cells = session.cells();
        let names: Vec<(&str, usize)> = cells.iter().map(|c| (c.entry.name, c.threads)).collect();
        let expected = [("mcs", 2), ("hybrid", 2), ("mcs", 4), ("hybrid", 4)];
        assert_eq!(names, expected);
        let first: Vec<u64> = cells[2].samples.iter().map(|s| s.operations[0]).collect();
        assert_eq!(first, [5, 8]);
        assert_eq!(
            cells[0]
                .guests
                .iter()
                .map(|counts| counts.halts)
                .sum::<u64>(),
            6
        );
    }

    /// Fails where a broken lock that nobody notices is a success.
    #[test]
    fn a_broken_lock_must_be_noticed() {
        let words = [
            "--vcpus",
            "2",
            "--locks",
            "faulty_lost_kick",
            "--rounds",
            "1",
        ];
        let choice = choice(&words).unwrap();
        let mut session = Session::new(&choice, Hypervisor::Tcg, &Progress::Hidden);
        session.take(&round("faulty_lost_kick", 2, 1));
        assert!(message(session.check()).contains("faulty_lost_kick is broken"));
        assert!(session.cells().is_empty());
    }
}
