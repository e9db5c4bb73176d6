use proptest::prelude::*;

use super::super::gate::Gate;
use super::*;

fn empty<T: Zeroed>() -> Box<T> {
    // SAFETY: zero bytes are a valid value of the type.
    unsafe { Box::new_zeroed().assume_init() }
}

const NODES: usize = 6;
type Small = Graph<NODES, 64, 256>;

const HOWS: [How; 3] = [How::EXCLUSIVE, How::SHARED, How::SHARED_RECURSIVE];

fn edge(from: u16, from_how: How, to: u16, to_how: How) -> Edge {
    Edge::new(
        (from, from_how, Site::NONE),
        (to, to_how, Site::NONE),
        Trace::NONE,
    )
}

/// Result for each new edge: `Some` with the length of the path back.
fn add(graph: &Small, new: Edge) -> Option<usize> {
    let gate = Gate::new();
    match graph.add(new, |_| true, &gate.enter()) {
        Added::Circle(path) => {
            let numbers = path.edges().iter();
            // SAFETY: the path is the one that this very graph has just returned.
            let way = numbers.map(|number| unsafe { graph.edge(*number) });
            check(&new, way);
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
    let one = (0..NODES as u16, 0..3usize, 1..NODES as u16, 0..3usize);
    let one = one.prop_map(|(from, a, distance, b)| {
        let to = (from + distance) % NODES as u16; // never the same
        edge(from, HOWS[a], to, HOWS[b])
    });
    prop::collection::vec(one, 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_found_is_what_trying_every_walk_finds(edges in edges()) {
        let graph = empty::<Small>();
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

#[test]
fn what_leads_through_a_lock_that_is_gone_does_not_count() {
    let x = How::EXCLUSIVE;
    for (gone, circle) in [(9, true), (1, false)] {
        let graph = empty::<Small>();
        add(&graph, edge(0, x, 1, x));
        add(&graph, edge(1, x, 2, x));
        let gate = Gate::new();
        let added = graph.add(edge(2, x, 0, x), |class| class != gone, &gate.enter());
        assert_eq!(matches!(added, Added::Circle(_)), circle);
    }
}

#[test]
fn a_full_graph_takes_no_more() {
    let x = How::EXCLUSIVE;
    let graph = empty::<Graph<NODES, 2, 16>>();
    let gate = Gate::new();
    let add = |from, to| graph.add(edge(from, x, to, x), |_| true, &gate.enter());
    assert!(matches!(add(0, 1), Added::Fine));
    assert!(matches!(add(1, 2), Added::Fine));
    assert!(matches!(add(2, 3), Added::Full));
    // No thread need try again, nor search.
    assert!(graph.knows(Key::new(3, x, 4, x)));
    assert_eq!(graph.edges(), 2);
}
