//! The first few of many, without sorting the others.

/// Of places of two groups, the bit of those in the second one: above the 64 bits of the value and the 32 bits of the
/// job's number.
pub(super) const SECOND: u128 = 1 << 96;

/// All bits of a place in the order. Turned round in all of them, the order is turned round, and nothing is lost of it.
pub(super) const TURNED: u128 = SECOND | (SECOND - 1);

/// Takes places in any order and keeps the first ones behind a cursor, or the last ones before it.
///
/// For the latter all places are turned round: then it is the first ones behind the cursor again.
#[derive(Debug)]
pub(super) struct Selection {
    limit: usize,
    /// Whether the page ends before the cursor; otherwise it begins behind it.
    cursor: Option<(bool, u128)>,
    /// Up to twice as many as are wanted, so that the worse half is found and dropped at a small price for each.
    best: Vec<(u128, u32)>,
    /// No place behind this one is wanted any more.
    end: u128,
    total: usize,
    /// How many there are on the cursor's side that the page is on.
    beyond: usize,
}

/// What was selected.
#[derive(Debug, PartialEq)]
pub(super) struct Selected {
    pub(super) rows: Vec<u32>,
    pub(super) total: usize,
    pub(super) before: usize,
    /// Before which place the page before ends.
    pub(super) previous: Option<u128>,
    /// Behind which place the page behind begins.
    pub(super) next: Option<u128>,
}

impl Selection {
    pub(super) fn new(limit: usize, cursor: Option<(bool, u128)>) -> Self {
        Self { limit, cursor, best: Vec::with_capacity(limit * 2), end: u128::MAX, total: 0, beyond: 0 }
    }

    /// How many are wanted at most.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Whether places are turned round before they are compared.
    pub(super) fn is_back(&self) -> bool {
        self.cursor.is_some_and(|(is_back, _)| is_back)
    }

    /// Behind which place the page is, turned round where that is done; `None` where every place will do.
    pub(super) fn start(&self) -> Option<u128> {
        self.cursor.and_then(|(is_back, at)| if is_back { (at <= TURNED).then_some(at ^ TURNED) } else { Some(at) })
    }

    /// Behind which place nothing is wanted any more, turned round where that is done.
    pub(super) fn end(&self) -> u128 {
        self.end
    }

    /// Takes note of how many there are, and of how many are behind the start.
    pub(super) fn count(&mut self, total: usize, beyond: usize) {
        self.total += total;
        self.beyond += beyond;
    }

    /// Takes a place behind the start that has been counted, turned round where that is done.
    pub(super) fn push(&mut self, place: u128, row: u32) {
        if place > self.end {
            return;
        }
        self.best.push((place, row));
        if self.best.len() == self.limit * 2 {
            let (_, last, _) = self.best.select_nth_unstable(self.limit - 1);
            self.end = last.0;
            self.best.truncate(self.limit);
        }
    }

    pub(super) fn finish(mut self) -> Selected {
        self.best.sort_unstable();
        self.best.truncate(self.limit);
        let mut before = self.total - self.beyond;
        if self.is_back() {
            before = self.beyond - self.best.len();
            self.best.iter_mut().for_each(|(place, _)| *place ^= TURNED);
            self.best.reverse();
        }
        let first = self.best.first().map(|(place, _)| *place);
        // Behind the last page there may be nothing any more: from there, the way back leads to the last one.
        let first = first.or_else(|| self.cursor.map(|(is_back, at)| if is_back { at } else { at.saturating_add(1) }));
        let last = self.best.last().map(|(place, _)| *place);
        let is_end = before + self.best.len() >= self.total;
        Selected {
            rows: self.best.iter().map(|(_, row)| *row).collect(),
            total: self.total,
            before,
            previous: first.filter(|_| before > 0),
            next: last.or_else(|| first.and_then(|first| first.checked_sub(1))).filter(|_| !is_end),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn select(places: &[u128], limit: usize, cursor: Option<(bool, u128)>) -> Selected {
        let mut selection = Selection::new(limit, cursor);
        for place in places {
            let turned = if selection.is_back() { place ^ TURNED } else { *place };
            let is_beyond = selection.start().is_none_or(|start| turned > start);
            selection.count(1, usize::from(is_beyond));
            if is_beyond {
                selection.push(turned, u32::try_from(*place).unwrap());
            }
        }
        selection.finish()
    }

    proptest! {
        #[test]
        fn pages_follow_one_another_both_ways(
            places in proptest::collection::hash_set(0u128..500, 0..80),
            limit in 1usize..12,
        ) {
            let places: Vec<_> = places.into_iter().collect();
            let mut sorted: Vec<_> = places.iter().map(|place| u32::try_from(*place).unwrap()).collect();
            sorted.sort_unstable();
            let (mut seen, mut cursor) = (Vec::new(), None);
            loop {
                let page = select(&places, limit, cursor);
                prop_assert_eq!((page.total, page.before), (sorted.len(), seen.len()));
                // Back from here is what was before it.
                if let Some(previous) = page.previous {
                    let back = select(&places, limit, Some((true, previous)));
                    prop_assert_eq!(&back.rows, &seen[seen.len() - limit..]);
                    prop_assert_eq!(back.before, seen.len() - limit);
                } else {
                    prop_assert!(seen.is_empty());
                }
                seen.extend(page.rows);
                let Some(next) = page.next else { break };
                cursor = Some((false, next));
            }
            prop_assert_eq!(seen, sorted);
        }
    }

    #[test]
    fn beyond_the_end_the_way_back_is_known() {
        let page = select(&[1, 2, 3], 2, Some((false, 3)));
        assert_eq!(page, Selected { rows: vec![], total: 3, before: 3, previous: Some(4), next: None });
        assert_eq!(select(&[1, 2, 3], 2, Some((true, 4))).rows, [2, 3]);
        let page = select(&[1, 2, 3], 2, Some((true, 1)));
        assert_eq!(page, Selected { rows: vec![], total: 3, before: 0, previous: None, next: Some(0) });
        assert_eq!(select(&[1, 2, 3], 2, Some((false, 0))).rows, [1, 2]);
    }
}
