//! The meaning of the two machines' instructions.

pub mod arm;
pub mod risc_v;

use crate::test::{Change, Instruction, Operand, Register};

/// The word of an instruction, and its operands: `str w0,[x1,w2,sxtw]` has `w0`, `[x1,w2,sxtw]`.
pub fn parts(line: &str) -> (String, Vec<String>) {
    let line = line.trim().to_ascii_lowercase();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((&line, ""));
    let mut operands = vec![String::new()];
    let mut bracketed = false;
    for letter in rest.chars().filter(|letter| !letter.is_whitespace()) {
        match letter {
            ',' if !bracketed => operands.push(String::new()),
            letter => {
                bracketed = letter == '[' || bracketed && letter != ']';
                operands.last_mut().expect("one").push(letter);
            }
        }
    }
    operands.retain(|operand| !operand.is_empty());
    (word.to_owned(), operands)
}

/// An instruction that only computes.
pub fn compute(into: Register, change: Change, a: Operand, b: Operand) -> Instruction {
    Instruction::Compute {
        into,
        change,
        of: [a, b],
    }
}

/// A number of assembly text: decimal, or hexadecimal.
pub fn number(text: &str) -> Result<i64, String> {
    let text = text.trim_start_matches('#');
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16),
        None => text.parse(),
    }
    .map_err(|error| format!("{text}: {error}"))
}
