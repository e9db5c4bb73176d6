//! A program as a machine's test, in the instructions that the compiler makes of the atomics. The
//! test `the_compiler_makes_the_same` compares them with the compiler's.
//!
//! A loop of an exclusive load and a conditional store is its last round, which succeeds. No
//! address or branch depends on a load, and no value but that of the load's own read-modify-write:
//! a test rests on its orderings alone.

use std::fmt::Write;

use crate::program::{Ordering, Program, Statement, Update};

/// A machine, and which of its instructions the compiler may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// AArch64 with the single instructions of Armv8.1.
    Arm,
    /// AArch64 with loops of exclusives.
    Exclusives,
    /// RISC-V.
    RiscV,
}

impl Code {
    /// All of them.
    pub const ALL: [Code; 3] = [Code::Arm, Code::Exclusives, Code::RiscV];

    /// Its name in file names.
    pub fn name(self) -> &'static str {
        match self {
            Code::Arm => "aarch64",
            Code::Exclusives => "aarch64-exclusives",
            Code::RiscV => "riscv",
        }
    }
}

/// One thread in the making.
struct Thread {
    code: Code,
    lines: Vec<String>,
    /// The locations, each in a register from 20 on.
    places: Vec<String>,
    /// The registers of results.
    names: Vec<(String, usize)>,
    /// Registers of conditional stores: the loop ends where they are 0.
    statuses: Vec<usize>,
    next: usize,
}

impl Thread {
    fn register(&mut self) -> usize {
        self.next += 1;
        assert!(self.next < 20, "a thread has few results");
        self.next
    }

    fn result(&mut self, name: &str) -> usize {
        let register = self.register();
        self.names.push((name.to_owned(), register));
        register
    }

    fn constant(&mut self, value: i64) -> usize {
        let register = self.register();
        self.lines.push(match self.code {
            Code::RiscV => format!("ori x{register},x0,{value}"),
            _ => format!("MOV W{register},#{value}"),
        });
        register
    }

    /// The operand that addresses the location.
    fn place(&mut self, name: &str) -> String {
        let known = self.places.iter().position(|one| one == name);
        let index = known.unwrap_or_else(|| {
            self.places.push(name.to_owned());
            self.places.len() - 1
        });
        match self.code {
            Code::RiscV => format!("(x{})", 20 + index),
            _ => format!("[X{}]", 20 + index),
        }
    }

    fn line(&mut self, text: impl Into<String>) {
        self.lines.push(text.into());
    }

    fn load(&mut self, into: usize, place: &str, order: Ordering) {
        let at = self.place(place);
        match (self.code, order.acquires()) {
            (Code::RiscV, acquires) => {
                if order == Ordering::SeqCst {
                    self.line("fence rw,rw");
                }
                self.line(format!("lw x{into},0{at}"));
                if acquires {
                    self.line("fence r,rw");
                }
            }
            (_, true) => self.line(format!("LDAR W{into},{at}")),
            (_, false) => self.line(format!("LDR W{into},{at}")),
        }
    }

    fn store(&mut self, from: usize, place: &str, order: Ordering) {
        let at = self.place(place);
        match (self.code, order.releases()) {
            (Code::RiscV, releases) => {
                if releases {
                    self.line("fence rw,w");
                }
                self.line(format!("sw x{from},0{at}"));
                if order == Ordering::SeqCst {
                    self.line("fence rw,rw");
                }
            }
            (_, true) => self.line(format!("STLR W{from},{at}")),
            (_, false) => self.line(format!("STR W{from},{at}")),
        }
    }

    /// The new value in a register, if the old one is in `old`.
    fn changed(&mut self, old: usize, update: Update) -> usize {
        let new = self.register();
        let (word, operand) = match update {
            Update::Exchange(_, to) | Update::Swap(to) | Update::Max(to) => {
                self.next -= 1;
                return self.constant(to);
            }
            Update::Add(operand) => ("ADD", operand),
            Update::Or(operand) => ("ORR", operand),
        };
        self.lines.push(match self.code {
            Code::RiscV => {
                let word = if word == "ADD" { "addi" } else { "ori" };
                format!("{word} x{new},x{old},{operand}")
            }
            _ => format!("{word} W{new},W{old},#{operand}"),
        });
        new
    }

