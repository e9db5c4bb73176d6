//! The report for programs: one line, an object.

use std::fmt::{self, Write};

use super::super::class::ClassId;
use super::super::graph::Path;
use super::super::out::{Escaped, Out};
use super::super::thread::{Held, Thread};
use super::super::trace::Trace;
use super::super::wait::Blocked;
use super::{Finding, Note};

pub(super) fn write(
    out: &mut Out,
    me: &Thread,
    finding: &Finding<'_>,
    (name, title): (&str, &str),
    trace: &Trace,
) -> fmt::Result {
    let is_warning = finding.is_warning();
    write!(out, "{{\"lockdep\":\"{name}\",\"title\":\"{title}\"")?;
    write!(out, ",\"warning\":{is_warning},\"thread\":{}", me.id())?;
    match finding {
        Finding::Order {
            held,
            wanted,
            path,
            note,
        } => {
            pair(out, held, wanted)?;
            chain(out, path)?;
            match note {
                Note::None | Note::Only => {}
                Note::Unknown => out.write_str(",\"unknown\":true")?,
                Note::Early { used, by } => {
                    member(out, "uses", used)?;
                    write!(out, ",\"by\":{by}")?;
                }
            }
        }
        Finding::Class { held, wanted }
        | Finding::Again { held, wanted }
        | Finding::ReadAgain { held, wanted } => pair(out, held, wanted)?,
        Finding::Signal { used, signals } => {
            member(out, "uses", used)?;
            write!(out, ",\"signals\":{signals}")?;
        }
        Finding::Chain {
            last,
            waits,
            interrupts,
            signals,
            path,
        } => {
            member(out, "uses", last)?;
            let [waits, interrupts] = [waits, interrupts].map(Escaped);
            write!(
                out,
                ",\"signals\":{signals},\"waits\":\"{waits}\",\"interrupts\":\"{interrupts}\""
            )?;
            chain(out, path)?;
        }
        Finding::Release { at, holder } => {
            member(out, "releases", at)?;
            if let Some((number, held)) = holder {
                write!(out, ",\"holder\":{number}")?;
                member(out, "while", held)?;
            }
        }
        Finding::Exit { held } => member(out, "first", held)?,
        Finding::Sleep { at, .. } => write!(out, ",\"site\":\"{}\"", Escaped(at.site))?,
        Finding::Deadlock(circle) => {
            out.write_str(",\"threads\":[")?;
            for (index, waiter) in circle.waiters().enumerate() {
                let Blocked {
                    thread,
                    wants,
                    nanos,
                    holder,
                } = waiter;
                let comma = if index == 0 { "" } else { "," };
                write!(
                    out,
                    "{comma}{{\"thread\":{},\"nanos\":{nanos},\"for\":{holder}",
                    thread.id()
                )?;
                member(out, "wants", &wants)?;
                held_by(out, thread)?;
                out.write_char('}')?;
            }
            out.write_char(']')?;
        }
    }
    held_by(out, me)?;
    callers(out, "backtrace", trace)?;
    out.write_str("}\n")
}

fn callers(out: &mut Out, name: &str, trace: &Trace) -> fmt::Result {
    write!(out, ",\"{name}\":[")?;
    for (index, caller) in trace.callers().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        write!(out, "{comma}\"{}\"", Escaped(caller))?;
    }
    out.write_char(']')
}

fn pair(out: &mut Out, held: &Held, wanted: &Held) -> fmt::Result {
    member(out, "wants", wanted)?;
    member(out, "while", held)
}

fn member(out: &mut Out, name: &str, held: &Held) -> fmt::Result {
    write!(out, ",\"{name}\":")?;
    object(out, held)
}

fn held_by(out: &mut Out, thread: &Thread) -> fmt::Result {
    out.write_str(",\"held\":[")?;
    for (index, held) in thread.held_by_other().enumerate() {
        if index != 0 {
            out.write_char(',')?;
        }
        object(out, &held)?;
    }
    out.write_char(']')
}

fn object(out: &mut Out, held: &Held) -> fmt::Result {
    let Held {
        lock,
        class,
        how,
        site,
        ..
    } = held;
    let [class, site] = [Escaped(class as &dyn fmt::Display), Escaped(site)];
    write!(
        out,
        "{{\"lock\":\"{lock:#x}\",\"class\":\"{class}\",\"mode\":\"{how}\",\"site\":\"{site}\"}}"
    )
}

/// The dependencies of a path, from its beginning.
fn chain(out: &mut Out, path: &Path) -> fmt::Result {
    out.write_str(",\"chain\":[")?;
    for (index, edge) in path.edges().iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let [from, to] = [edge.from, edge.to].map(|node| Escaped(ClassId::new(node, 0)));
        let [held_at, taken_at] = edge.sites.map(Escaped);
        write!(out, "{comma}{{\"from\":\"{from}\",\"to\":\"{to}\"")?;
        write!(
            out,
            ",\"from_mode\":\"{}\",\"to_mode\":\"{}\"",
            edge.from_how, edge.to_how
        )?;
        write!(
            out,
            ",\"held_at\":\"{held_at}\",\"taken_at\":\"{taken_at}\""
        )?;
        let [held, taken] = edge.locks;
        write!(
            out,
            ",\"thread\":{},\"held\":\"{held:#x}\",\"taken\":\"{taken:#x}\"",
            edge.thread
        )?;
        callers(out, "callers", &edge.trace)?;
        out.write_char('}')?;
    }
    out.write_char(']')
}
