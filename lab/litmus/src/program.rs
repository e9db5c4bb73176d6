//! The threads of a pair's test, as the source has them: atomics with their orderings.
//!
//! ```text
//! x = 1 release              a store
//! a = x acquire              a load
//! a = cas w 1 0 acquire      a read-modify-write: cas, swap, add, or, max
//! fence                      fence(SeqCst)
//! kernel                     a full fence of the kernel's futex
//! light, heavy               the platform's barriers
//! ```

use std::collections::BTreeMap;

/// An ordering. That of a failed exchange is the same as far as the load goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordering {
    /// Relaxed.
    Relaxed,
    /// Acquire.
    Acquire,
    /// Release.
    Release,
    /// AcqRel.
    Both,
    /// SeqCst.
    SeqCst,
}

impl Ordering {
    /// Whether it acquires.
    pub fn acquires(self) -> bool {
        matches!(self, Ordering::Acquire | Ordering::Both | Ordering::SeqCst)
    }

    /// Whether it releases.
    pub fn releases(self) -> bool {
        matches!(self, Ordering::Release | Ordering::Both | Ordering::SeqCst)
    }

    fn parse(text: Option<&str>) -> Result<Self, String> {
        Ok(match text {
            None | Some("relaxed") => Ordering::Relaxed,
            Some("acquire") => Ordering::Acquire,
            Some("release") => Ordering::Release,
            Some("acqrel") => Ordering::Both,
            Some("seqcst") => Ordering::SeqCst,
            Some(other) => return Err(format!("{other} is no ordering")),
        })
    }
}

/// A read-modify-write, with its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// Compare-exchange: the expected value, and the new one.
    Exchange(i64, i64),
    /// A swap.
    Swap(i64),
    /// An addition.
    Add(i64),
    /// `fetch_or`.
    Or(i64),
    /// `fetch_max`.
    Max(i64),
}

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// A load into a name.
    Load(String, String, Ordering),
    /// A store.
    Store(String, i64, Ordering),
    /// A read-modify-write, whose old value has a name.
    Update(String, String, Update, Ordering),
    /// A read-modify-write in two halves, which others may come between: the broken form.
    Halves(String, String, Update),
    /// A full fence.
    Fence,
    /// The frequent side's barrier.
    Light,
    /// The rare side's barrier.
    Heavy,
}

impl Statement {
    fn parse(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let value = |word: &str| word.parse().map_err(|_| format!("{word} is no number"));
        let name = |word: &str| word.to_owned();
        Ok(match words.as_slice() {
            ["fence" | "kernel"] => Statement::Fence,
            ["light"] => Statement::Light,
            ["heavy"] => Statement::Heavy,
            [into, "=", "cas", place, from, to, rest @ ..] => Statement::Update(
                name(into),
                name(place),
                Update::Exchange(value(from)?, value(to)?),
                Ordering::parse(rest.first().copied())?,
            ),
            [
                into,
                "=",
                word @ ("swap" | "add" | "or" | "max"),
                place,
                operand,
                rest @ ..,
            ] => {
                let update = match *word {
                    "swap" => Update::Swap,
                    "add" => Update::Add,
                    "or" => Update::Or,
                    _ => Update::Max,
                };
                Statement::Update(
                    name(into),
                    name(place),
                    update(value(operand)?),
                    Ordering::parse(rest.first().copied())?,
                )
            }
            [place, "=", word, rest @ ..] => {
                let order = Ordering::parse(rest.first().copied())?;
                match word.parse() {
                    Ok(value) => Statement::Store(name(place), value, order),
                    Err(_) => Statement::Load(name(place), name(word), order),
                }
            }
            _ => return Err(format!("{text}: not known")),
        })
    }

    fn order(&self) -> Option<Ordering> {
        match self {
            Statement::Load(.., order)
            | Statement::Store(.., order)
            | Statement::Update(.., order) => Some(*order),
            _ => None,
        }
    }

    /// The statement as a relaxed one.
    fn relaxed(&self) -> Statement {
        let mut relaxed = self.clone();
        if let Statement::Load(.., order)
        | Statement::Store(.., order)
        | Statement::Update(.., order) = &mut relaxed
        {
            *order = Ordering::Relaxed;
        }
        relaxed
    }
}

