//! The report for people.

use std::fmt::{self, Display, Write};

use super::super::class::ClassId;
use super::super::graph::{Edge, Path, STEPS};
use super::super::out::{Out, width};
use super::super::thread::{Held, Thread};
use super::super::trace::Trace;
use super::super::wait::{Blocked, Circle};
use super::super::{settings, signal};
use super::{Finding, Note, Task};

const THICK: &str = "======================================================================";
const THIN: &str = "----------------------------------------------------------------------";

pub(super) fn write(
    out: &mut Out,
    me: &Thread,
    finding: &Finding<'_>,
    title: &str,
    trace: &Trace,
) -> fmt::Result {
    let level = match finding.is_warning() {
        true => "WARNING: ",
        false => "",
    };
    writeln!(out, "\n{THICK}\nlockdep: {level}{title}\n{THIN}")?;
    let task = Task(me.id());
    match finding {
        Finding::Order {
            held,
            wanted,
            path,
            note,
        } => {
            match note {
                Note::Early { used, by } => {
                    writeln!(out, "{task} uses:\n{}", Line(used))?;
                    writeln!(
                        out,
                        "\nwhich thread {by} uses too. When it was the only thread, that acquired:\n{}",
                        Line(wanted)
                    )?;
                    writeln!(out, "\nwhile it held:\n{}", Line(held))?;
                }
                Note::None | Note::Unknown | Note::Only => {
                    writeln!(out, "{task} is trying to acquire:\n{}", Line(wanted))?;
                    writeln!(out, "\nwhile it holds:\n{}", Line(held))?;
                }
            }
            writeln!(out, "\nbut the latter was taken after the former before.")?;
            chain(out, held, wanted, path)?;
            match note {
                Note::Only => {
                    writeln!(
                        out,
                        "\nNo other thread has used a lock: harmless, as long as none uses these."
                    )?;
                }
                _ => scene(out, held, wanted, path)?,
            }
            if matches!(note, Note::Unknown) {
                writeln!(
                    out,
                    "\nThis cycle cannot happen, for the sake of a common lock or of its threads."
                )?;
                writeln!(
                    out,
                    "Whether there is one that can is unknown: the search took {STEPS} steps."
                )?;
            }
            let is_mine = |edge: &Edge| edge.thread == me.id();
            let may_be_alone = matches!(note, Note::None) && !settings::tells_threads_apart();
            if may_be_alone && path.edges().iter().all(is_mine) {
                writeln!(
                    out,
                    "\nAll of these dependencies were first seen on one thread, {task}:"
                )?;
                writeln!(out, "harmless, unless another thread takes the locks too.")?;
            }
            others(out, held, wanted, path)?;
        }
        Finding::Class { held, wanted } => {
            writeln!(out, "{task} is trying to acquire:\n{}", Line(wanted))?;
            writeln!(
                out,
                "\nwhile it holds another lock of the class:\n{}",
                Line(held)
            )?;
            writeln!(out, "\nIf the locks have an order, say so: lock_nested().")?;
            let name = held.class;
            scenario(out, &[(0, "lock", &name), (0, "lock", &name)])?;
        }
        Finding::Again { held, wanted } => {
            writeln!(out, "{task} is about to wait for:\n{}", Line(wanted))?;
            writeln!(out, "\nwhich it holds itself:\n{}", Line(held))?;
            let name = held.class;
            scenario(out, &[(0, "lock", &name), (0, "lock", &name)])?;
        }
        Finding::ReadAgain { held, wanted } => {
            writeln!(out, "{task} is trying to read:\n{}", Line(wanted))?;
            writeln!(out, "\nwhich it reads already:\n{}", Line(held))?;
            let name = held.class;
            scenario(
                out,
                &[(0, "read", &name), (1, "write", &name), (0, "read", &name)],
            )?;
        }
        Finding::Signal { used, signals } => {
            writeln!(out, "{task} uses:\n{}", Line(used))?;
            writeln!(
                out,
                "\nwhose class is waited for in handlers of these signals, and held where they can arrive:"
            )?;
            signal::list(out, *signals)?;
            let name = used.class;
            scenario(
                out,
                &[(0, "lock", &name), (0, SIGNAL, &""), (0, "lock", &name)],
            )?;
        }
        Finding::Chain {
            last,
            waits,
            interrupts,
            signals,
            path,
        } => {
            writeln!(out, "{task} uses:\n{}", Line(last))?;
            writeln!(
                out,
                "\n({waits}) is waited for in handlers of these signals:"
            )?;
            signal::list(out, *signals)?;
            writeln!(
                out,
                "\nand held where, over some steps, ({interrupts}) is asked for, which is held elsewhere where they can arrive."
            )?;
            writeln!(out, "\nthe dependencies, newest first:")?;
            edges(out, path)?;
            let middle = middle(path).unwrap_or(*waits);
            between(out, *waits, middle, path)?;
            columns(
                out,
                &[
                    (0, "lock", interrupts),
                    (1, "lock", &middle),
                    (1, "lock", interrupts),
                    (0, SIGNAL, &""),
                    (0, "lock", waits),
                ],
            )?;
        }
        Finding::Release { at, holder } => {
            writeln!(out, "{task} is about to release:\n{}", Line(at))?;
            match holder {
                Some((number, held)) => {
                    writeln!(out, "\nbut thread {number} holds it:\n{}", Line(held))?
                }
                None => writeln!(out, "\nbut nobody holds it.")?,
            }
        }
        Finding::Exit { .. } => {
            writeln!(out, "{task} ends, and nobody can release what it holds.")?
        }
        Finding::Sleep { at, .. } => {
            write!(out, "{task} is about to sleep at {}", at.site)?;
            writeln!(out, ", and whoever waits for what it holds sleeps too.")?;
        }
        Finding::Deadlock(circle) => return deadlock(out, circle, trace),
    }
    held_by(out, me, &task)?;
    callers(out, "backtrace", trace)?;
    writeln!(out, "{THICK}")
}

