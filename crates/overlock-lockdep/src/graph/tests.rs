mod storm;

use proptest::prelude::*;

use super::super::class::ClassId;
use super::super::gate::{Gate, Quiet};
use super::super::site::{How, Site};
use super::super::thread::Held;
use super::edge::READER;
use super::*;

const NODES: usize = 6;

const HOWS: [How; 3] = [How::EXCLUSIVE, How::SHARED, How::SHARED_RECURSIVE];

/// From one lock to another. The nodes are above 0, and a lock's number is its node's.
fn edge(from: u32, from_how: How, to: u32, to_how: How) -> Edge {
    let held = |node: u32, how| Held {
        lock: node as usize,
        class: ClassId::new(node, node.into()),
        how,
        site: Site::NONE,
    };
    Edge::new(
        [from, to],
        [&held(from, from_how), &held(to, to_how)],
        1,
        ANY,
    )
}

fn guarded(new: Edge, by: &[u64]) -> Edge {
    let mut new = new;
    new.guards[..by.len()].copy_from_slice(by);
    new
}

/// All but one node and the guards of the same number.
struct But(u32);

impl Alive for But {
    fn node(&self, node: u32) -> bool {
        node != self.0
    }

    fn guard(&self, number: u64) -> bool {
        number != self.0.into()
    }
}

fn put(graph: &Graph, new: Edge, alive: &impl Alive) -> Added {
    let gate = Gate::new();
    let quiet = Quiet::begin();
    let inside = gate.enter(&quiet).unwrap();
    let key = Key::new(new.from.into(), new.from_how, new.to.into(), new.to_how);
    let guards = new.guards().map(summand).fold(0, u64::wrapping_add);
    let added = graph.add(new, key, guards, alive, &inside);
    if matches!(added, Added::Circle(_)) {
        // As the caller does: once for each pair.
        for from_how in HOWS {
            for to_how in HOWS {
                let key = Key::new(new.from.into(), from_how, new.to.into(), to_how);
                graph.settle(key, &inside);
            }
        }
    }
    added
}

/// Result for each new edge: `Some` with the length of the path back.
fn add(graph: &Graph, new: Edge) -> Option<usize> {
    match put(graph, new, &But(0)) {
        Added::Circle(Found { path, .. }) => {
            check(&new, path.edges().iter().copied());
            Some(path.length())
        }
        _ => None,
    }
}

/// A path leads back, and no two of its edges are joined by readers that do not block each other.
fn check(new: &Edge, way: impl Iterator<Item = Edge>) {
    let mut last = *new;
    for next in way.chain([*new]) {
        assert_eq!(last.to, next.from);
        assert!(!(last.to_how.is_recursive() && next.from_how.is_shared()));
        last = next;
    }
}

/// The same by trying every walk.
#[derive(Default)]
struct Naive(Vec<Edge>);

impl Naive {
    fn add(&mut self, new: Edge) -> Option<usize> {
        let kind = |edge: &Edge| {
            let kind = (edge.from_how.is_shared(), edge.to_how.is_recursive());
            (edge.from, edge.to, kind)
        };
        if self.0.iter().any(|edge| kind(edge) == kind(&new)) {
            return None;
        }
        // Walks by length, as their ends and how those were reached.
        let mut ends = vec![(new.to, new.to_how.is_recursive())];
        for length in 1..=2 * NODES {
            let mut next = Vec::new();
            for (at, as_reader) in &ends {
                let out = self.0.iter().filter(|edge| edge.from == *at);
                let out = out.filter(|edge| !(*as_reader && edge.from_how.is_shared()));
                next.extend(out.map(|edge| (edge.to, edge.to_how.is_recursive())));
            }
            next.sort();
            next.dedup();
            if (next.iter())
                .any(|(at, as_reader)| *at == new.from && !(*as_reader && new.from_how.is_shared()))
            {
                return Some(length);
            }
            ends = next;
        }
        self.0.push(new);
        None
    }
}

