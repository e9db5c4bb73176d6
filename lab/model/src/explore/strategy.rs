//! The decisions where an execution could go on in more than one way.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::memory::THREADS;

/// The subject of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Which thread goes on; `stay` where the first option is the thread that ran.
    Thread {
        /// Whether the first option is to go on with the thread that ran.
        stay: bool,
    },
    /// Which message a load reads, 0 the newest.
    Message,
    /// How far from the newest a store takes its place, 0 behind that.
    Place,
    /// Whether something that may happen at any time does: a spurious wake-up, a spurious failure,
    /// a thread that was preempted, a signal.
    Chance,
}

impl Question {
    /// Whether any answer but the first departs from the plain course of things. Such answers are
    /// bounded.
    fn departs(self) -> bool {
        self != Question::Thread { stay: false }
    }
}

/// How to explore.
#[derive(Clone, Debug)]
pub enum Strategy {
    /// Every execution with at most so many departures from the plain course.
    Exhaustive(Exhaustive),
    /// Random walks.
    Random(SmallRng),
    /// Probabilistic concurrency testing (Burckhardt and others, 2010).
    Pct(Pct),
    /// One execution again.
    Replay(Vec<u8>),
}

impl Strategy {
    /// All executions with at most `bound` departures.
    pub fn exhaustive(bound: u32) -> Self {
        Strategy::Exhaustive(Exhaustive {
            bound,
            left: bound,
            path: Vec::new(),
            depth: 0,
        })
    }

    /// Random walks from `seed`.
    pub fn random(seed: u64) -> Self {
        Strategy::Random(SmallRng::seed_from_u64(seed))
    }

    /// Random priorities from `seed`, which change at `depth` moments of each execution.
    pub fn pct(seed: u64, depth: u32) -> Self {
        Strategy::Pct(Pct {
            rng: SmallRng::seed_from_u64(seed),
            depth,
            priorities: [0; THREADS],
            lowest: 0,
            changes: Vec::new(),
            step: 0,
            longest: 1,
        })
    }

    /// An execution begins.
    pub fn begin(&mut self) {
        match self {
            Strategy::Exhaustive(this) => (this.left, this.depth) = (this.bound, 0),
            Strategy::Pct(this) => this.begin(),
            Strategy::Random(_) | Strategy::Replay(_) => {}
        }
    }

    /// An execution has ended; whether there is another one.
    pub fn more(&mut self) -> bool {
        match self {
            Strategy::Exhaustive(this) => this.advance(),
            Strategy::Random(_) | Strategy::Pct(_) => true,
            Strategy::Replay(_) => false,
        }
    }

    /// Chooses one of `options` answers. `taken` is how many choices there were before. `threads`
    /// are the options of a question about threads.
    pub fn choose(
        &mut self,
        question: Question,
        options: usize,
        taken: usize,
        threads: &[usize],
    ) -> usize {
        match self {
            Strategy::Exhaustive(this) => this.choose(question, options),
            Strategy::Random(rng) => wander(rng, question, options),
            Strategy::Pct(this) => match question {
                Question::Thread { .. } => this.thread(threads),
                _ => wander(&mut this.rng, question, options),
            },
            Strategy::Replay(path) => usize::from(path.get(taken).copied().unwrap_or(0)),
        }
    }

    /// PCT: the thread that runs waits or yields, so everybody else comes before it.
    pub fn yields(&mut self, thread: usize) {
        if let Strategy::Pct(this) = self {
            this.lowest -= 1;
            this.priorities[thread] = this.lowest;
        }
    }
}

/// A random answer; the plain one is the likeliest.
fn wander(rng: &mut SmallRng, question: Question, options: usize) -> usize {
    let plain = match question {
        Question::Thread { stay: true } => 0.7,
        Question::Thread { stay: false } => 0.0,
        Question::Message | Question::Place => 0.7,
        Question::Chance => 0.95,
    };
    if options == 1 || rng.random_bool(plain) {
        return 0;
    }
    match question {
        Question::Thread { stay: false } => rng.random_range(0..options),
        _ => rng.random_range(1..options),
    }
}

/// Depth-first search over all choices with a bound on departures.
#[derive(Clone, Debug)]
pub struct Exhaustive {
    bound: u32,
    left: u32,
    /// The answers of the execution at hand, with the number of options each had.
    path: Vec<(u8, u8)>,
    depth: usize,
}

impl Exhaustive {
    fn choose(&mut self, question: Question, options: usize) -> usize {
        let options = if question.departs() && self.left == 0 {
            1
        } else {
            options
        };
        if options == 1 {
            return 0;
        }
        if self.depth == self.path.len() {
            self.path.push((0, options as u8));
        }
        let (answer, of) = self.path[self.depth];
        debug_assert_eq!(
            usize::from(of),
            options,
            "an execution is not deterministic"
        );
        self.depth += 1;
        if answer != 0 && question.departs() {
            self.left -= 1;
        }
        usize::from(answer)
    }

    fn advance(&mut self) -> bool {
        self.path.truncate(self.depth);
        while let Some((answer, of)) = self.path.pop() {
            if answer + 1 < of {
                self.path.push((answer + 1, of));
                return true;
            }
        }
        false
    }
}

/// See [`Strategy::Pct`].
#[derive(Clone, Debug)]
pub struct Pct {
    rng: SmallRng,
    depth: u32,
    priorities: [i64; THREADS],
    lowest: i64,
    /// Steps at which the running thread's priority falls.
    changes: Vec<usize>,
    step: usize,
    /// Of all executions so far: the changes are spread over so many steps.
    longest: usize,
}

impl Pct {
    fn begin(&mut self) {
        self.longest = self.longest.max(self.step);
        self.step = 0;
        self.lowest = 0;
        for priority in &mut self.priorities {
            *priority = self.rng.random_range(1..1 << 32);
        }
        self.changes = (1..self.depth)
            .map(|_| self.rng.random_range(0..self.longest))
            .collect();
    }

    fn thread(&mut self, threads: &[usize]) -> usize {
        if self.changes.contains(&self.step) {
            self.lowest -= 1;
            self.priorities[threads[0]] = self.lowest;
        }
        self.step += 1;
        (0..threads.len())
            .max_by_key(|&option| self.priorities[threads[option]])
            .unwrap_or(0)
    }
}
