//! The batch of each message.

use crate::collections::footprint::allocated;
use crate::collections::number_table::NumberTable;
use crate::Seq;

/// Messages whose numbers differ only below this share an entry for each batch.
pub(super) const PAGE: u64 = 128;

/// The batch of each message, by the number of the message.
#[derive(Debug, Clone, Default)]
pub struct Members {
    /// For each page of numbers, the batches of its messages, with a bit for each
    /// message.
    pages: NumberTable<Vec<(Seq, u128)>>,
    /// The number of these pages.
    len: usize,
    /// The bytes allocated for what the pages have.
    bytes: usize,
}

fn bit_of(seq: Seq) -> u128 {
    1 << (seq % PAGE)
}

/// The bytes allocated for the batches of a page.
fn bytes_of(batches: &Vec<(Seq, u128)>) -> usize {
    allocated(batches.capacity() * size_of::<(Seq, u128)>())
}

impl Members {
    /// Adds a message that is in no batch to a batch. O(batches of the page).
    pub fn insert(&mut self, seq: Seq, batch: Seq) {
        let page = seq / PAGE;
        if self.pages.get(page).is_none() {
            let batches = Vec::with_capacity(1);
            self.bytes += bytes_of(&batches);
            self.pages.insert(page, batches);
            self.len += 1;
        }
        let Some(batches) = self.pages.get_mut(page) else {
            return;
        };
        match batches.iter_mut().find(|(number, _)| *number == batch) {
            Some((_, bits)) => *bits |= bit_of(seq),
            None => {
                let before = bytes_of(batches);
                batches.reserve_exact(1);
                batches.push((batch, bit_of(seq)));
                self.bytes = self.bytes + bytes_of(batches) - before;
            }
        }
    }

    /// The batch that a message is in. O(batches of the page).
    pub fn batch_of(&self, seq: Seq) -> Option<Seq> {
        let batches = self.pages.get(seq / PAGE)?;
        let own = batches.iter().find(|(_, bits)| bits & bit_of(seq) != 0);
        own.map(|(batch, _)| *batch)
    }

    /// Removes a message from its batch. Returns the batch, if it was in one.
    pub fn remove(&mut self, seq: Seq) -> Option<Seq> {
        let page = seq / PAGE;
        let batches = self.pages.get_mut(page)?;
        let at = batches
            .iter()
            .position(|(_, bits)| bits & bit_of(seq) != 0)?;
        let (batch, bits) = batches.get_mut(at)?;
        let batch = *batch;
        *bits &= !bit_of(seq);
        if *bits == 0 {
            batches.swap_remove(at);
        }
        if batches.is_empty() {
            self.bytes -= bytes_of(batches);
            self.pages.remove(page);
            self.len -= 1;
        }
        Some(batch)
    }

    /// All messages that are in a batch, by number. O(n log n).
    pub fn all(&self) -> Vec<(Seq, Seq)> {
        let mut all = Vec::new();
        for (page, batches) in self.pages.iter() {
            for (batch, bits) in batches {
                let seqs = (0..PAGE).filter(|bit| bits >> bit & 1 == 1);
                all.extend(seqs.map(|bit| (page * PAGE + bit, *batch)));
            }
        }
        all.sort_unstable();
        all
    }

    /// Up to `most` messages of these batches, from the number `from` on and before `end`,
    /// by number. Also returns the last number that was looked at, unless all were. It
    /// looks through `pages` pages at most. O(pages).
    pub fn range_of(
        &self,
        of: &[Seq],
        from: Seq,
        end: Seq,
        pages: u64,
        most: usize,
    ) -> (Option<Seq>, Vec<Seq>) {
        let mut found = Vec::new();
        let first = from / PAGE;
        for page in first.. {
            if page * PAGE >= end {
                break;
            }
            if page - first == pages {
                return (Some(page * PAGE - 1), found);
            }
            let batches = self.pages.get(page).into_iter().flatten();
            let bits = batches
                .filter(|(batch, _)| of.contains(batch))
                .fold(0, |all, (_, bits)| all | bits);
            let seqs = (0..PAGE).filter(|bit| bits >> bit & 1 == 1);
            for seq in seqs.map(|bit| page * PAGE + bit).filter(|seq| *seq >= from) {
                if found.len() == most {
                    return (found.last().copied(), found);
                }
                found.push(seq);
            }
        }
        (None, found)
    }

    /// Drops up to `limit` pages. Returns how many. Only for freeing everything in
    /// slices: it must not be used for anything else afterwards.
    pub fn drain_some(&mut self, limit: usize) -> usize {
        let count = (0..limit).map_while(|_| self.pages.pop()).count();
        self.len -= count;
        count
    }

    /// The number of pages. O(1).
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Bytes allocated, roughly. O(1).
    pub fn memory_bytes(&self) -> usize {
        self.pages.allocation_size() + self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_in_their_batches_until_they_leave() {
        let mut members = Members::default();
        let batch_of = |seq: Seq| if seq.is_multiple_of(3) { 1 } else { 2 };
        for seq in 100..400 {
            members.insert(seq, batch_of(seq));
        }
        assert_eq!(members.all().len(), 300);
        for seq in 100..400 {
            assert_eq!(members.batch_of(seq), Some(batch_of(seq)));
            assert_eq!(members.remove(seq), Some(batch_of(seq)));
            assert_eq!((members.batch_of(seq), members.remove(seq)), (None, None));
        }
        assert_eq!((members.pages.iter().count(), members.len), (0, 0));
    }

    #[test]
    fn a_range_of_batches_is_listed_piece_by_piece() {
        let mut members = Members::default();
        for seq in 1..1000 {
            members.insert(seq, seq % 4);
        }
        let mut all = Vec::new();
        let mut from = 1;
        loop {
            let (next, some) = members.range_of(&[1, 2], from, 1000, 2, 50);
            assert!(some.len() <= 50);
            all.extend(some);
            match next {
                Some(last) => from = last + 1,
                None => break,
            }
        }
        let expected: Vec<Seq> = (1..1000)
            .filter(|seq| [1, 2].contains(&(seq % 4)))
            .collect();
        assert_eq!(all, expected);
        assert_eq!(members.range_of(&[9], 1, 1000, 99, 50), (None, Vec::new()));
    }

    #[test]
    fn a_million_members_sent_one_after_the_other_take_less_than_two_bytes_each() {
        let mut members = Members::default();
        for seq in 1..=1_000_000 {
            members.insert(seq, 1);
        }
        assert!(members.memory_bytes() < 2_000_000);
    }
}