/// The threads, the initial values, and what never happens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The threads.
    pub threads: Vec<Vec<Statement>>,
    /// Initial values that are not 0.
    pub initial: BTreeMap<String, i64>,
    /// The outcome that never happens: all of these. A name of no location is that of a result.
    pub never: Vec<(String, i64)>,
}

fn equations(text: &str) -> Result<Vec<(String, i64)>, String> {
    let one = |text: &str| {
        let (name, value) = text.split_once('=').ok_or("an equation is expected")?;
        let value = value.parse().map_err(|_| format!("{value} is no number"))?;
        Ok((name.to_owned(), value))
    };
    text.split_whitespace().map(one).collect()
}

impl Program {
    /// Parses the threads, the initial values, the outcome.
    pub fn parse(threads: &[String], initial: &str, never: &str) -> Result<Self, String> {
        let thread = |text: &String| text.split(';').map(Statement::parse).collect();
        Ok(Program {
            threads: threads.iter().map(thread).collect::<Result<_, String>>()?,
            initial: equations(initial)?.into_iter().collect(),
            never: equations(never)?,
        })
    }

    /// The program with one ordering, or one fence, taken away: each of them in turn. SeqCst goes
    /// from all accesses of a thread, for a machine may have its fence at either of two. If there
    /// is no ordering, the program with one read-modify-write in two halves.
    pub fn broken(&self) -> Vec<Program> {
        let mut all = Vec::new();
        for (thread, statements) in self.threads.iter().enumerate() {
            let is_strict = |one: &Statement| one.order() == Some(Ordering::SeqCst);
            if statements.iter().any(is_strict) {
                let mut program = self.clone();
                for statement in program.threads[thread]
                    .iter_mut()
                    .filter(|one| is_strict(one))
                {
                    *statement = statement.relaxed();
                }
                all.push(program);
            }
            for (index, statement) in statements.iter().enumerate() {
                let without = match statement.order() {
                    None if *statement == Statement::Fence => None,
                    None | Some(Ordering::Relaxed | Ordering::SeqCst) => continue,
                    Some(_) => Some(statement.relaxed()),
                };
                all.push(self.with(thread, index, without));
            }
        }
        if all.is_empty() {
            for (thread, statements) in self.threads.iter().enumerate() {
                for (index, statement) in statements.iter().enumerate() {
                    if let Statement::Update(into, place, update, _) = statement {
                        let halves = Statement::Halves(into.clone(), place.clone(), *update);
                        all.push(self.with(thread, index, Some(halves)));
                    }
                }
            }
        }
        all
    }

    fn with(&self, thread: usize, index: usize, statement: Option<Statement>) -> Program {
        let mut program = self.clone();
        program.threads[thread].splice(index..=index, statement);
        program
    }

    /// The programs that the platform's barriers stand for, one for each point of the light side's
    /// program at which the heavy side's membarrier may run the fence. In each, the point comes
    /// after the call and before its return.
    pub fn placements(&self) -> Vec<Program> {
        let find = |which: Statement| {
            let has = |thread: &Vec<Statement>| thread.contains(&which);
            self.threads.iter().position(has)
        };
        let Some((light, heavy)) = find(Statement::Light).zip(find(Statement::Heavy)) else {
            return vec![self.clone()];
        };
        let name = str::to_owned;
        let mut base = self.clone();
        let at = base.threads[heavy]
            .iter()
            .position(|one| *one == Statement::Heavy)
            .expect("found above");
        let call = [
            Statement::Fence,
            Statement::Store(name("call"), 1, Ordering::Relaxed),
            Statement::Load(name("returned"), name("done"), Ordering::Relaxed),
            Statement::Fence,
        ];
        base.threads[heavy].splice(at..=at, call);
        base.threads[light].retain(|one| *one != Statement::Light);
        base.never.push((name("returned"), 1));
        base.never.push((name("interrupted"), 1));
        (0..=base.threads[light].len())
            .map(|point| {
                let mut program = base.clone();
                let interrupt = [
                    Statement::Load(name("interrupted"), name("call"), Ordering::Relaxed),
                    Statement::Fence,
                    Statement::Store(name("done"), 1, Ordering::Relaxed),
                ];
                program.threads[light].splice(point..point, interrupt);
                program
            })
            .collect()
    }
}
