//! The tests of the literature, whose verdicts are published: they check the checker.
//!
//! The names are the literature's. Verdicts: Maranget, Sarkar, Sewell, "A Tutorial Introduction to
//! the ARM and POWER Relaxed Memory Models"; Pulte and others, POPL 2018; the appendix "RVWMO
//! Explanatory Material" of RISC-V's unprivileged manual.

/// The files: tests behind each other, each with `Allowed` or `Forbidden` as its comment.
const FILES: [&str; 2] = [
    include_str!("../classics/arm.txt"),
    include_str!("../classics/riscv.txt"),
];

/// A test's text, and whether its outcome is allowed.
#[derive(Clone, Copy, Debug)]
pub struct Classic {
    /// The test, in herd7's format.
    pub text: &'static str,
    /// The published verdict.
    pub allowed: bool,
}

/// All of them.
pub fn all() -> Vec<Classic> {
    let tests = FILES.iter().flat_map(|file| file.split("\n\n"));
    tests
        .filter(|text| !text.trim().is_empty())
        .map(|text| {
            let comment = text.lines().nth(1).unwrap_or_default();
            assert!(
                matches!(comment, "\"Allowed\"" | "\"Forbidden\""),
                "no verdict: {text}"
            );
            Classic {
                text,
                allowed: comment == "\"Allowed\"",
            }
        })
        .collect()
}
