//! The axioms of the two machines, as their publishers state them.
//!
//! Arm: "Simplifying ARM Concurrency" (Pulte, Flur, Deacon, French, Sarkar, Sewell, POPL 2018), and
//! the Arm Architecture Reference Manual, "Definition of the Armv8 memory model". RISC-V: the
//! unprivileged manual, chapter "RVWMO", and its appendix of formal models. If versions of a
//! text differ, this is the weaker one: all of them forbid what it forbids.
//!
//! A RISC-V AMO is one operation. Here it is a load and a store, and orderings hold the half that
//! they name: weaker again.

use crate::execution::{Action, Execution};
use crate::relation::{Relation, Set};
use crate::test::{Fence, Machine};

/// Whether the machine may run the test so.
pub fn allows(machine: Machine, execution: &Execution) -> bool {
    let ca = execution.fr().or(&execution.co);
    let local = execution.po.and(&execution.same_location());
    let coherent = local.or(&ca).or(&execution.rf).is_acyclic();
    coherent
        && is_atomic(execution)
        && match machine {
            Machine::Arm => arm(execution),
            Machine::RiscV => risc_v(execution),
        }
}

/// No store of another thread comes between the halves of a read-modify-write.
fn is_atomic(execution: &Execution) -> bool {
    let external = execution.external();
    let between = execution
        .fr()
        .and(&external)
        .then(&execution.co.and(&external));
    execution.rmw.and(&between).is_empty()
}

fn union<'a>(relations: impl IntoIterator<Item = &'a Relation>) -> Relation {
    let mut relations = relations.into_iter();
    let first = relations.next().expect("a union of something").clone();
    relations.fold(first, |all, one| all.or(one))
}

/// Pairs around a fence of the kind: in program order, from `before` to `after`.
fn fenced(execution: &Execution, kind: Fence, before: Set, after: Set) -> Relation {
    let fence = execution.set(|event| event.action == Action::Fence(kind));
    let po = &execution.po;
    po.from(before).to(fence).then(&po.to(after))
}

/// External visibility: what other threads observe, and what a thread orders, has no cycle.
fn arm(execution: &Execution) -> bool {
    let Execution {
        po, rf, rmw, addr, ..
    } = execution;
    let (reads, writes) = (execution.reads(), execution.writes());
    let acquires = execution.set(|event| event.order.acquire);
    let weak = execution.set(|event| event.order.weak_acquire);
    let releases = execution.set(|event| event.order.release);
    let external = execution.external();
    let rfi = rf.without(&external);
    let depends = addr.or(&execution.data);
    let refetched = execution.set(|event| event.action == Action::Fence(Fence::Instructions));

    let observed = union([rf, &execution.co, &execution.fr()]).and(&external);
    let dependency_ordered = union([
        &depends,
        &execution.ctrl.to(writes),
        &execution
            .ctrl
            .or(&addr.then(po))
            .to(refetched)
            .then(&po.to(reads)),
        &addr.then(&po.to(writes)),
        &depends.then(&rfi),
    ]);
    let atomic_ordered = rmw.or(&rfi.from(rmw.range()).to(acquires | weak));
    let stores = Fence::Of {
        before: (false, true),
        after: (false, true),
    };
    let loads = Fence::Of {
        before: (true, false),
        after: (true, true),
    };
    let barrier_ordered = union([
        &fenced(execution, Fence::Full, !0, !0),
        &fenced(execution, loads, reads, !0),
        &fenced(execution, stores, writes, writes),
        &po.to(acquires).then(&execution.amo.to(releases)).then(po),
        &po.from(releases).to(acquires),
        &po.from(acquires | weak),
        &po.to(releases),
    ]);
    union([
        &observed,
        &dependency_ordered,
        &atomic_ordered,
        &barrier_ordered,
    ])
    .is_acyclic()
}

/// The global memory order: what a thread preserves of its program's order, and all communication
/// that is not within a thread, has no cycle. The rules of the preserved order have the manual's
/// numbers.
fn risc_v(execution: &Execution) -> bool {
    let Execution {
        po, rf, addr, data, ..
    } = execution;
    let (reads, writes) = (execution.reads(), execution.writes());
    let accesses = reads | writes;
    let external = execution.external();
    let acquires = execution.set(|event| event.order.acquire);
    let releases = execution.set(|event| event.order.release);
    let ordered = acquires | releases;
    let local = po.and(&execution.same_location());
    let rfi = rf.without(&external);

    let written_between = local.to(writes).then(&local);
    let same_store = rf.inverse().then(rf);
    let mut preserved = vec![
        local.to(writes),
        local
            .from(reads)
            .to(reads)
            .without(&written_between)
            .without(&same_store),
        rfi.from(execution.rmw.range()),
        po.from(acquires).to(accesses),
        po.from(accesses).to(releases),
        po.from(ordered).to(ordered),
        execution.rmw.clone(),
        addr.clone(),
        data.clone(),
        execution.ctrl.to(writes),
        addr.or(data).to(writes).then(&rfi),
        addr.then(&po.to(writes)),
    ];
    // Rule 4.
    let kinds = |(loads, stores): (bool, bool)| {
        (if loads { reads } else { 0 }) | (if stores { writes } else { 0 })
    };
    for event in &execution.events {
        if let Action::Fence(kind) = event.action {
            preserved.push(match kind {
                Fence::Full => fenced(execution, kind, accesses, accesses),
                Fence::Of { before, after } => fenced(execution, kind, kinds(before), kinds(after)),
                Fence::Tso => fenced(execution, kind, reads, accesses)
                    .or(&fenced(execution, kind, writes, writes)),
                // Of fetches, which the model does not have.
                Fence::Instructions => continue,
            });
        }
    }
    let seen = union([&rf.and(&external), &execution.co, &execution.fr()]);
    union(preserved.iter().chain([&seen])).is_acyclic()
}
