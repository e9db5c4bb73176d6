//! Many threads that make the same edges.

use super::*;

/// Fails where each new thread of an edge has the graph searched: a program with many threads and
/// many locks does not come to its end.
#[cfg(not(miri))] // it has no numbers of threads
#[test]
fn of_threads_that_meet_the_same_ones_few_are_looked_at() {
    let [mine, beside, _, later] = lives();
    let graph = Graph::new();
    let by = |from, to, life| {
        let mut new = guarded(edge(from, X, to, X), &[7]);
        new.threads[0] = life;
        put(&graph, new, &But(99))
    };
    for life in [mine, beside] {
        by(1, 2, life);
        by(2, 1, life);
    }
    assert!(graph.has_cycles.load(Relaxed));
    let searches = graph.search.load(Relaxed);
    for (from, to) in [(1, 2), (2, 1)] {
        assert!(matches!(by(from, to, later), Added::Fine));
    }
    assert_eq!(graph.search.load(Relaxed), searches);
    // It is noted all the same.
    let number = |from| graph.out(from).next().unwrap().0;
    assert!(
        [1, 2]
            .iter()
            .all(|from| graph.edge(number(*from)).unwrap().is_by(later))
    );
}
