//! The candidate executions of a test: each way in which its threads could run by themselves, with
//! each choice of the store that a load reads, and of the order of the stores to a location.

use std::collections::BTreeSet;

use crate::relation::{Relation, Set};
use crate::test::{
    Change, Equation, FLAGS, Fence, Instruction, Operand, Order, Register, Test, Value, ZERO,
    location,
};

/// The effect of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Loads the value from the location.
    Read(usize, Value),
    /// Stores the value to the location.
    Write(usize, Value),
    /// A fence.
    Fence(Fence),
}

/// An event of a thread, or the initial store of a location, which belongs to no thread.
#[derive(Clone, Debug)]
pub struct Event {
    /// The thread.
    pub thread: Option<usize>,
    /// Its effect.
    pub action: Action,
    /// The ordering of the access.
    pub order: Order,
    /// Loads of its thread that its address depends on, by their places in the thread.
    address: Set,
    /// As above, of its value.
    data: Set,
    /// As above, of a branch before it.
    control: Set,
    /// The load of the same read-modify-write, and whether one instruction does both.
    modifies: Option<(usize, bool)>,
}

/// A thread that ran by itself, with values chosen for its loads.
#[derive(Clone, Debug, Default)]
struct Trace {
    events: Vec<Event>,
    registers: Vec<(Register, Value, Set)>,
    control: Set,
    exclusive: Option<usize>,
}

impl Trace {
    fn get(&self, register: Register) -> (Value, Set) {
        let held = self.registers.iter().find(|(one, ..)| *one == register);
        held.map_or((0, 0), |&(_, value, loads)| (value, loads))
    }

    fn set(&mut self, register: Register, value: Value, loads: Set) {
        self.registers.retain(|(one, ..)| *one != register);
        if register != ZERO {
            self.registers.push((register, value, loads));
        }
    }

    fn operand(&self, operand: Operand) -> (Value, Set) {
        match operand {
            Operand::Register(register) => self.get(register),
            Operand::Number(value) => (value, 0),
        }
    }

    fn place(&self, address: &[Register]) -> (usize, Set) {
        let parts = address.iter().map(|&register| self.get(register));
        let (sum, loads) = parts.fold((0, 0), |(a, some), (b, more)| (a + b, some | more));
        (location(sum), loads)
    }

    /// Adds an event, and returns its place in the thread.
    fn event(&mut self, action: Action, order: Order, address: Set, data: Set) -> usize {
        self.events.push(Event {
            thread: None,
            action,
            order,
            address,
            data,
            control: self.control,
            modifies: None,
        });
        self.events.len() - 1
    }
}

/// The ordering of a read-modify-write's load, and of its store.
fn split(order: Order) -> (Order, Order) {
    let load = Order {
        release: false,
        ..order
    };
    let store = Order {
        release: order.release,
        ..Order::default()
    };
    (load, store)
}

/// All runs of `thread` from instruction `next` on, if each load may see any of its location's
/// `values`.
fn run(
    code: &[Instruction],
    mut next: usize,
    mut trace: Trace,
    values: &[BTreeSet<Value>],
    ended: &mut Vec<Trace>,
) {
    while let Some(instruction) = code.get(next) {
        next += 1;
        match instruction {
            Instruction::Label(_) => {}
            Instruction::Compute { into, change, of } => {
                let [(a, some), (b, more)] = of.map(|operand| trace.operand(operand));
                trace.set(*into, change.apply(a, b), some | more);
            }
            Instruction::Fence(fence) => {
                trace.event(Action::Fence(*fence), Order::default(), 0, 0);
            }
            Instruction::Branch { condition, to } => {
                let jumps = condition.is_none_or(|(a, b, equal)| {
                    let (a, some) = trace.operand(a);
                    let (b, more) = trace.operand(b);
                    trace.control |= some | more;
                    (a == b) == equal
                });
                if jumps {
                    let label = Instruction::Label(to.clone());
                    let ahead = code[next..].iter().position(|one| *one == label);
                    next += ahead.expect("a branch goes forward to a label");
                }
            }
            Instruction::Store {
                from,
                address,
                order,
                status,
            } => {
                let (place, depends) = trace.place(address);
                let (value, data) = trace.get(*from);
                let store = trace.event(Action::Write(place, value), *order, depends, data);
                if let Some(status) = status {
                    let load = trace.exclusive.take().expect("an exclusive load before");
                    trace.events[store].modifies = Some((load, false));
                    trace.set(*status, 0, 0);
                }
            }
            Instruction::Load { address, .. }
            | Instruction::Modify { address, .. }
            | Instruction::Exchange { address, .. } => {
                let (place, depends) = trace.place(address);
                for &seen in &values[place] {
                    let mut trace = trace.clone();
                    load(&mut trace, instruction, place, depends, seen);
                    run(code, next, trace, values, ended);
                }
                return;
            }
        }
    }
    ended.push(trace);
}

