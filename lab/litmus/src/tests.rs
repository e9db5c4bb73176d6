//! The verdicts, the page, and the compiler's instructions.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::emit::{self, Code};
use crate::program::{Ordering, Program, Statement, Update};
use crate::{classics, is_allowed, pairs, parse, report};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_checker_agrees_with_the_literature() {
    let classics = classics::all();
    assert!(classics.len() > 100, "the lists are not found");
    for classic in classics {
        let test = parse::test(classic.text).expect("a test");
        assert_eq!(
            is_allowed(&test),
            classic.allowed,
            "{:?} {}",
            test.machine,
            test.name
        );
    }
}

#[test]
fn each_pair_holds_and_each_broken_form_shows() {
    let (pairs, _) = pairs::read().expect("the lists");
    for pair in &pairs {
        for code in Code::ALL {
            let forms = report::forms(pair, code);
            assert!(
                forms.iter().any(|form| form.is_broken),
                "{}: it cannot fail",
                pair.name
            );
            for form in forms {
                let allowed = report::is_form_allowed(&form).expect("a test");
                assert_eq!(allowed, form.is_broken, "{}", form.cases[0].text);
            }
        }
    }
}

#[test]
fn the_page_is_that_of_the_lists() {
    let (pairs, _) = pairs::read().expect("the lists");
    let (page, _) = report::table(&pairs).expect("the table");
    let written = fs::read_to_string(root().join("results/litmus.md")).unwrap_or_default();
    assert!(
        page == written,
        "run overlock-litmus --table results/litmus.md"
    );
}

/// The rows of results/orderings.md: the heading without its place, and the first cell.
fn rows(page: &str) -> Vec<(String, String)> {
    let lines = page
        .lines()
        .skip_while(|line| *line != "## Shared parts")
        .take_while(|line| *line != "## Stronger than needed");
    let (mut heading, mut rows) = (String::new(), Vec::new());
    for line in lines {
        if let Some(text) = line.strip_prefix("##") {
            let text = text
                .trim_start_matches('#')
                .split(" (")
                .next()
                .unwrap_or_default();
            heading = text
                .split(", the recommended")
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned();
            heading = heading
                .split(" (also")
                .next()
                .unwrap_or_default()
                .to_owned();
        } else if let Some(row) = line.strip_prefix("| ") {
            let cell = row.split(" | ").next().unwrap_or_default();
            if cell != "pair" {
                rows.push((heading.clone(), cell.to_owned()));
            }
        }
    }
    rows
}

#[test]
fn each_row_of_the_orderings_has_a_litmus_test_or_a_reason() {
    let page = fs::read_to_string(root().join("results/orderings.md")).expect("the page");
    let (pairs, excused) = pairs::read().expect("the lists");
    let rows = rows(&page);
    assert!(rows.len() > 60, "the page's tables are not found");
    for (of, name) in &rows {
        let tested = pairs
            .iter()
            .filter(|pair| pair.of == *of && pair.name == *name);
        let excused = excused
            .iter()
            .filter(|row| row.of == *of && row.name == *name);
        assert_eq!(tested.count() + excused.count(), 1, "{of}: {name}");
    }
    // The other way round; the page has rt_mutex's pair as a sentence.
    let named = pairs.iter().map(|pair| (&pair.of, &pair.name));
    for (of, name) in named.chain(excused.iter().map(|row| (&row.of, &row.name))) {
        let known = rows.iter().any(|row| row.0 == *of && row.1 == *name);
        assert!(
            known || page.contains(&format!("\n{name}: ")),
            "{of}: {name} is no row"
        );
    }
}

#[test]
fn a_broken_form_lacks_one_ordering() {
    let threads = ["x = 1; y = 1 release", "a = y acquire; b = x"].map(str::to_owned);
    let program = Program::parse(&threads, "", "a=1 b=0").expect("a program");
    let broken = program.broken();
    assert_eq!(broken.len(), 2);
    let weak = Statement::Store("y".to_owned(), 1, Ordering::Relaxed);
    assert_eq!(broken[0].threads[0][1], weak);
    assert_eq!(broken[0].threads[1], program.threads[1]);
}