fn edges() -> impl Strategy<Value = Vec<Edge>> {
    let count = NODES as u32;
    let one = (0..count, 0..3usize, 1..count, 0..3usize);
    let one = one.prop_map(move |(from, a, distance, b)| {
        let (from, to) = (from + 1, (from + distance) % count + 1); // never the same
        edge(from, HOWS[a], to, HOWS[b])
    });
    prop::collection::vec(one, 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_found_is_what_trying_every_walk_finds(edges in edges()) {
        let graph = Graph::new();
        let mut naive = Naive::default();
        let mut reported = Vec::new();
        for new in edges {
            if reported.contains(&(new.from, new.to)) {
                // Once for each pair.
                prop_assert_eq!(add(&graph, new), None);
                continue;
            }
            let expected = naive.add(new);
            prop_assert_eq!(add(&graph, new), expected);
            if expected.is_some() {
                reported.push((new.from, new.to));
            }
        }
        prop_assert_eq!(graph.edges(), naive.0.len());
    }
}

const X: How = How::EXCLUSIVE;

#[test]
fn what_leads_through_a_lock_that_is_gone_does_not_count() {
    for (gone, circle) in [(9, true), (2, false)] {
        let graph = Graph::new();
        add(&graph, edge(1, X, 2, X));
        add(&graph, edge(2, X, 3, X));
        let added = put(&graph, edge(3, X, 1, X), &But(gone));
        assert_eq!(matches!(added, Added::Circle(_)), circle);
    }
}

/// Returns the outcome for the last of these edges, each with its guards.
fn last(edges: &[(u32, u32, &[u64])], alive: &But) -> &'static str {
    let graph = Graph::new();
    let mut outcome = "";
    for (from, to, guards) in edges {
        let new = guarded(edge(*from, X, *to, X), guards);
        outcome = match put(&graph, new, alive) {
            Added::Fine => "fine",
            Added::Harmless(Reason::Gate, _) => "gated",
            Added::Harmless(Reason::Threads, _) => "alone",
            Added::Circle(_) => "circle",
            Added::Full => "full",
        };
    }
    outcome
}

#[test]
fn a_cycle_under_one_lock_is_none_and_each_sighting_counts_for_itself() {
    let last = |edges| last(edges, &But(99));
    assert_eq!(last(&[(1, 2, &[7]), (2, 1, &[7])]), "gated");
    assert_eq!(last(&[(1, 2, &[7]), (2, 1, &[8])]), "circle");
    assert_eq!(last(&[(1, 2, &[7]), (2, 1, &[])]), "circle");
    assert_eq!(last(&[(1, 2, &[7]), (2, 1, &[7]), (2, 1, &[])]), "circle");
    assert_eq!(last(&[(1, 2, &[7]), (2, 1, &[7]), (1, 2, &[])]), "circle");
    // Not under the one lock, then under the other: each time under one of the second's.
    assert_eq!(
        last(&[(1, 2, &[7]), (1, 2, &[8]), (2, 1, &[7, 8])]),
        "gated"
    );
    assert_eq!(
        last(&[(1, 2, &[7]), (2, 1, &[7, 8]), (1, 2, &[8])]),
        "gated"
    );
    // Readers keep no reader out, but the writer.
    const R: u64 = 7 | READER;
    assert_eq!(last(&[(1, 2, &[R]), (2, 1, &[R])]), "circle");
    assert_eq!(last(&[(1, 2, &[R]), (2, 1, &[7])]), "gated");
    assert_eq!(last(&[(1, 2, &[7]), (2, 1, &[7]), (1, 2, &[R])]), "gated");
    let last_reads = &[(1, 2, &[R][..]), (2, 1, &[7]), (2, 1, &[R])];
    assert_eq!(last(last_reads), "circle");
    // Two of three edges are enough.
    assert_eq!(last(&[(1, 2, &[7]), (2, 3, &[]), (3, 1, &[7])]), "gated");
    assert_eq!(
        last(&[(1, 2, &[7]), (2, 3, &[7, 8]), (3, 1, &[9])]),
        "gated"
    );
    assert_eq!(last(&[(1, 2, &[7]), (2, 3, &[8]), (3, 1, &[9])]), "circle");
    // The shortest way back has a gate lock, a longer one has none.
    let detour: &[(u32, u32, &[u64])] = &[(2, 1, &[7]), (2, 3, &[]), (3, 1, &[]), (1, 2, &[7])];
    assert_eq!(last(detour), "circle");
    // A lock that one thread holds as the first of an edge keeps the other out.
    assert_eq!(last(&[(1, 2, &[]), (2, 3, &[1]), (3, 1, &[])]), "gated");
}