/// The effect of an instruction that loads, and saw `seen`.
fn load(trace: &mut Trace, instruction: &Instruction, place: usize, depends: Set, seen: Value) {
    let read = Action::Read(place, seen);
    match instruction {
        Instruction::Load {
            into,
            order,
            exclusive,
            ..
        } => {
            let load = trace.event(read, *order, depends, 0);
            trace.set(*into, seen, 1 << load);
            if *exclusive {
                trace.exclusive = Some(load);
            }
        }
        Instruction::Modify {
            into,
            from,
            change,
            order,
            ..
        } => {
            let (operand, data) = trace.get(*from);
            let (first, second) = split(*order);
            let load = trace.event(read, first, depends, 0);
            let new = Action::Write(place, change.apply(seen, operand));
            let store = trace.event(new, second, depends, data);
            trace.events[store].modifies = Some((load, true));
            trace.set(*into, seen, 1 << load);
        }
        Instruction::Exchange {
            expected,
            new,
            order,
            ..
        } => {
            let (first, second) = split(*order);
            let load = trace.event(read, first, depends, 0);
            if trace.get(*expected).0 == seen {
                let (value, data) = trace.get(*new);
                let store = trace.event(Action::Write(place, value), second, depends, data);
                trace.events[store].modifies = Some((load, true));
            }
            trace.set(*expected, seen, 1 << load);
        }
        _ => unreachable!("it loads"),
    }
}

/// The runs of each thread by itself.
fn traces(test: &Test) -> Vec<Vec<Trace>> {
    let initial = |name: &String| BTreeSet::from([test.initial.get(name).copied().unwrap_or(0)]);
    let mut values: Vec<BTreeSet<Value>> = test.locations.iter().map(initial).collect();
    // Each round adds what some thread could store with the values so far. A store's value rests on
    // no more stores than there are, so that many rounds find all values of executions.
    let stores = |one: &&Instruction| {
        matches!(
            one,
            Instruction::Store { .. } | Instruction::Modify { .. } | Instruction::Exchange { .. }
        )
    };
    let rounds = test.threads.iter().flatten().filter(stores).count();
    let mut all = Vec::new();
    for _ in 0..=rounds {
        all = (0..test.threads.len())
            .map(|thread| {
                let mut trace = Trace::default();
                for (&(one, register), &value) in &test.registers {
                    if one == thread {
                        trace.set(register, value, 0);
                    }
                }
                let mut ended = Vec::new();
                run(&test.threads[thread], 0, trace, &values, &mut ended);
                ended
            })
            .collect::<Vec<_>>();
        let before: usize = values.iter().map(BTreeSet::len).sum();
        for event in all.iter().flatten().flat_map(|trace| &trace.events) {
            if let Action::Write(place, value) = event.action {
                values[place].insert(value);
            }
        }
        if values.iter().map(BTreeSet::len).sum::<usize>() == before {
            break;
        }
    }
    all
}

