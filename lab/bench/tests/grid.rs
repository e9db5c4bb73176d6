//! The documents and texts of `overlock-lab bench grid` and `overlock-lab bench idle`.

use std::sync::Arc;
use std::time::Duration;

use overlock_bench::grid::check::loops;
use overlock_bench::grid::plan::{Plan, places};
use overlock_bench::grid::report::text::{Layout, render};
use overlock_bench::grid::report::{Report, Settings, markdown, svg};
use overlock_bench::grid::run::{End, run};
use overlock_bench::grid::shape::find;
use overlock_bench::grid::{Choice, contestants};
use overlock_bench::idle;
use overlock_bench::idle::object::OBJECTS;
use overlock_bench::machine::Machine;
use overlock_bench::registry::Family;
use overlock_bench::world::native::Native;
use serde_json::Value;

/// A shape of each family with one thread and three, for some milliseconds.
fn tiny() -> Report {
    let machine = Machine::probe();
    let stuck = |_: &_, _| panic!("hangs");
    let world = Native::new(machine.allowed().to_vec(), Arc::default(), stuck);
    let shapes = [
        (Family::Exclusive, "65/330"),
        (Family::ReaderWriter, "r90-50/100"),
        (Family::Condvar, "queue"),
    ];
    let shapes = shapes.map(|(family, name)| find(&[family], name).unwrap());
    let words = ["std", "usync"].map(str::to_owned).to_vec();
    let choice = Choice::Named(words);
    let plan = Plan {
        places: places(&shapes, &[1, 3], |family| contestants(family, &choice)),
        rounds: 2,
        latency_rounds: 1,
        round: Duration::from_millis(10),
        seed: 5,
        deadline: None,
    };
    let (check, end) = loops(&world, &plan.places);
    assert!(matches!(end, End::Complete), "{end:?}");
    let mut told = Vec::new();
    let outcome = run(&world, &plan, machine.cpus, |done, _, _| told.push(done));
    assert_eq!(told.len(), plan.steps().count());
    assert!(told.is_sorted());
    let settings = Settings {
        form: "grid",
        command: "overlock-lab bench grid".to_owned(),
        rounds: plan.rounds,
        latency_rounds: plan.latency_rounds,
        seconds: plan.round.as_secs_f64(),
        seed: plan.seed,
        clock: "",
        end: "",
        elapsed_s: 0.0,
    };
    Report::new(machine, settings, check, &outcome, &world)
}

fn document(report: &Report) -> Value {
    let mut text = Vec::new();
    overlock_report::json::write(&mut text, &report).unwrap();
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn a_document_has_all_cells_the_worst_first() {
    let document = document(&tiny());
    assert_eq!(document["version"], 1);
    assert_eq!(document["settings"]["rounds"], 2);
    assert_eq!(document["settings"]["end"], "complete");
    // Ours and two peers, in two families that have a limit.
    assert_eq!(document["check"].as_array().unwrap().len(), 2 * 3);
    let cells = document["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 3 * 2);
    let ratios: Vec<f64> = cells
        .iter()
        .map(|cell| cell["ratio"].as_f64().unwrap_or(f64::INFINITY))
        .collect();
    assert!(ratios.is_sorted(), "{ratios:?}");
    for cell in cells {
        let limited = cell["family"] != "condvar";
        let rows = cell["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 3 + usize::from(limited), "{cell}");
        assert_eq!(rows.last().unwrap()["kind"] == "limit", limited);
        assert_eq!(rows[0]["kind"], "ours");
        assert!(cell["limit_ops_per_sec"].is_number() == limited);
    }
}

#[test]
fn the_texts_lead_with_the_worst_cell() {
    let report = tiny();
    let worst = report.cells[0].name();
    let layout = Layout {
        width: None,
        colours: false,
        worst: 1,
        all: true,
        details: true,
    };
    let text = render(&report, &layout);
    let at = |what: &str| {
        text.find(what)
            .unwrap_or_else(|| panic!("no {what}: {text}"))
    };
    let first = at("The worst cells:");
    assert!(
        at("Check of the loops") < first && first < at(&worst),
        "{text}"
    );
    assert!(at(&worst) < at("Jain's index of ours"), "{text}");
    assert!(
        at("Ours over each peer") < text.rfind("(no lock)").unwrap(),
        "{text}"
    );
    assert!(!text.contains('\u{1b}'), "{text}");
    let coloured = render(
        &report,
        &Layout {
            colours: true,
            ..layout
        },
    );
    assert!(coloured.contains("\u{1b}["), "{coloured}");

    let (mut page, mut picture) = (Vec::new(), Vec::new());
    markdown::write(&mut page, &report).unwrap();
    svg::write(&mut picture, &report).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert!(page.find("## The losing cells").unwrap() < page.find(&worst).unwrap());
    assert!(page.contains("## All cells: condvar"), "{page}");
    let widths = page.lines().filter(|line| line.starts_with('|'));
    assert!(widths.count() > 20, "{page}");
    let picture = String::from_utf8(picture).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains("mutex 65/330"));
}

#[test]
fn blocked_threads_are_reported() {
    let plan = idle::Plan {
        objects: OBJECTS.iter().take(2).collect(),
        threads: 3,
        watched: Duration::from_millis(20),
        settle: Duration::ZERO,
    };
    let stuck = |_: &_, _| panic!("hangs");
    let measure = |object: &&_| idle::measure(object, &plan, &Arc::default(), stuck).unwrap();
    let report = idle::report::Report {
        version: idle::report::VERSION,
        machine: Machine::probe(),
        settings: idle::report::Settings {
            threads: plan.threads,
            seconds: 0.02,
            settle_s: 0.0,
            end: "complete",
        },
        rows: plan.objects.iter().map(measure).collect(),
    };
    let table = report.render(None);
    assert!(
        table.contains("The worst of ours: mutex overlock-mutex"),
        "{table}"
    );
}
