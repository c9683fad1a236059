//! An ordered set that knows the position of each item.
//!
//! The items lie sorted in blocks of some hundreds; a position is the sum of the blocks before it. A tree would have to
//! be walked item by item to find one.

/// A block is split when it grows beyond this.
const FULL: usize = if cfg!(test) { 8 } else { 512 };

/// A block joins its neighbour when both together have no more than this.
const SMALL: usize = FULL / 2;

/// Items in order, each of them once.
#[derive(Clone, Debug)]
pub(super) struct Ranked<K> {
    /// The first item of each block. Looked through before any block is: they lie close together.
    firsts: Vec<K>,
    /// None of them empty.
    blocks: Vec<Vec<K>>,
    len: usize,
}

impl<K> Default for Ranked<K> {
    fn default() -> Self {
        Self { firsts: Vec::new(), blocks: Vec::new(), len: 0 }
    }
}

impl<K: Copy + Ord> Ranked<K> {
    /// A set of these items. Building it from all of them at once is faster and packs them tighter than inserting.
    pub(super) fn of(mut items: Vec<K>) -> Self {
        items.sort_unstable();
        items.dedup();
        let blocks: Vec<_> = items.chunks(FULL / 4 * 3).map(<[K]>::to_vec).collect();
        Self { firsts: blocks.iter().map(|block| block[0]).collect(), blocks, len: items.len() }
    }

    /// Gives whether the item is new.
    pub(super) fn insert(&mut self, item: K) -> bool {
        let (at, offset) = self.place(|other| *other < item);
        let Some(block) = self.blocks.get_mut(at) else {
            self.blocks.push(vec![item]);
            self.firsts.push(item);
            self.len = 1;
            return true;
        };
        // An item that begins a block stands behind all of the block before.
        let next = self.firsts.get(at + 1).filter(|_| offset == block.len());
        if block.get(offset).or(next) == Some(&item) {
            return false;
        }
        if block.len() == block.capacity() {
            block.reserve_exact(block.len().max(4).min(FULL + 1 - block.len()));
        }
        block.insert(offset, item);
        self.len += 1;
        self.firsts[at] = block[0];
        if block.len() > FULL {
            // Behind the last one of all, which is where the latest items go, nothing will come in between.
            let kept = if offset + 1 == block.len() { FULL } else { FULL / 2 };
            let rest = block.split_off(kept);
            self.firsts.insert(at + 1, rest[0]);
            self.blocks.insert(at + 1, rest);
        }
        true
    }

    /// Gives whether the item was there.
    pub(super) fn remove(&mut self, item: K) -> bool {
        let (at, offset) = self.place(|other| *other < item);
        let (at, offset) = match self.blocks.get(at) {
            Some(block) if offset == block.len() => (at + 1, 0),
            Some(_) | None => (at, offset),
        };
        let Some(block) = self.blocks.get_mut(at).filter(|block| block.get(offset) == Some(&item)) else {
            return false;
        };
        block.remove(offset);
        self.len -= 1;
        let len = block.len();
        if len == 0 {
            self.blocks.remove(at);
            self.firsts.remove(at);
            return true;
        }
        self.firsts[at] = block[0];
        if self.blocks.get(at + 1).is_some_and(|next| len + next.len() <= SMALL) {
            let next = self.blocks.remove(at + 1);
            self.firsts.remove(at + 1);
            self.blocks[at].extend(next);
        }
        true
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// How many items come first, given of which items that is true: all up to some item, and none behind it.
    pub(super) fn rank(&self, is_before: impl Fn(&K) -> bool) -> usize {
        let (at, offset) = self.place(is_before);
        self.blocks[..at].iter().map(Vec::len).sum::<usize>() + offset
    }

    /// All items in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = K> {
        self.blocks.iter().flatten().copied()
    }

    /// The items that do not come first, in order; `is_before` is as for [`Ranked::rank`].
    pub(super) fn behind(&self, is_before: impl Fn(&K) -> bool) -> impl Iterator<Item = K> {
        let (at, offset) = self.place(is_before);
        let block = self.blocks.get(at).map_or(&[][..], |block| &block[offset..]);
        let rest = self.blocks.get(at + 1..).unwrap_or_default();
        block.iter().chain(rest.iter().flatten()).copied()
    }

    /// The items that come first, last one first; `is_before` is as for [`Ranked::rank`].
    pub(super) fn before(&self, is_before: impl Fn(&K) -> bool) -> impl Iterator<Item = K> {
        let (at, offset) = self.place(is_before);
        let block = self.blocks.get(at).map_or(&[][..], |block| &block[..offset]);
        block.iter().rev().chain(self.blocks[..at].iter().rev().flat_map(|block| block.iter().rev())).copied()
    }