#[test]
fn what_was_seen_under_a_lock_that_is_gone_does_not_count() {
    let edges: &[(u32, u32, &[u64])] = &[(1, 2, &[7]), (2, 1, &[8])];
    assert_eq!(last(edges, &But(7)), "fine");
    assert_eq!(last(edges, &But(99)), "circle");
}

#[test]
fn an_edge_is_kept_for_a_few_guards_and_always_without() {
    let graph = Graph::new();
    for guard in 10..100 {
        put(&graph, guarded(edge(1, X, 2, X), &[guard]), &But(0));
    }
    assert_eq!(graph.edges(), SIGHTINGS);
    put(&graph, edge(1, X, 2, X), &But(0));
    assert_eq!(graph.edges(), SIGHTINGS + 1);
    // A known edge implies it.
    put(&graph, guarded(edge(1, X, 2, X), &[200]), &But(0));
    assert_eq!(graph.edges(), SIGHTINGS + 1);
}

/// Between a first and a last edge that are under one lock, layers of four nodes: each way through
/// them is a cycle that cannot happen.
fn through_layers(layers: u32) -> Added {
    let graph = Graph::new();
    let node = |layer: u32, place: u32| 20 + 4 * layer + place;
    put(&graph, guarded(edge(2, X, 3, X), &[7]), &But(0));
    put(&graph, guarded(edge(4, X, 1, X), &[7]), &But(0));
    for place in 0..4 {
        put(&graph, edge(3, X, node(0, place), X), &But(0));
        put(&graph, edge(node(layers - 1, place), X, 4, X), &But(0));
        for (layer, next) in (1..layers).flat_map(|layer| (0..4).map(move |next| (layer, next))) {
            let new = edge(node(layer - 1, place), X, node(layer, next), X);
            put(&graph, new, &But(0));
        }
    }
    put(&graph, edge(1, X, 2, X), &But(0))
}

/// Fails where a search that has given up counts as one that has found nothing.
#[test]
fn a_search_that_gives_up_is_unknown() {
    let few = through_layers(3);
    assert!(matches!(few, Added::Harmless(Reason::Gate, _)));
    let many = through_layers(8);
    assert!(matches!(many, Added::Circle(found) if found.is_unknown));
}

/// Fails where the set of known edges fills up for ever, or where an edge is kept again after it
/// was emptied.
#[test]
fn what_is_known_may_be_forgotten() {
    let graph = Graph::new();
    add(&graph, edge(1, X, 2, X));
    for number in 0..KNOWN as u64 {
        graph.note(Key::new(number, X, number + 1, How::SHARED_RECURSIVE));
    }
    assert!(graph.forgot.load(Relaxed));
    add(&graph, edge(1, X, 2, X));
    assert_eq!(graph.edges(), 1);
}

#[test]
fn a_sweep_frees_the_edges_of_locks_that_are_gone_for_others() {
    let graph = Graph::new();
    add(&graph, edge(1, X, 2, X));
    add(&graph, edge(2, X, 3, X));
    add(&graph, edge(3, X, 4, X));
    put(&graph, guarded(edge(4, X, 5, X), &[2]), &But(0));
    let gate = Gate::new();
    let quiet = Quiet::begin();
    graph.sweep(&But(2), &gate.enter(&quiet).unwrap());
    assert_eq!(graph.edges(), 1);
    let end = graph.end.load(Relaxed);
    add(&graph, edge(5, X, 6, X));
    add(&graph, edge(6, X, 7, X));
    assert_eq!((graph.edges(), graph.end.load(Relaxed)), (3, end));
    // The edges that stay are still found.
    assert_eq!(add(&graph, edge(4, X, 3, X)), Some(1));
}

