//! RISC-V: loads and stores, lr and sc, AMOs, fences, branches.

use super::{compute, number, parts};
use crate::test::{Change, Fence, Instruction, Operand, Order, Register, ZERO};

/// The number of a register.
pub fn register(text: &str) -> Result<Register, String> {
    let digits = text.strip_prefix('x');
    let number = digits.and_then(|digits| digits.parse().ok());
    match number {
        Some(0) => Ok(ZERO),
        Some(number) if number < 32 => Ok(number),
        _ => Err(format!("{text} is no register")),
    }
}

/// `0(x6)`, `(x6)`.
fn place(text: &str) -> Result<Vec<Register>, String> {
    let text = text.strip_prefix('0').unwrap_or(text);
    let inner = text
        .strip_prefix('(')
        .and_then(|text| text.strip_suffix(')'));
    let inner = inner.ok_or_else(|| format!("{text} is no address"))?;
    Ok(vec![register(inner)?])
}

/// The order that the text after a word says.
fn order(text: &str) -> Option<Order> {
    let (acquire, release) = match text {
        "" => (false, false),
        ".aq" => (true, false),
        ".rl" => (false, true),
        ".aq.rl" | ".aqrl" => (true, true),
        _ => return None,
    };
    Some(Order {
        acquire,
        release,
        weak_acquire: false,
    })
}

/// Loads and stores of `rw`.
fn kinds(text: &str) -> Option<(bool, bool)> {
    match text {
        "r" => Some((true, false)),
        "w" => Some((false, true)),
        "rw" => Some((true, true)),
        _ => None,
    }
}

/// Parses an instruction.
pub fn instruction(line: &str) -> Result<Instruction, String> {
    let unknown = || format!("{line}: not known");
    let (word, operands) = parts(line);
    let operands: Vec<&str> = operands.iter().map(String::as_str).collect();
    match (word.as_str(), operands.as_slice()) {
        ("lw", [into, from]) => Ok(Instruction::Load {
            into: register(into)?,
            address: place(from)?,
            order: Order::default(),
            exclusive: false,
        }),
        ("sw", [from, to]) => Ok(Instruction::Store {
            from: register(from)?,
            address: place(to)?,
            order: Order::default(),
            status: None,
        }),
        ("fence.tso", []) => Ok(Instruction::Fence(Fence::Tso)),
        ("fence", [before, after]) => {
            let before = kinds(before).ok_or_else(unknown)?;
            let after = kinds(after).ok_or_else(unknown)?;
            Ok(Instruction::Fence(
                if (before, after) == ((true, true), (true, true)) {
                    Fence::Full
                } else {
                    Fence::Of { before, after }
                },
            ))
        }
        ("li", [into, value]) => Ok(compute(
            register(into)?,
            Change::Add,
            Operand::Number(number(value)?),
            Operand::Number(0),
        )),
        ("ori" | "addi" | "xori" | "or" | "add" | "xor" | "and" | "andi" | "sub", [into, a, b]) => {
            let b = match word.strip_suffix('i') {
                Some(_) => Operand::Number(number(b)?),
                None => Operand::Register(register(b)?),
            };
            let change = match word.trim_end_matches('i') {
                "or" => Change::Or,
                "add" => Change::Add,
                "and" => Change::And,
                "sub" => Change::Subtract,
                _ => Change::Xor,
            };
            let a = Operand::Register(register(a)?);
            Ok(compute(register(into)?, change, a, b))
        }
        ("bne" | "beq", [a, b, to]) => {
            let [a, b] = [register(a)?, register(b)?].map(Operand::Register);
            Ok(Instruction::Branch {
                condition: Some((a, b, word == "beq")),
                to: (*to).to_owned(),
            })
        }
        ("bnez" | "beqz", [a, to]) => Ok(Instruction::Branch {
            condition: Some((
                Operand::Register(register(a)?),
                Operand::Number(0),
                word == "beqz",
            )),
            to: (*to).to_owned(),
        }),
        (word, operands) => {
            if let (Some(order), [into, from]) =
                (word.strip_prefix("lr.w").and_then(order), operands)
            {
                return Ok(Instruction::Load {
                    into: register(into)?,
                    address: place(from)?,
                    order,
                    exclusive: true,
                });
            }
            let [first, from, at] = operands else {
                return Err(unknown());
            };
            let [first, from] = [register(first)?, register(from)?];
            let address = place(at)?;
            if let Some(order) = word.strip_prefix("sc.w").and_then(order) {
                return Ok(Instruction::Store {
                    from,
                    address,
                    order,
                    status: Some(first),
                });
            }
            let (change, order) = [
                ("amoswap.w", Change::Swap),
                ("amoadd.w", Change::Add),
                ("amoor.w", Change::Or),
                ("amoand.w", Change::And),
                ("amoxor.w", Change::Xor),
                ("amomaxu.w", Change::Max),
            ]
            .into_iter()
            .find_map(|(begin, change)| Some((change, order(word.strip_prefix(begin)?)?)))
            .ok_or_else(unknown)?;
            Ok(Instruction::Modify {
                into: first,
                from,
                address,
                change,
                order,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_names_what_it_orders() {
        let fence = instruction("fence r,rw");
        let expected = Fence::Of {
            before: (true, false),
            after: (true, true),
        };
        assert_eq!(fence, Ok(Instruction::Fence(expected)));
        assert_eq!(
            instruction("fence rw,rw"),
            Ok(Instruction::Fence(Fence::Full))
        );
    }

    #[test]
    fn an_unknown_instruction_is_refused() {
        for line in [
            "ld x5,0(x6)",
            "lw x5,4(x6)",
            "fence rw,x",
            "amominu.w x1,x2,(x3)",
            "lw x32,0(x5)",
        ] {
            assert!(instruction(line).is_err(), "{line}");
        }
    }
}