    pub(super) fn first(&self) -> Option<K> {
        self.firsts.first().copied()
    }

    pub(super) fn last(&self) -> Option<K> {
        self.blocks.last().and_then(|block| block.last()).copied()
    }

    /// The block and the place in it where those that come first end. It may be the end of a block.
    fn place(&self, is_before: impl Fn(&K) -> bool) -> (usize, usize) {
        let at = self.firsts.partition_point(&is_before).saturating_sub(1);
        (at, self.blocks.get(at).map_or(0, |block| block.partition_point(is_before)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_ranked_set_is_a_set_that_tells_positions(
            start in proptest::collection::vec(0u16..200, 0..60),
            steps in proptest::collection::vec((any::<bool>(), 0u16..200), 0..200),
        ) {
            let mut plain: BTreeSet<u16> = start.iter().copied().collect();
            let mut ranked = Ranked::of(start);
            for (is_new, item) in steps {
                if is_new {
                    prop_assert_eq!(ranked.insert(item), plain.insert(item));
                } else {
                    prop_assert_eq!(ranked.remove(item), plain.remove(&item));
                }
                prop_assert!(ranked.iter().eq(plain.iter().copied()));
                prop_assert_eq!(ranked.rank(|other| *other < item), plain.range(..item).count());
                prop_assert_eq!(ranked.rank(|other| *other <= item), plain.range(..=item).count());
                prop_assert!(ranked.behind(|other| *other < item).eq(plain.range(item..).copied()));
                prop_assert!(ranked.before(|other| *other < item).eq(plain.range(..item).rev().copied()));
                prop_assert_eq!(ranked.len(), plain.len());
                prop_assert_eq!((ranked.first(), ranked.last()), (plain.first().copied(), plain.last().copied()));
                prop_assert!(ranked.blocks.iter().all(|block| block.capacity() <= FULL + 1), "{ranked:?}");
            }
            let all: Vec<_> = plain.into_iter().collect();
            for item in &all {
                assert!(ranked.remove(*item));
            }
            prop_assert_eq!((ranked.len(), ranked.blocks.len(), ranked.firsts.len()), (0, 0, 0));
        }
    }

    #[test]
    fn what_comes_in_order_fills_its_blocks_and_what_is_left_of_many_is_put_together() {
        let mut ranked = Ranked::of(Vec::new());
        let end = u16::try_from(8 * FULL).unwrap();
        (0..end).for_each(|item| assert!(ranked.insert(item)));
        assert!(ranked.blocks.iter().all(|block| block.len() == FULL), "{ranked:?}");
        for item in (0..end).rev().filter(|item| item % 8 != 0) {
            assert!(ranked.remove(item));
        }
        assert!(ranked.iter().eq((0..end).step_by(8)));
        assert!(ranked.blocks.len() <= 4, "{ranked:?}");
        // In the middle, half of a full block is left free on both sides.
        let mut ranked = Ranked::of((0..6).map(|item| item * 10).collect());
        (1..4).for_each(|item| assert!(ranked.insert(item)));
        assert!(ranked.blocks.iter().map(Vec::len).eq([FULL / 2, FULL / 2 + 1]), "{ranked:?}");
        assert_eq!(Ranked::of((0..end).collect()).blocks.len(), usize::from(end).div_ceil(FULL / 4 * 3));
    }

    #[test]
    fn blocks_are_joined_only_when_both_together_are_small() {
        let lengths = |ranked: &Ranked<usize>| ranked.blocks.iter().map(Vec::len).collect::<Vec<_>>();
        for (behind, expected) in [(SMALL, vec![1, SMALL]), (SMALL - 1, vec![SMALL])] {
            let each = FULL / 4 * 3;
            let mut ranked = Ranked::of((0..2 * each).collect());
            (each + behind..2 * each).for_each(|item| assert!(ranked.remove(item)));
            (1..each).for_each(|item| assert!(ranked.remove(item)));
            assert_eq!(lengths(&ranked), expected);
        }
    }

    #[test]
    fn a_block_that_fills_grows_a_few_times_only() {
        let mut ranked = Ranked::default();
        let mut capacities = BTreeSet::new();
        for item in 0..FULL {
            ranked.insert(item);
            capacities.insert(ranked.blocks[0].capacity());
        }
        assert!(capacities.len() <= 3, "{capacities:?}");
    }
}
