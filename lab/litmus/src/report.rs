//! The verdicts over all pairs, and the tests as files.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::classics;
use crate::emit::{self, Code};
use crate::pairs::Pair;
use crate::program::Program;
use crate::{is_allowed, parse};

/// A test in herd7's format, and what it has to be.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name, which is that of its file.
    pub name: String,
    /// The text.
    pub text: String,
}

/// A program that must not show its outcome, or a broken one. A membarrier may run its fence at
/// several points, each of which is a case.
#[derive(Clone, Debug)]
pub struct Form {
    /// The cases.
    pub cases: Vec<Case>,
    /// An ordering has been taken away: the outcome must be allowed in some case.
    pub is_broken: bool,
}

/// A name for files: letters, digits, and hyphens.
fn file_name(text: &str) -> String {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("-")
}

/// All forms of a pair, in the instructions of `code`.
pub fn forms(pair: &Pair, code: Code) -> Vec<Form> {
    let comment = format!("{} of {}", pair.name, pair.of).replace('"', "'");
    let mut all = Vec::new();
    for (number, program) in pair.tests.iter().enumerate() {
        let stem = format!(
            "{}.{}.{number}.{}",
            file_name(&pair.of),
            file_name(&pair.name),
            code.name()
        );
        let case = |suffix: &str, point: usize, program: &Program| {
            let name = format!("{stem}{suffix}.{point}");
            let text = emit::test(code, &name, &comment, program);
            Case { name, text }
        };
        let placements = program.placements();
        all.push(Form {
            cases: (placements.iter().enumerate())
                .map(|(point, program)| case("", point, program))
                .collect(),
            is_broken: false,
        });
        let broken: Vec<Vec<Program>> = placements.iter().map(Program::broken).collect();
        for change in 0..broken[0].len() {
            let suffix = format!(".broken{change}");
            all.push(Form {
                cases: (broken.iter().enumerate())
                    .map(|(point, broken)| case(&suffix, point, &broken[change]))
                    .collect(),
                is_broken: true,
            });
        }
    }
    all
}

/// Whether the machine may show the outcome of some case.
pub fn is_form_allowed(form: &Form) -> Result<bool, String> {
    for case in &form.cases {
        if is_allowed(&parse::test(&case.text)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The word for a verdict.
pub fn verdict(allowed: bool) -> &'static str {
    if allowed { "Allowed" } else { "Forbidden" }
}

/// The table of all pairs, as a page; and what is not as it must be.
pub fn table(pairs: &[Pair]) -> Result<(String, Vec<String>), String> {
    let mut page = String::from(
        "# Litmus tests of the ordering pairs\n\n\
         For people who review orderings: what Arm's and RISC-V's axioms say of the instructions that each pair of\n\
         [orderings.md](orderings.md) is compiled to. `cargo run --release -p overlock-litmus -- --table results/litmus.md` makes the page;\n\
         `--write DIR` writes the tests for herd7. Each cell: the verdict of the pair's tests; how many broken forms there are, of which each\n\
         lacks one ordering, and how many of these the machine allows.\n\n\
         | part | pair | tests | AArch64, Armv8.1 | AArch64, exclusives | RISC-V |\n|---|---|---|---|---|---|\n",
    );
    let mut faults = Vec::new();
    for pair in pairs {
        let _ = write!(page, "| {} | {} | {}", pair.of, pair.name, pair.tests.len());
        for code in Code::ALL {
            let (mut right, mut broken, mut shown) = (false, 0, 0);
            for form in forms(pair, code) {
                let allowed = is_form_allowed(&form)?;
                if form.is_broken {
                    broken += 1;
                    shown += usize::from(allowed);
                } else {
                    right |= allowed;
                }
                if allowed != form.is_broken {
                    faults.push(format!("{}: {}", form.cases[0].name, verdict(allowed)));
                }
            }
            let _ = write!(page, " | {}; {shown} of {broken}", verdict(right));
        }
        page.push_str(" |\n");
    }
    Ok((page, faults))
}

/// Writes each test to a file of `directory`, and `verdicts.txt` with the verdict due of herd7.
pub fn write(pairs: &[Pair], directory: &Path) -> Result<(), String> {
    let put = |name: &str, text: &str| {
        let path = directory.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let mut verdicts = String::new();
    let mut add = |name: &str, text: &str, allowed: bool| {
        let seen = if allowed { "Sometimes" } else { "Never" };
        let _ = writeln!(verdicts, "{name} {seen}");
        put(&format!("{name}.litmus"), text)
    };
    for classic in classics::all() {
        let test = parse::test(classic.text)?;
        add(
            &format!("{:?}.{}", test.machine, test.name),
            classic.text,
            classic.allowed,
        )?;
    }
    for pair in pairs {
        for form in Code::ALL.iter().flat_map(|&code| forms(pair, code)) {
            for case in &form.cases {
                let allowed = is_allowed(&parse::test(&case.text)?);
                add(&case.name, &case.text, allowed)?;
            }
        }
    }
    put("verdicts.txt", &verdicts)
}