/// A candidate execution.
#[derive(Debug)]
pub struct Execution {
    /// The events: initial stores first, then each thread's in its order.
    pub events: Vec<Event>,
    /// Program order.
    pub po: Relation,
    /// From a store to the loads that read it.
    pub rf: Relation,
    /// The order of the stores to a location.
    pub co: Relation,
    /// From the load of a read-modify-write to its store.
    pub rmw: Relation,
    /// The part of `rmw` that is one instruction.
    pub amo: Relation,
    /// From a load to the accesses whose address depends on it.
    pub addr: Relation,
    /// As above, whose value depends on it.
    pub data: Relation,
    /// As above, behind a branch that depends on it.
    pub ctrl: Relation,
}

impl Execution {
    /// The events that `which` says.
    pub fn set(&self, which: impl Fn(&Event) -> bool) -> Set {
        let chosen = (0..self.events.len()).filter(|&event| which(&self.events[event]));
        chosen.fold(0, |set, event| set | 1 << event)
    }

    /// The loads.
    pub fn reads(&self) -> Set {
        self.set(|event| matches!(event.action, Action::Read(..)))
    }

    /// The stores.
    pub fn writes(&self) -> Set {
        self.set(|event| matches!(event.action, Action::Write(..)))
    }

    fn place(&self, event: usize) -> Option<usize> {
        match self.events[event].action {
            Action::Read(place, _) | Action::Write(place, _) => Some(place),
            Action::Fence(_) => None,
        }
    }

    /// The pairs that `related` says.
    pub fn relation(&self, related: impl Fn(usize, usize) -> bool) -> Relation {
        Relation::of(self.events.len(), related)
    }

    /// Pairs of accesses to one location.
    pub fn same_location(&self) -> Relation {
        self.relation(|a, b| self.place(a).is_some() && self.place(a) == self.place(b))
    }

    /// Pairs of events of different threads.
    pub fn external(&self) -> Relation {
        self.relation(|a, b| {
            let [a, b] = [a, b].map(|event| self.events[event].thread);
            a.is_none() || b.is_none() || a != b
        })
    }

    /// From a load to the stores that come after what it read.
    pub fn fr(&self) -> Relation {
        self.rf.inverse().then(&self.co)
    }
}

/// The orders of `items`.
fn permutations(items: &[usize]) -> Vec<Vec<usize>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (index, &first) in items.iter().enumerate() {
        let mut rest = items.to_vec();
        rest.remove(index);
        for mut order in permutations(&rest) {
            order.insert(0, first);
            all.push(order);
        }
    }
    all
}

/// One of each of `choices`, in all combinations.
fn combinations<T: Clone>(choices: &[Vec<T>]) -> Vec<Vec<T>> {
    choices.iter().fold(vec![Vec::new()], |all, choice| {
        let longer = |some: &Vec<T>| {
            let some = some.clone();
            let with = move |one: &T| [some.clone(), vec![one.clone()]].concat();
            choice.iter().map(with).collect::<Vec<_>>()
        };
        all.iter().flat_map(longer).collect()
    })
}

/// Whether some execution of `test` has its outcome, and `allows` it.
pub fn is_allowed(test: &Test, allows: impl Fn(&Execution) -> bool) -> bool {
    let mut all = traces(test);
    for (thread, traces) in all.iter_mut().enumerate() {
        traces.retain(|trace| {
            test.outcome.iter().all(|equation| match *equation {
                Equation::Register(one, register, value) => {
                    one != thread || trace.get(register).0 == value
                }
                Equation::Location(..) => true,
            })
        });
    }
    combinations(&all)
        .iter()
        .any(|threads| any_execution(test, threads, &allows))
}

