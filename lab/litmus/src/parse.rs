//! Tests as herd7 reads them.
//!
//! ```text
//! AArch64 MP
//! "a comment"
//! { 0:X1=x; 0:X3=y; 1:X1=y; 1:X3=x; }
//!  P0          | P1           ;
//!  MOV W0,#1   | LDR W0,[X1]  ;
//!  STR W0,[X1] | LDR W2,[X3]  ;
//!  STR W0,[X3] |              ;
//! exists (1:X0=1 /\ 1:X2=0)
//! ```

use std::collections::BTreeMap;

use crate::isa::{arm, risc_v};
use crate::test::{Equation, Instruction, Machine, Register, Test, Value, address};

fn register(machine: Machine, text: &str) -> Result<Register, String> {
    match machine {
        Machine::Arm => arm::register(text),
        Machine::RiscV => risc_v::register(text),
    }
}

/// Parses a test.
pub fn test(text: &str) -> Result<Test, String> {
    let parsed = parse(text);
    parsed.map_err(|error| format!("{}: {error}", text.lines().next().unwrap_or_default()))
}

fn parse(text: &str) -> Result<Test, String> {
    let first = text.trim_start().lines().next().unwrap_or_default();
    let (machine, name) = first.split_once(' ').ok_or("no machine and name")?;
    let machine = match machine {
        "AArch64" => Machine::Arm,
        "RISCV" => Machine::RiscV,
        _ => return Err("AArch64 or RISCV is expected".to_owned()),
    };
    let (head, rest) = text.split_once('}').ok_or("no initial state")?;
    let (_, initial) = head.split_once('{').ok_or("no initial state")?;
    let (code, outcome) = rest.rsplit_once("exists").ok_or("no 'exists'")?;
    let mut test = Test {
        machine,
        name: name.trim().to_owned(),
        locations: Vec::new(),
        initial: BTreeMap::new(),
        registers: BTreeMap::new(),
        threads: Vec::new(),
        outcome: Vec::new(),
    };
    for equation in initial
        .split(';')
        .map(str::trim)
        .filter(|one| !one.is_empty())
    {
        let (left, right) = equation.split_once('=').ok_or("an equation is expected")?;
        match left.split_once(':') {
            Some((thread, name)) => {
                let key = (number(thread)?, register(machine, name)?);
                let value = match right.parse() {
                    Ok(value) => value,
                    Err(_) => place(&mut test, right),
                };
                test.registers.insert(key, value);
            }
            None => {
                place(&mut test, left);
                test.initial.insert(left.to_owned(), value(right)?);
            }
        }
    }
    test.threads = threads(machine, code)?;
    let outcome = outcome.trim().trim_start_matches('(').trim_end_matches(')');
    for equation in outcome.split("/\\").map(str::trim) {
        let (left, right) = equation.split_once('=').ok_or("an equation is expected")?;
        let equation = match left.split_once(':') {
            Some((thread, name)) => {
                Equation::Register(number(thread)?, register(machine, name)?, value(right)?)
            }
            None => {
                let name = left
                    .trim_start_matches('[')
                    .trim_end_matches(']')
                    .to_owned();
                if !test.locations.contains(&name) {
                    return Err(format!("{name} is no location"));
                }
                Equation::Location(name, value(right)?)
            }
        };
        test.outcome.push(equation);
    }
    Ok(test)
}

fn value(text: &str) -> Result<Value, String> {
    let parsed = text.trim().parse();
    parsed.map_err(|_| format!("{text} is no number"))
}

fn number(text: &str) -> Result<usize, String> {
    let parsed = text.trim().parse();
    parsed.map_err(|_| format!("{text} is no thread"))
}

/// The address of the location, which is new or known.
fn place(test: &mut Test, name: &str) -> Value {
    let known = test.locations.iter().position(|one| one == name);
    address(known.unwrap_or_else(|| {
        test.locations.push(name.to_owned());
        test.locations.len() - 1
    }))
}

/// The columns of the code.
fn threads(machine: Machine, code: &str) -> Result<Vec<Vec<Instruction>>, String> {
    let mut rows = code.split(';').map(str::trim).filter(|row| !row.is_empty());
    let header = rows.next().ok_or("no threads")?;
    let mut threads = vec![Vec::new(); header.split('|').count()];
    for row in rows {
        let cells: Vec<&str> = row.split('|').collect();
        if cells.len() > threads.len() {
            return Err(format!("too many columns: {row}"));
        }
        for (thread, cell) in threads.iter_mut().zip(cells) {
            let mut cell = cell.trim();
            if let Some((label, rest)) = cell.split_once(':') {
                thread.push(Instruction::Label(label.trim().to_ascii_lowercase()));
                cell = rest.trim();
            }
            if !cell.is_empty() {
                thread.push(match machine {
                    Machine::Arm => arm::instruction(cell)?,
                    Machine::RiscV => risc_v::instruction(cell)?,
                });
            }
        }
    }
    Ok(threads)
}
