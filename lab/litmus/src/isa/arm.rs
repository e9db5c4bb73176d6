//! AArch64: loads and stores, exclusives, the single instructions of Armv8.1, barriers, branches.

use super::{compute, number, parts};
use crate::execution::compare;
use crate::test::{Change, FLAGS, Fence, Instruction, Operand, Order, Register, ZERO};

/// The number of a register: `x3` and `w3` are one.
pub fn register(text: &str) -> Result<Register, String> {
    let text = text.to_ascii_lowercase();
    if text == "wzr" || text == "xzr" {
        return Ok(ZERO);
    }
    let digits = text.strip_prefix(['w', 'x']);
    let number = digits.and_then(|digits| digits.parse().ok());
    number
        .filter(|&number| number < 31)
        .ok_or_else(|| format!("{text} is no register"))
}

fn operand(text: &str) -> Result<Operand, String> {
    Ok(match text.strip_prefix('#') {
        Some(_) => Operand::Number(number(text)?),
        None => Operand::Register(register(text)?),
    })
}

/// `[x1]`, `[x1,w2,sxtw]`.
fn place(text: &str) -> Result<Vec<Register>, String> {
    let inner = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let inner = inner.ok_or_else(|| format!("{text} is no address"))?;
    let parts = inner.split(',').filter(|part| *part != "sxtw");
    parts.map(register).collect()
}

/// The order that the letters after a word say.
fn order(letters: &str) -> Option<Order> {
    let acquire = letters.starts_with('a');
    match letters {
        "" | "a" | "l" | "al" => Some(Order {
            acquire,
            release: letters.ends_with('l'),
            weak_acquire: false,
        }),
        _ => None,
    }
}

/// The change that one instruction of Armv8.1 makes, and its order. The architecture drops the
/// acquire where the result goes to the zero register.
fn modify(word: &str, into: Register) -> Option<(Change, Order)> {
    [
        ("swp", Change::Swap),
        ("ldadd", Change::Add),
        ("ldset", Change::Or),
        ("ldclr", Change::Clear),
        ("ldeor", Change::Xor),
        ("ldumax", Change::Max),
    ]
    .into_iter()
    .find_map(|(begin, change)| {
        let mut order = order(word.strip_prefix(begin)?)?;
        order.acquire &= into != ZERO;
        Some((change, order))
    })
}

/// Parses an instruction.
pub fn instruction(line: &str) -> Result<Instruction, String> {
    let (word, operands) = parts(line);
    let operands: Vec<&str> = operands.iter().map(String::as_str).collect();
    let strong = Order {
        acquire: true,
        ..Order::default()
    };
    let weak = Order {
        weak_acquire: true,
        ..Order::default()
    };
    let release = Order {
        release: true,
        ..Order::default()
    };
    let load = |into: &str, from: &str, order, exclusive| {
        Ok::<_, String>(Instruction::Load {
            into: register(into)?,
            address: place(from)?,
            order,
            exclusive,
        })
    };
    let store = |from: &str, to: &str, order, status: Option<Register>| {
        Ok::<_, String>(Instruction::Store {
            from: register(from)?,
            address: place(to)?,
            order,
            status,
        })
    };
    let zero = Operand::Number(0);
    let flags = Operand::Register(FLAGS);
    match (word.as_str(), operands.as_slice()) {
        ("ldr", [into, from]) => load(into, from, Order::default(), false),
        ("ldar", [into, from]) => load(into, from, strong, false),
        ("ldapr", [into, from]) => load(into, from, weak, false),
        ("ldxr", [into, from]) => load(into, from, Order::default(), true),
        ("ldaxr", [into, from]) => load(into, from, strong, true),
        ("str", [from, to]) => store(from, to, Order::default(), None),
        ("stlr", [from, to]) => store(from, to, release, None),
        ("stxr", [status, from, to]) => store(from, to, Order::default(), Some(register(status)?)),
        ("stlxr", [status, from, to]) => store(from, to, release, Some(register(status)?)),
        ("dmb", ["sy" | "ish"]) => Ok(Instruction::Fence(Fence::Full)),
        ("dmb", ["ld" | "ishld"]) => Ok(Instruction::Fence(Fence::Of {
            before: (true, false),
            after: (true, true),
        })),
        ("dmb", ["st" | "ishst"]) => Ok(Instruction::Fence(Fence::Of {
            before: (false, true),
            after: (false, true),
        })),
        ("isb", []) => Ok(Instruction::Fence(Fence::Instructions)),
        ("mov", [into, from]) => Ok(compute(register(into)?, Change::Add, operand(from)?, zero)),
        ("cmp", [a, b]) => Ok(compare(operand(a)?, operand(b)?)),
        ("add" | "eor" | "orr" | "and" | "sub" | "bic", [into, a, b]) => {
            let change = match word.as_str() {
                "add" => Change::Add,
                "eor" => Change::Xor,
                "orr" => Change::Or,
                "sub" => Change::Subtract,
                "bic" => Change::Clear,
                _ => Change::And,
            };
            Ok(compute(register(into)?, change, operand(a)?, operand(b)?))
        }
        ("cbz" | "cbnz", [of, to]) => Ok(Instruction::Branch {
            condition: Some((operand(of)?, zero, word == "cbz")),
            to: (*to).to_owned(),
        }),
        ("b.eq" | "b.ne", [to]) => Ok(Instruction::Branch {
            condition: Some((flags, zero, word == "b.eq")),
            to: (*to).to_owned(),
        }),
        ("b", [to]) => Ok(Instruction::Branch {
            condition: None,
            to: (*to).to_owned(),
        }),
        (word, [first, second, at]) => {
            let [first, second] = [register(first)?, register(second)?];
            let address = place(at)?;
            if let Some(order) = word.strip_prefix("cas").and_then(order) {
                return Ok(Instruction::Exchange {
                    expected: first,
                    new: second,
                    address,
                    order,
                });
            }
            let (change, order) =
                modify(word, second).ok_or_else(|| format!("{line}: not known"))?;
            Ok(Instruction::Modify {
                into: second,
                from: first,
                address,
                change,
                order,
            })
        }
        _ => Err(format!("{line}: not known")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_letters_of_a_word_are_its_order() {
        let orders = [
            "cas w1,w2,[x3]",
            "casa w1,w2,[x3]",
            "casl w1,w2,[x3]",
            "casal w1,w2,[x3]",
        ];
        let orders = orders.map(|line| match instruction(line) {
            Ok(Instruction::Exchange { order, .. }) => (order.acquire, order.release),
            other => panic!("{other:?}"),
        });
        assert_eq!(
            orders,
            [(false, false), (true, false), (false, true), (true, true)]
        );
    }

    #[test]
    fn the_zero_register_takes_the_acquire_away() {
        let acquires = |line| match instruction(line) {
            Ok(Instruction::Modify { order, .. }) => order.acquire,
            other => panic!("{other:?}"),
        };
        assert!(acquires("LDADDA W1,W2,[X3]"));
        assert!(!acquires("LDADDA W1,WZR,[X3]"));
    }

    #[test]
    fn an_unknown_instruction_is_refused() {
        for line in [
            "ldp x0,x1,[x2]",
            "casb w0,w1,[x2]",
            "dmb nsh",
            "ldr w0,x1",
            "mov w40,#1",
        ] {
            assert!(instruction(line).is_err(), "{line}");
        }
    }
}