/// Source text of the operation on `a: &AtomicU32`.
fn source(statement: &Statement) -> String {
    let order = |order: &Ordering| match order {
        Ordering::Both => "AcqRel".to_owned(),
        other => format!("{other:?}"),
    };
    match statement {
        Statement::Load(.., one) => format!("a.load({})", order(one)),
        Statement::Store(_, value, one) => format!("{{ a.store({value}, {}); 0 }}", order(one)),
        Statement::Update(_, _, Update::Exchange(from, to), one) => format!(
            "a.compare_exchange({from}, {to}, {}, Relaxed).unwrap_or_else(|old| old)",
            order(one)
        ),
        Statement::Update(_, _, update, one) => {
            let (name, value) = match update {
                Update::Add(value) => ("fetch_add", value),
                Update::Or(value) => ("fetch_or", value),
                Update::Max(value) => ("fetch_max", value),
                Update::Swap(value) | Update::Exchange(_, value) => ("swap", value),
            };
            format!("a.{name}({value}, {})", order(one))
        }
        _ => "{ fence(SeqCst); 0 }".to_owned(),
    }
}

/// The instructions of a text that order or access memory, as words: `casa`, `fence r,rw`.
fn words<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let known = |line: &&str| {
        let word = line.split_whitespace().next().unwrap_or_default();
        let begins = [
            "ld", "st", "cas", "swp", "dmb", "lw", "sw", "lr.", "sc.", "amo", "fence",
        ];
        begins.iter().any(|begin| word.starts_with(begin))
    };
    let lines: Vec<String> = lines
        .into_iter()
        .map(|line| line.trim().to_ascii_lowercase())
        .collect();
    let lines = lines.iter().map(String::as_str).filter(known);
    lines
        .map(|line| {
            let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            match word {
                "fence" | "dmb" => format!("{word} {}", rest.replace(' ', "")),
                word => word.replace(".aq.rl", ".aqrl"),
            }
        })
        .collect()
}

/// The targets of [`Code`] that a compiler here has: of those without a system, CI has them.
fn targets() -> Vec<(Code, Vec<&'static str>)> {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output();
    let sysroot = String::from_utf8(sysroot.expect("rustc runs").stdout).expect("a path");
    let library = Path::new(sysroot.trim()).join("lib/rustlib");
    [
        (
            Code::Arm,
            vec!["aarch64-unknown-none", "-Ctarget-feature=+lse"],
        ),
        (Code::Exclusives, vec!["aarch64-unknown-none"]),
        (Code::RiscV, vec!["riscv32imac-unknown-none-elf"]),
    ]
    .into_iter()
    .filter(|(_, arguments)| library.join(arguments[0]).is_dir())
    .collect()
}

#[test]
fn the_compiler_makes_the_same() {
    let name = || "a".to_owned();
    let orders = [
        Ordering::Relaxed,
        Ordering::Acquire,
        Ordering::Release,
        Ordering::Both,
        Ordering::SeqCst,
    ];
    let mut statements = vec![Statement::Fence];
    for order in orders {
        if order != Ordering::Acquire && order != Ordering::Both {
            statements.push(Statement::Store(name(), 1, order));
        }
        if order != Ordering::Release && order != Ordering::Both {
            statements.push(Statement::Load(name(), name(), order));
        }
        for update in [
            Update::Exchange(1, 2),
            Update::Swap(2),
            Update::Add(2),
            Update::Or(2),
            Update::Max(2),
        ] {
            statements.push(Statement::Update(name(), name(), update, order));
        }
    }
    let mut source_text =
        String::from("#![no_std]\nuse core::sync::atomic::{AtomicU32, Ordering::*, fence};\n");
    for (index, statement) in statements.iter().enumerate() {
        source_text += &format!(
            "#[unsafe(no_mangle)] pub fn probe_{index}(a: &AtomicU32) -> u32 {{ {} }}\n",
            source(statement)
        );
    }
    let directory = std::env::temp_dir().join(format!("overlock-litmus-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("a folder");
    let path = directory.join("probes.rs");
    fs::write(&path, source_text).expect("the probes");
    for (code, arguments) in targets() {
        let assembly = directory.join("probes.s");
        let status = Command::new("rustc")
            .args([
                "--edition=2024",
                "-O",
                "--crate-type=lib",
                "--emit=asm",
                "--target",
            ])
            .args(arguments)
            .arg("-o")
            .args([&assembly, &path])
            .status();
        assert!(status.expect("rustc runs").success());
        let text = fs::read_to_string(&assembly).expect("the assembly");
        for (index, statement) in statements.iter().enumerate() {
            let start = format!("\nprobe_{index}:");
            let (_, rest) = text.split_once(&start).expect("a probe");
            let body = rest.split("\n\t.size").next().unwrap_or_default();
            let expected = emit::lines(code, statement);
            assert_eq!(
                words(body.lines()),
                words(expected.iter().map(String::as_str)),
                "{code:?}: {statement:?}"
            );
        }
    }
    fs::remove_dir_all(&directory).expect("it was made above");
}
