//! Locks against each other.

use super::super::cells::cells;
use super::super::summary::{locks, peaks, summary};
use super::super::{markdown, svg};
use super::*;

/// A sweep on 36 CPUs: ticket is the best with few vCPUs and collapses, hybrid keeps what it has,
/// and `pv_ticket_small` fails with the second seed and 36 vCPUs.
fn merged() -> Merged {
    let grid = Grid {
        machines: vec![PRESETS[0].clone()],
        vcpus: vec![Load::Vcpus(9), Load::Overcommit(1.0), Load::Overcommit(4.0)],
        ..grid(&[4], 2)
    };
    let grid = grid.check().unwrap();
    let lines = grid.points().into_iter().map(|point| {
        let ops = match (point.lock.name, point.vcpus) {
            ("ticket", 9) => 20e6,
            ("ticket", _) => 2e6,
            ("hybrid", _) => 8e6,
            _ => 16e6,
        };
        let fails = (point.lock.name, point.vcpus, point.seed) == ("pv_ticket_small", 36, 2);
        let outcome = match fails {
            true => Outcome::Failed {
                error: "does not exclude".to_owned(),
            },
            false => Outcome::Measured(Box::new(Measured {
                // The median of two seeds is between them.
                ops_per_sec: ops + point.seed as f64 * 2.0 - 3.0,
                total: ops as u64,
                jain: 0.5,
                cpu_s_per_mop: Some(1e6 / ops),
                ..nothing()
            })),
        };
        let key = point.key();
        Record { key, outcome }
    });
    Merged {
        build: build(),
        lines: lines.collect(),
        grid,
        missing: Vec::new(),
        duplicates: 0,
    }
}

/// Fails where a lock that did nothing is perfectly fair.
#[test]
fn no_operations_have_no_fairness() {
    let mut merged = merged();
    for line in &mut merged.lines {
        if let Outcome::Measured(measured) = &mut line.outcome {
            (measured.total, measured.jain) = (0, 1.0);
        }
    }
    let cells = cells(&merged);
    let summary = summary(&cells, "ticket").unwrap();
    assert!(summary.least_jain.is_none());
    assert!(!markdown::render(&merged).contains("1.000"));
}

#[test]
fn the_best_lock_of_each_cell_has_a_share_of_one() {
    let cells = cells(&merged());
    let shares: Vec<Vec<f64>> = cells
        .iter()
        .map(|cell| cell.locks.iter().map(|lock| lock.of_best).collect())
        .collect();
    // 127 vCPUs are the most for the third.
    assert_eq!(
        shares,
        [vec![1.0, 0.8, 0.4], vec![0.25, 0.0, 1.0], vec![0.25, 1.0]]
    );
    let order = |cell: &cells::Cell| {
        let (best, second) = cell.best().unwrap();
        (best.lock.clone(), second.unwrap().lock.clone())
    };
    assert_eq!(
        order(&cells[0]),
        ("ticket".into(), "pv_ticket_small".into())
    );
    // A lock that failed is neither.
    assert_eq!(order(&cells[1]), ("hybrid".into(), "ticket".into()));
    assert_eq!(cells[2].overcommit(), 4.0);
    assert_eq!(cells[2].to_string(), "e5-2699v3, kvm, 95/0, 144 vCPUs");
}

#[test]
fn a_summary_has_the_worst_cell_and_the_peak() {
    let cells = cells(&merged());
    assert_eq!(locks(&cells), ["ticket", "pv_ticket_small", "hybrid"]);
    let ticket = summary(&cells, "ticket").unwrap();
    assert_eq!((ticket.cells, ticket.best, ticket.level), (3, 1, 1));
    assert_eq!((ticket.worst.0.vcpus, ticket.worst.1), (36, 0.25));
    assert_eq!(ticket.least_jain.map(|least| least.1), Some(0.5));
    assert_eq!(ticket.cpu, 4.0);
    assert!(ticket.longest_ns.is_none());
    let small = summary(&cells, "pv_ticket_small").unwrap();
    assert_eq!((small.cells, small.worst.1, small.mean), (2, 0.0, 0.0));
    assert!(summary(&cells, "mcs").is_none());

    let kept = |lock: &str| {
        let peaks = peaks(&cells, "e5-2699v3", lock);
        let kept = peaks.iter();
        kept.map(|peak| (peak.at.vcpus, peak.least.vcpus, peak.kept))
            .collect::<Vec<_>>()
    };
    assert_eq!(kept("ticket"), [(9, 36, 0.1)]);
    assert_eq!(kept("pv_ticket_small"), [(9, 36, 0.0)]);
    assert_eq!(kept("hybrid")[0].2, 1.0);
    assert_eq!(kept("mcs"), []);
}

#[test]
fn the_page_has_all_cells_and_names_failures() {
    let page = markdown::render(&merged());
    for part in [
        "16 simulations of 0.0001 s with the seeds 1 and 2, 3 cells, by overlock 0.1.0 (commit 4d92672",
        " **1 failed.**",
        "| ticket | 1 of 3, 33 % | 1 of 3, 33 % | 0.40 | 0.25: e5-2699v3, kvm, 95/0, 36 vCPUs | 0.500: ",
        "| ticket | 0 of 1 | 0.10: kvm, 95/0, 0.25x to 1x |",
        "| e5-2699v3 | 36 | hybrid 0.63 (0.40), ticket 0.50 (0.25), pv_ticket_small 0.00 (0.00) | hybrid 1.00 (1.00), ticket 0.25 (0.25) |",
        "<details><summary>e5-2699v3: 36 CPUs, all cells</summary>",
        "| kvm, 95/0 | 36 (1x) | hybrid | 8.00 | 300 % | 0.25 | failed | 1.00 | 0.500 | - | 0.500 |",
        "| kvm, 95/0 | 144 (4x) | hybrid | 8.00 | 300 % | 0.25 | - | 1.00 |",
    ] {
        assert!(page.contains(part), "{part}\n{page}");
    }
}

#[test]
fn the_picture_has_a_chart_for_each_load_and_machine() {
    use svg::Figure::{Cpu, Jain, Longest, Operations};
    let merged = merged();
    let drawn = |figure| {
        let mut picture = Vec::new();
        svg::write(&mut picture, &merged, figure).unwrap();
        String::from_utf8(picture).unwrap()
    };
    for figure in [Operations, Jain, Cpu] {
        let picture = drawn(figure);
        for text in [
            "e5-2699v3, 36 CPUs",
            "kvm, 95/0",
            "0.25x",
            "ticket",
            "hybrid",
        ] {
            assert!(
                picture.contains(&format!("\n{text}\n")),
                "{text}\n{picture}"
            );
        }
    }
    // Nobody has waited.
    let picture = drawn(Longest);
    assert!(picture.contains("longest wait") && !picture.contains("\nticket\n"));
}