/// Returns the lives of two threads that exist at a time, of one that has ended, and of one that
/// begins later.
fn lives() -> [u32; 4] {
    use super::super::lives::{begin, end};

    let ended = || {
        let life = begin();
        end(life);
        life
    };
    std::thread::scope(|scope| {
        let mine = begin();
        let beside = scope.spawn(begin).join().unwrap();
        let past = scope.spawn(ended).join().unwrap();
        let later = scope.spawn(begin).join().unwrap();
        [mine, beside, past, later]
    })
}

/// Returns the outcome for the last of these edges between locks, each made by a thread of a life.
fn last_by(edges: &[(u32, u32, u32)]) -> &'static str {
    let graph = Graph::new();
    let mut outcome = "";
    for (from, to, life) in edges {
        let mut new = edge(*from, X, *to, X);
        new.threads[0] = *life;
        outcome = match put(&graph, new, &But(99)) {
            Added::Fine => "fine",
            Added::Harmless(Reason::Threads, _) => "alone",
            Added::Circle(found) if found.were_alone == 1 => "circle that was alone",
            Added::Circle(_) => "circle",
            _ => "something else",
        };
    }
    outcome
}

#[cfg(not(miri))] // it has no numbers of threads
#[test]
fn a_cycle_needs_threads_that_meet() {
    let [mine, beside, past, later] = lives();
    assert_eq!(last_by(&[(1, 2, mine), (2, 1, beside)]), "circle");
    assert_eq!(last_by(&[(1, 2, mine), (2, 1, past)]), "circle");
    assert_eq!(last_by(&[(1, 2, mine), (2, 1, mine)]), "alone");
    assert_eq!(last_by(&[(1, 2, past), (2, 1, later)]), "alone");
    assert_eq!(last_by(&[(1, 2, later), (2, 1, past)]), "alone");
    // A second thread makes one of them, the last or the first.
    for [from, to] in [[1, 2], [2, 1]] {
        let edges = [(1, 2, mine), (2, 1, mine), (from, to, beside)];
        assert_eq!(last_by(&edges), "circle that was alone");
    }
    // It makes both, but had ended before.
    let edges = [(1, 2, past), (2, 1, past), (1, 2, later), (2, 1, later)];
    assert_eq!(last_by(&edges), "fine");
    // Two of three edges are one thread's.
    assert_eq!(
        last_by(&[(1, 2, mine), (2, 3, mine), (3, 1, beside)]),
        "alone"
    );
    assert_eq!(
        last_by(&[(1, 2, mine), (2, 3, past), (3, 1, later)]),
        "alone"
    );
    // A longer cycle has a thread for each edge where the shortest has not.
    let edges = [
        (1, 2, mine),
        (2, 1, mine),
        (2, 3, beside),
        (3, 1, later),
        (1, 2, mine),
    ];
    assert_eq!(last_by(&edges[..3]), "fine");
    assert_eq!(last_by(&edges[..4]), "circle");
}

#[cfg(not(miri))] // it has no numbers of threads
#[test]
fn of_many_threads_those_are_kept_that_later_ones_can_meet() {
    let [_, _, past, later] = lives();
    let mut one = edge(1, X, 2, X);
    one.threads = [past; 4];
    one.is_made_by(later);
    assert!(one.is_by(later) && one.is_by(past));
    let four: Vec<u32> = (0..2).flat_map(|_| lives()).collect();
    let lasting = |life: &&u32| super::super::lives::ended(**life).is_none();
    for life in four.iter().filter(lasting) {
        one.is_made_by(*life);
    }
    assert!(one.is_by(ANY));
}