/// A lock, how it is held, and the place of its acquisition.
struct Line<'a>(&'a Held);

impl Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Held {
            lock,
            class,
            how,
            site,
            ..
        } = self.0;
        write!(f, " {lock:#x} ({class}){{{how}}}, at: {site}")
    }
}

fn held_by(out: &mut Out, thread: &Thread, task: &dyn Display) -> fmt::Result {
    match thread.held_by_other().count() {
        0 => writeln!(out, "\nno locks held by {task}"),
        count => {
            writeln!(
                out,
                "\n{count} lock{} held by {task}:",
                if count == 1 { "" } else { "s" }
            )?;
            (thread.held_by_other().enumerate())
                .try_for_each(|(number, held)| writeln!(out, " #{number}:{}", Line(&held)))
        }
    }
}

fn callers(out: &mut Out, title: &str, trace: &Trace) -> fmt::Result {
    let mut callers = trace.callers().peekable();
    if callers.peek().is_some() {
        writeln!(out, "\n{title}:")?;
    }
    callers.try_for_each(|caller| writeln!(out, "  {caller}"))
}

/// The dependencies of a cycle, the newest first.
fn chain(out: &mut Out, held: &Held, wanted: &Held, path: &Path) -> fmt::Result {
    writeln!(out, "\nthe dependencies, newest first:")?;
    writeln!(
        out,
        "\n-> #{} ({}){{{}}}: wanted now, while ({}) is held",
        path.length(),
        wanted.class,
        wanted.how,
        held.class
    )?;
    writeln!(
        out,
        "     held since {}\n     wanted at  {}",
        held.site, wanted.site
    )?;
    edges(out, path)
}

/// How the cycle's threads can come to wait for each other.
fn scene(out: &mut Out, held: &Held, wanted: &Held, path: &Path) -> fmt::Result {
    let middle = middle(path).unwrap_or(wanted.class);
    between(out, wanted.class, middle, path)?;
    columns(
        out,
        &[
            (0, "lock", &held.class),
            (1, "lock", &middle),
            (1, "lock", &held.class),
            (0, "lock", &wanted.class),
        ],
    )
}

/// Says where a class of the cycle stands for two locks. `held` and `wanted` make its last
/// dependency.
fn others(out: &mut Out, held: &Held, wanted: &Held, path: &Path) -> fmt::Result {
    let edges = path.edges();
    if edges.len() < path.length() {
        return Ok(());
    }
    let taken = edges.iter().map(|edge| edge.locks[1]);
    let taken = [wanted.lock].into_iter().chain(taken);
    let held_then = edges.iter().map(|edge| edge.locks[0]).chain([held.lock]);
    let classes = edges.iter().map(|edge| ends(edge)[0]).chain([held.class]);
    for ((taken, held), class) in taken.zip(held_then).zip(classes) {
        if taken != held {
            writeln!(
                out,
                "\nOf ({class}) there were two locks, {taken:#x} and {held:#x}:\n\
                 harmless, if no lock of it is ever in both places."
            )?;
        }
    }
    Ok(())
}

