//! The part that all examples share: `--bench`.

use std::time::Instant;

/// The least length of a round, in seconds.
const ROUND: f64 = 0.02;
/// How often both are measured.
const ROUNDS: usize = 25;

/// Whether the program was started with `--bench`.
pub fn wants_bench() -> bool {
    std::env::args().any(|argument| argument == "--bench")
}

/// Runs `ours` and `theirs` in turn, and prints the median ratio of their rates. Neighbours in time
/// are compared, since a machine's speed changes.
pub fn compare(names: [&str; 2], mut ours: impl FnMut(), mut theirs: impl FnMut()) {
    let seconds = |work: &mut dyn FnMut(), times: u32| {
        let start = Instant::now();
        (0..times).for_each(|_| work());
        start.elapsed().as_secs_f64()
    };
    seconds(&mut ours, 1);
    let once = seconds(&mut theirs, 1);
    let times = (ROUND / once).ceil().clamp(1.0, 1e4) as u32;
    let mut ratios: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let ours = seconds(&mut ours, times);
            seconds(&mut theirs, times) / ours
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    let [least, median, most] = [0, ratios.len() / 2, ratios.len() - 1].map(|at| ratios[at]);
    let [ours, theirs] = names;
    println!(
        "{ours}: {median:.2} of the rate of {theirs} ({least:.2} to {most:.2} in {ROUNDS} rounds)"
    );
}
