//! Which rounds a grid has, and how long it takes.

use std::time::Duration;

use super::shape::{SHAPES, SHORT, Shape, find};
use crate::probe::Pass;
use crate::registry::{Entry, Family};

/// The usual length of a round.
pub const ROUND: Duration = Duration::from_millis(250);
/// The shortest round that a budget makes.
const SHORTEST: Duration = Duration::from_millis(20);
/// Starting and joining the workers.
const OVERHEAD: Duration = Duration::from_millis(5);
/// The same for each of its threads.
const THREAD_OVERHEAD: Duration = Duration::from_micros(60);

/// A cell of the grid: a shape with a number of threads.
#[derive(Clone, Debug)]
pub struct Place {
    /// The shape.
    pub shape: &'static Shape,
    /// The number of threads.
    pub threads: usize,
    /// The locks of the cell: first the judged one, then its peers, then the limit where there is
    /// one.
    pub locks: Vec<&'static Entry>,
}

/// The rounds of a grid.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The cells.
    pub places: Vec<Place>,
    /// Throughput rounds of each.
    pub rounds: usize,
    /// Rounds that time the waits.
    pub latency_rounds: usize,
    /// How long a round is, before it is stretched.
    pub round: Duration,
    /// Seed of the random choices.
    pub seed: u64,
    /// When no further round of all cells begins, at least one done.
    pub deadline: Option<Duration>,
}

/// One round of one lock in one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Index into [`Plan::places`].
    pub place: usize,
    /// Index into [`Place::locks`].
    pub lock: usize,
    /// Throughput or waits.
    pub pass: Pass,
    /// Which round of all cells this belongs to, of both passes.
    pub sweep: usize,
}

/// The cells of `shapes`: with the numbers of threads given, else with the shapes' own.
pub fn places(
    shapes: &[&'static Shape],
    threads: &[usize],
    locks: impl Fn(Family) -> Vec<&'static Entry>,
) -> Vec<Place> {
    let place = |shape: &'static Shape, threads| Place {
        shape,
        threads,
        locks: locks(shape.family),
    };
    shapes
        .iter()
        .flat_map(|&shape| {
            let own = if threads.is_empty() {
                shape.threads
            } else {
                threads
            };
            own.iter().map(move |&count| (shape, count))
        })
        .map(|(shape, count)| place(shape, count))
        .collect()
}

/// The cells of the short form that are of these families.
pub fn short(families: &[Family], locks: impl Fn(Family) -> Vec<&'static Entry>) -> Vec<Place> {
    SHORT
        .iter()
        .filter(|(family, ..)| families.contains(family))
        .flat_map(|(family, name, threads)| {
            let shape = find(&[*family], name).expect("a test looks at each of them");
            places(&[shape], threads, &locks)
        })
        .collect()
}

/// The shapes of these families.
pub fn all(families: &[Family]) -> Vec<&'static Shape> {
    let of_them = |shape: &&Shape| families.contains(&shape.family);
    SHAPES.iter().filter(of_them).collect()
}

impl Plan {
    /// How long a round in that cell is. With many threads each must have had several slices of the
    /// scheduler, or its share says nothing of the lock.
    pub fn length(&self, place: &Place) -> Duration {
        let by_threads = match place.threads {
            ..16 => 1,
            16..64 => 2,
            _ => 4,
        };
        self.round * by_threads.max(place.shape.stretch)
    }

    /// How long that step takes, with what goes on around the round.
    pub fn cost(&self, step: Step) -> Duration {
        let place = &self.places[step.place];
        let threads = u32::try_from(place.threads).unwrap_or(u32::MAX);
        self.length(place) + OVERHEAD + THREAD_OVERHEAD.saturating_mul(threads)
    }

    /// About how long all of it takes.
    pub fn duration(&self) -> Duration {
        self.steps().map(|step| self.cost(step)).sum()
    }

    /// Sets the length of rounds so that all takes about `budget`.
    pub fn fit(&mut self, budget: Duration) {
        self.round = Duration::from_secs(1);
        let with_rounds_of_1_s = self.duration();
        self.round = Duration::ZERO;
        let around = self.duration();
        let left = budget.saturating_sub(around).as_secs_f64();
        let per_second = (with_rounds_of_1_s - around).as_secs_f64();
        let round = Duration::from_secs_f64(left / per_second.max(1.0));
        self.round = round.clamp(SHORTEST, ROUND);
        self.deadline = Some(budget);
    }

    /// All rounds in their order: every round has all cells, and in a cell all locks, one after the
    /// other, so that the machine's drift hits all alike. Each round starts with another lock, so
    /// that none always follows the same one's end.
    pub fn steps(&self) -> impl Iterator<Item = Step> + '_ {
        let passes = (0..self.rounds.max(self.latency_rounds)).flat_map(|round| {
            let throughput = (round < self.rounds).then_some((round, Pass::Throughput));
            let latency = (round < self.latency_rounds).then_some((round, Pass::Latency));
            throughput.into_iter().chain(latency)
        });
        passes.enumerate().flat_map(move |(sweep, (round, pass))| {
            self.places
                .iter()
                .enumerate()
                .flat_map(move |(index, place)| {
                    let count = place.locks.len();
                    (0..count).map(move |place| Step {
                        place: index,
                        lock: (place + round) % count,
                        pass,
                        sweep,
                    })
                })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{Choice, contestants};

    fn plan(places: Vec<Place>) -> Plan {
        Plan {
            places,
            rounds: 3,
            latency_rounds: 1,
            round: ROUND,
            seed: 1,
            deadline: None,
        }
    }

    #[test]
    fn the_short_form_fits_into_its_time() {
        let locks = |family| contestants(family, &Choice::Short);
        let mut plan = plan(short(&Family::ALL, locks));
        plan.fit(Duration::from_secs(80));
        assert!(plan.round > SHORTEST * 2, "{:?}", plan.round);
        assert!(plan.duration() <= Duration::from_secs(80));
    }

    #[test]
    fn the_whole_grid_takes_about_an_hour() {
        let locks = |family| contestants(family, &Choice::Usual);
        let mut plan = plan(places(&all(&Family::ALL), &[], locks));
        plan.rounds = 5;
        let minutes = plan.duration().as_secs_f64() / 60.0;
        assert!((30.0..90.0).contains(&minutes), "{minutes} minutes");
    }

    #[test]
    fn locks_alternate_and_each_round_begins_with_another() {
        let shape = find(&[Family::Exclusive], "65/330").unwrap();
        let locks = |family| contestants(family, &Choice::Named(vec!["std".to_owned()]));
        let plan = plan(places(&[shape], &[1, 2], locks));
        let order = |pass, sweep| -> Vec<(usize, usize)> {
            let steps = plan.steps();
            let steps = steps.filter(|step| step.pass == pass && step.sweep == sweep);
            steps.map(|step| (step.place, step.lock)).collect()
        };
        // Ours, std, the limit.
        let first = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)];
        assert_eq!(order(Pass::Throughput, 0), first);
        assert_eq!(order(Pass::Latency, 1), first);
        assert_eq!(order(Pass::Throughput, 2)[..3], [(0, 1), (0, 2), (0, 0)]);
        assert_eq!(plan.steps().count(), 6 * 4);
    }
}