/// The dependencies of a path, the newest first.
fn edges(out: &mut Out, path: &Path) -> fmt::Result {
    for (number, edge) in path.edges().iter().enumerate().rev() {
        let [from, to] = ends(edge);
        writeln!(
            out,
            "\n-> #{number} ({to}){{{}}}: taken while ({from}){{{}}} was held",
            edge.to_how, edge.from_how
        )?;
        writeln!(
            out,
            "     held since {}\n     taken at   {}",
            edge.sites[0], edge.sites[1]
        )?;
        let Edge { thread, locks, .. } = edge;
        writeln!(
            out,
            "     by thread {thread}{}, of locks {:#x} and {:#x}",
            if edge.is_by_several() {
                ", and others"
            } else {
                ""
            },
            locks[0],
            locks[1]
        )?;
        for caller in edge.trace.callers() {
            writeln!(out, "       {caller}")?;
        }
    }
    if path.length() > path.edges().len() {
        writeln!(
            out,
            "\n   (and {} more)",
            path.length() - path.edges().len()
        )?;
    }
    Ok(())
}

/// The class behind which the last one of a path is taken, if all of it is shown.
fn middle(path: &Path) -> Option<ClassId> {
    let last = path.edges().last()?;
    (path.length() == path.edges().len()).then(|| ends(last)[0])
}

/// Heads the columns, with the path from `first` to `middle`.
fn between(out: &mut Out, first: ClassId, middle: ClassId, path: &Path) -> fmt::Result {
    writeln!(out, "\nwhat can happen:")?;
    if middle == first {
        return Ok(());
    }
    write!(out, "\n chain exists of:\n   {first}")?;
    for edge in path.edges() {
        write!(out, " --> {}", ends(edge)[1])?;
    }
    writeln!(out)
}

fn ends(edge: &Edge) -> [ClassId; 2] {
    [edge.from, edge.to].map(|node| ClassId::new(node, 0))
}

fn scenario(out: &mut Out, steps: &[(usize, &str, &dyn Display)]) -> fmt::Result {
    writeln!(out, "\nwhat can happen:")?;
    columns(out, steps)
}

/// A step in which a handler begins.
const SIGNAL: &str = "<signal>";

/// The steps of two CPUs, in columns.
fn columns(out: &mut Out, steps: &[(usize, &str, &dyn Display)]) -> fmt::Result {
    let left = steps.iter().filter(|step| step.0 == 0);
    let left = left
        .map(|step| width(step.2) + 10)
        .max()
        .unwrap_or(0)
        .max(30);
    let both = steps.iter().any(|step| step.0 == 1);
    if both {
        writeln!(
            out,
            "\n       CPU0{:left$}CPU1\n       ----{:left$}----",
            "", ""
        )?;
    } else {
        writeln!(out, "\n       CPU0\n       ----")?;
    }
    for (cpu, what, name) in steps {
        let indent = if *cpu == 0 { 2 } else { left + 6 };
        match *what {
            SIGNAL => writeln!(out, "{:indent$}{SIGNAL}", "")?,
            _ => writeln!(out, "{:indent$}{what}({name});", "")?,
        }
    }
    writeln!(out, "\n *** DEADLOCK ***")
}

fn deadlock(out: &mut Out, circle: &Circle, trace: &Trace) -> fmt::Result {
    for Blocked {
        thread,
        wants,
        nanos,
        holder,
    } in circle.waiters()
    {
        let millis = nanos / 1_000_000;
        writeln!(
            out,
            "\nthread {} has waited for {millis} ms for:\n{}",
            thread.id(),
            Line(&wants)
        )?;
        writeln!(out, "which thread {holder} holds or waits for before it.")?;
        held_by(out, thread, &format_args!("thread {}", thread.id()))?;
    }
    callers(out, "backtrace of the thread that reports", trace)?;
    writeln!(out, "{THICK}")
}
