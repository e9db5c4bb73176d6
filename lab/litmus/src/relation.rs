//! Binary relations over the events of one execution, as the axioms are written: unions, sequences,
//! restrictions.

/// A set of events: a bit each.
pub type Set = u64;

/// The events of `set`, in ascending order.
pub fn members(set: Set) -> impl Iterator<Item = usize> {
    (0..64).filter(move |event| set >> event & 1 == 1)
}

/// A relation: for each event, the events that it is related to.
#[derive(Clone, Debug, PartialEq)]
pub struct Relation(Vec<Set>);

impl Relation {
    /// The pairs of events below `count` that `related` says.
    pub fn of(count: usize, related: impl Fn(usize, usize) -> bool) -> Self {
        assert!(count <= 64, "a set of events has 64 bits");
        let row = |from| {
            let to = (0..count).filter(|&to| related(from, to));
            to.fold(0, |set, to| set | 1 << to)
        };
        Relation((0..count).map(row).collect())
    }

    fn map(&self, row: impl Fn(usize, Set) -> Set) -> Self {
        let rows = self.0.iter().enumerate();
        Relation(rows.map(|(from, &to)| row(from, to)).collect())
    }

    /// Whether `from` is related to `to`.
    pub fn has(&self, from: usize, to: usize) -> bool {
        self.0[from] >> to & 1 == 1
    }

    /// Pairs of either.
    pub fn or(&self, other: &Self) -> Self {
        self.map(|from, to| to | other.0[from])
    }

    /// Pairs of both.
    pub fn and(&self, other: &Self) -> Self {
        self.map(|from, to| to & other.0[from])
    }

    /// Pairs of this one alone.
    pub fn without(&self, other: &Self) -> Self {
        self.map(|from, to| to & !other.0[from])
    }

    /// This one, then `next`.
    pub fn then(&self, next: &Self) -> Self {
        self.map(|_, to| members(to).fold(0, |set, middle| set | next.0[middle]))
    }

    /// The pairs that begin in `set`.
    pub fn from(&self, set: Set) -> Self {
        self.map(|from, to| if set >> from & 1 == 1 { to } else { 0 })
    }

    /// The pairs that end in `set`.
    pub fn to(&self, set: Set) -> Self {
        self.map(|_, to| to & set)
    }

    /// The events in which a pair ends.
    pub fn range(&self) -> Set {
        self.0.iter().fold(0, |set, to| set | to)
    }

    /// Each pair the other way round.
    pub fn inverse(&self) -> Self {
        Self::of(self.0.len(), |from, to| self.has(to, from))
    }

    /// Whether there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.range() == 0
    }

    /// Whether no event comes before itself.
    pub fn is_acyclic(&self) -> bool {
        let mut all = self.clone();
        for middle in 0..all.0.len() {
            let beyond = all.0[middle];
            for row in &mut all.0 {
                if *row >> middle & 1 == 1 {
                    *row |= beyond;
                }
            }
        }
        (0..all.0.len()).all(|event| !all.has(event, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_of_any_length_is_found() {
        let ring = |count: usize| Relation::of(count, |from, to| to == (from + 1) % count);
        assert!((1..9).all(|count| !ring(count).is_acyclic()));
        let line = Relation::of(9, |from, to| to == from + 1);
        assert!(line.is_acyclic());
    }

    #[test]
    fn a_sequence_meets_in_the_middle() {
        let next = Relation::of(4, |from, to| to == from + 1);
        let two = next.then(&next);
        assert_eq!(two, Relation::of(4, |from, to| to == from + 2));
        assert_eq!(two.range(), 0b1100);
        assert!(two.inverse().has(3, 1));
        assert!(two.and(&next).is_empty());
    }
}