/// The events of `threads` behind the initial stores, and the relations within the threads.
fn join(test: &Test, threads: &[Trace]) -> Execution {
    let mut events: Vec<Event> = Vec::new();
    for (place, name) in test.locations.iter().enumerate() {
        let value = test.initial.get(name).copied().unwrap_or(0);
        let mut initial = Trace::default();
        initial.event(Action::Write(place, value), Order::default(), 0, 0);
        events.append(&mut initial.events);
    }
    let mut starts = Vec::new();
    for (thread, trace) in threads.iter().enumerate() {
        starts.push(events.len());
        events.extend(trace.events.iter().map(|event| Event {
            thread: Some(thread),
            ..event.clone()
        }));
    }
    let count = events.len();
    // In a thread an event has the place `event - start`.
    let local = |from: usize, to: usize| {
        let thread = events[to].thread?;
        (events[from].thread == Some(thread)).then(|| from - starts[thread])
    };
    let by = |depends: fn(&Event) -> Set| {
        Relation::of(count, |from, to| {
            local(from, to).is_some_and(|from| depends(&events[to]) >> from & 1 == 1)
        })
    };
    let modifies = |single: bool| {
        Relation::of(count, |from, to| {
            local(from, to).is_some_and(|from| {
                events[to]
                    .modifies
                    .is_some_and(|(load, one)| load == from && (one || !single))
            })
        })
    };
    let none = Relation::of(count, |_, _| false);
    Execution {
        po: Relation::of(count, |from, to| from < to && local(from, to).is_some()),
        rf: none.clone(),
        co: none,
        rmw: modifies(false),
        amo: modifies(true),
        addr: by(|event| event.address),
        data: by(|event| event.data),
        ctrl: by(|event| event.control),
        events,
    }
}

fn any_execution(test: &Test, threads: &[Trace], allows: &impl Fn(&Execution) -> bool) -> bool {
    let mut execution = join(test, threads);
    let count = execution.events.len();
    let writes = |place: usize| {
        let events = execution.events.iter().enumerate();
        let to = events.filter(
            move |(_, event)| matches!(event.action, Action::Write(one, _) if one == place),
        );
        to.map(|(index, _)| index).collect::<Vec<_>>()
    };
    let value = |event: usize| match execution.events[event].action {
        Action::Read(_, value) | Action::Write(_, value) => value,
        Action::Fence(_) => unreachable!("an access"),
    };
    let mut reads = Vec::new();
    let mut sources = Vec::new();
    for (index, event) in execution.events.iter().enumerate() {
        if let Action::Read(place, seen) = event.action {
            let equal = |&store: &usize| value(store) == seen;
            sources.push(writes(place).into_iter().filter(equal).collect::<Vec<_>>());
            reads.push(index);
        }
    }
    let orders = (0..test.locations.len()).map(|place| {
        // The initial store, which has the location's number, is the first.
        let mut orders = permutations(&writes(place)[1..]);
        let last = test.outcome.iter().find_map(|equation| match equation {
            Equation::Location(name, value) if *name == test.locations[place] => Some(*value),
            _ => None,
        });
        orders.iter_mut().for_each(|order| order.insert(0, place));
        orders.retain(|order| last.is_none_or(|last| value(order[order.len() - 1]) == last));
        orders
    });
    let orders = combinations(&orders.collect::<Vec<_>>());
    for chosen in combinations(&sources) {
        execution.rf = Relation::of(count, |from, to| {
            let read = reads.iter().position(|&read| read == to);
            read.is_some_and(|read| chosen[read] == from)
        });
        for order in &orders {
            execution.co = Relation::of(count, |from, to| {
                order.iter().any(|order| {
                    let [from, to] = [from, to].map(|one| order.iter().position(|&x| x == one));
                    from.is_some() && to.is_some() && from < to
                })
            });
            if allows(&execution) {
                return true;
            }
        }
    }
    false
}

/// The comparison of two operands, as an instruction.
pub fn compare(a: Operand, b: Operand) -> Instruction {
    Instruction::Compute {
        into: FLAGS,
        change: Change::Subtract,
        of: [a, b],
    }
}