    /// As the compiler has them: the letters of Armv8.1, or the suffixes of RISC-V.
    fn suffix(&self, order: Ordering) -> &'static str {
        match (self.code, order.acquires(), order.releases()) {
            (_, false, false) => "",
            (Code::RiscV, true, false) => ".aq",
            (Code::RiscV, false, true) => ".rl",
            (Code::RiscV, true, true) => ".aq.rl",
            (_, true, false) => "A",
            (_, false, true) => "L",
            (_, true, true) => "AL",
        }
    }

    fn update(&mut self, name: &str, place: &str, update: Update, order: Ordering) {
        let at = self.place(place);
        let suffix = self.suffix(order);
        let (arm, risc_v, operand) = match update {
            Update::Exchange(from, to) if self.code == Code::Arm => {
                let new = self.constant(to);
                let expected = self.constant(from);
                self.names.push((name.to_owned(), expected));
                self.line(format!("CAS{suffix} W{expected},W{new},{at}"));
                return;
            }
            Update::Exchange(..) => return self.exclusive(name, &at, update, order),
            Update::Swap(operand) => ("SWP", "amoswap.w", operand),
            Update::Add(operand) => ("LDADD", "amoadd.w", operand),
            Update::Or(operand) => ("LDSET", "amoor.w", operand),
            Update::Max(operand) => ("LDUMAX", "amomaxu.w", operand),
        };
        if self.code == Code::Exclusives {
            return self.exclusive(name, &at, update, order);
        }
        let from = self.constant(operand);
        let into = self.result(name);
        self.lines.push(match self.code {
            Code::RiscV => format!("{risc_v}{suffix} x{into},x{from},{at}"),
            _ => format!("{arm}{suffix} W{from},W{into},{at}"),
        });
    }

    /// An exclusive load, and the conditional store.
    fn exclusive(&mut self, name: &str, at: &str, update: Update, order: Ordering) {
        let old = self.result(name);
        let status = self.register();
        let (acquires, releases) = (order.acquires(), order.releases());
        if self.code == Code::RiscV {
            let load = match order {
                Ordering::SeqCst => ".aq.rl",
                _ if acquires => ".aq",
                _ => "",
            };
            self.line(format!("lr.w{load} x{old},0{at}"));
            let new = self.changed(old, update);
            let store = if releases { ".rl" } else { "" };
            self.line(format!("sc.w{store} x{status},x{new},0{at}"));
        } else {
            let load = if acquires { "LDAXR" } else { "LDXR" };
            self.line(format!("{load} W{old},{at}"));
            let new = self.changed(old, update);
            let store = if releases { "STLXR" } else { "STXR" };
            self.line(format!("{store} W{status},W{new},{at}"));
        }
        self.statuses.push(status);
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Load(name, place, order) => {
                let into = self.result(name);
                self.load(into, place, *order);
            }
            Statement::Store(place, value, order) => {
                let from = self.constant(*value);
                self.store(from, place, *order);
            }
            Statement::Update(name, place, update, order) => {
                self.update(name, place, *update, *order);
            }
            Statement::Halves(name, place, update) => {
                let old = self.result(name);
                self.load(old, place, Ordering::Relaxed);
                let new = self.changed(old, *update);
                self.store(new, place, Ordering::Relaxed);
            }
            Statement::Fence => self.line(match self.code {
                Code::RiscV => "fence rw,rw",
                _ => "DMB ISH",
            }),
            Statement::Light | Statement::Heavy => unreachable!("they have been placed"),
        }
    }
}

fn thread(code: Code, statements: &[Statement]) -> Thread {
    let mut thread = Thread {
        code,
        lines: Vec::new(),
        places: Vec::new(),
        names: Vec::new(),
        statuses: Vec::new(),
        next: 4,
    };
    for statement in statements {
        thread.statement(statement);
    }
    thread
}

/// The instructions of one statement.
pub fn lines(code: Code, statement: &Statement) -> Vec<String> {
    thread(code, std::slice::from_ref(statement)).lines
}

/// The program as a test of `name`, with `comment`, in herd7's format.
pub fn test(code: Code, name: &str, comment: &str, program: &Program) -> String {
    let threads: Vec<Thread> = program
        .threads
        .iter()
        .map(|one| thread(code, one))
        .collect();
    let (machine, address, value) = match code {
        Code::RiscV => ("RISCV", 'x', 'x'),
        _ => ("AArch64", 'X', 'X'),
    };
    let mut text = format!("{machine} {name}\n\"{comment}\"\n{{\n");
    for (place, value) in &program.initial {
        let _ = writeln!(text, "{place}={value};");
    }
    for (index, thread) in threads.iter().enumerate() {
        for (place, name) in thread.places.iter().enumerate() {
            let _ = write!(text, "{index}:{address}{}={name}; ", 20 + place);
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text.push_str("}\n");
    let widths: Vec<usize> = threads
        .iter()
        .map(|thread| thread.lines.iter().map(String::len).max().unwrap_or(0))
        .collect();
    let mut row = |cells: Vec<String>| {
        let cells: Vec<String> = cells
            .iter()
            .zip(&widths)
            .map(|(cell, &width)| format!(" {cell:width$} "))
            .collect();
        let _ = writeln!(text, "{};", cells.join("|"));
    };
    row((0..threads.len())
        .map(|index| format!("P{index}"))
        .collect());
    let longest = threads.iter().map(|thread| thread.lines.len()).max();
    for line in 0..longest.unwrap_or(0) {
        let cell = |thread: &Thread| thread.lines.get(line).cloned().unwrap_or_default();
        row(threads.iter().map(cell).collect());
    }
    let mut equations = Vec::new();
    for (name, wanted) in &program.never {
        let holders = threads.iter().enumerate().find_map(|(index, thread)| {
            let (_, register) = thread.names.iter().find(|(one, _)| one == name)?;
            Some(format!("{index}:{value}{register}={wanted}"))
        });
        equations.push(holders.unwrap_or_else(|| format!("{name}={wanted}")));
    }
    for (index, thread) in threads.iter().enumerate() {
        for status in &thread.statuses {
            equations.push(format!("{index}:{value}{status}=0"));
        }
    }
    let _ = writeln!(text, "exists ({})", equations.join(" /\\ "));
    text
}
