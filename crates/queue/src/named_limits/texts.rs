//! Texts in their order, and which of them begin another one.

use crate::collections::footprint::allocated;

/// A forest in which each tree stands behind its root, with a search towards the roots.
#[derive(Debug, Clone, Default)]
pub struct Forest {
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    parent: Option<usize>,
    /// A node further up, or the node itself if it is a root.
    jump: usize,
    depth: usize,
}

impl Forest {
    /// Adds a node below one that is there, or a root. O(1).
    pub fn push(&mut self, parent: Option<usize>) {
        let number = self.nodes.len();
        let above = parent.and_then(|parent| Some((parent, *self.nodes.get(parent)?)));
        let (jump, depth) = above.map_or((number, 0), |(parent, above)| {
            let depth = |at: usize| self.nodes.get(at).map_or(0, |node| node.depth);
            let first = self.nodes.get(above.jump).map_or(parent, |node| node.jump);
            // Two jumps of one length become one of twice that and a step (the numbers of a skew
            // binary system), so a search takes O(log depth).
            let is_long = above.depth - depth(above.jump) == depth(above.jump) - depth(first);
            let jump = if is_long { first } else { parent };
            (jump, above.depth + 1)
        });
        self.nodes.push(Node {
            parent,
            jump,
            depth,
        });
    }

    /// The node above.
    pub fn parent(&self, number: usize) -> Option<usize> {
        self.nodes.get(number)?.parent
    }

    /// The first node for which `holds`, from one upwards. It must hold for all above that.
    /// O(log depth).
    pub fn nearest(&self, from: usize, holds: impl Fn(usize) -> bool) -> Option<usize> {
        let mut at = from;
        while !holds(at) {
            let node = self.nodes.get(at)?;
            let parent = node.parent?;
            at = if holds(node.jump) { parent } else { node.jump };
        }
        Some(at)
    }

    /// How many nodes the longest way to a root has. O(n).
    pub fn deepest(&self) -> usize {
        self.nodes
            .iter()
            .map(|node| node.depth + 1)
            .max()
            .unwrap_or(0)
    }

    /// Bytes allocated.
    pub fn memory_bytes(&self) -> usize {
        allocated(self.nodes.capacity() * size_of::<Node>())
    }
}

/// Different texts in their order. The texts with which another one begins stand before it, and
/// all that begin with a text stand directly behind it.
#[derive(Debug, Clone, Default)]
pub struct Texts {
    texts: Vec<Box<[u8]>>,
    /// Each text below the longest other one with which it begins.
    forest: Forest,
    /// For each text, the first one behind it that does not begin with it.
    ends: Vec<usize>,
}

impl Texts {
    /// Puts texts in their order. O(n log n).
    pub fn new(texts: impl Iterator<Item = Box<[u8]>>) -> Texts {
        let mut texts: Vec<Box<[u8]>> = texts.collect();
        texts.sort_unstable();
        texts.dedup();
        let mut forest = Forest::default();
        let mut ends = vec![texts.len(); texts.len()];
        // The texts with which the one before begins, the shortest first.
        let mut open: Vec<(usize, &[u8])> = Vec::new();
        for (number, text) in texts.iter().enumerate() {
            while let Some((over, _)) = open.pop_if(|(_, before)| !text.starts_with(before)) {
                if let Some(end) = ends.get_mut(over) {
                    *end = number;
                }
            }
            forest.push(open.last().map(|(before, _)| *before));
            open.push((number, text));
        }
        Texts {
            texts,
            forest,
            ends,
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// The length of a text.
    pub fn len_of(&self, number: usize) -> usize {
        self.texts.get(number).map_or(0, |text| text.len())
    }

    /// A text.
    pub fn text(&self, number: usize) -> &[u8] {
        self.texts.get(number).map_or(&[], |text| text)
    }

    /// The most texts of which each begins the next one.
    pub fn deepest(&self) -> usize {
        self.forest.deepest()
    }

    /// The number of a text. O(log n).
    pub fn number(&self, text: &[u8]) -> Option<usize> {
        self.texts
            .binary_search_by(|other| (**other).cmp(text))
            .ok()
    }

    /// The longest text with which `whole` begins. O(length of `whole`, log n).
    pub fn longest_in(&self, whole: &[u8]) -> Option<usize> {
        let behind = self.texts.partition_point(|text| **text <= *whole);
        let before = behind.checked_sub(1)?;
        let common = |text: &[u8]| text.iter().zip(whole).take_while(|(a, b)| a == b).count();
        let common = common(self.texts.get(before)?);
        // The text before begins with each of those above it, so the length tells whether `whole`
        // does.
        self.forest
            .nearest(before, |number| self.len_of(number) <= common)
    }

    /// The longest other text with which this one begins.
    pub fn shorter(&self, number: usize) -> Option<usize> {
        self.forest.parent(number)
    }

    /// Whether the other text is this one or begins with it.
    pub fn begins(&self, number: usize, other: usize) -> bool {
        let end = self.ends.get(number).copied().unwrap_or(0);
        (number..end).contains(&other)
    }

    /// Bytes allocated, an estimate. O(n).
    pub fn memory_bytes(&self) -> usize {
        let texts = self.texts.iter().map(|text| allocated(text.len()));
        allocated(self.texts.capacity() * size_of::<Box<[u8]>>())
            + allocated(self.ends.capacity() * size_of::<usize>())
            + self.forest.memory_bytes()
            + texts.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_longest_text_that_begins_another_is_found(
            texts in vec("[ab]{0,9}", 0..40),
            whole in "[ab]{0,12}",
        ) {
            let index = Texts::new(texts.iter().map(|text| text.as_bytes().into()));
            let expected = texts.iter().filter(|text| whole.starts_with(*text));
            let found = index.longest_in(whole.as_bytes());
            prop_assert_eq!(
                found.map(|number| index.len_of(number)),
                expected.map(|text| text.len()).max()
            );
        }

        #[test]
        fn a_search_upwards_takes_few_steps(parents in vec(any::<prop::sample::Index>(), 1..2000), near in 0..4usize) {
            let mut forest = Forest::default();
            forest.push(None);
            for (number, parent) in parents.iter().enumerate() {
                // Parents that are near make the trees deep.
                forest.push(Some(match near {
                    0 => parent.index(number + 1),
                    near => number.saturating_sub(parent.index(near)),
                }));
            }
            let steps = std::cell::Cell::new(0);
            let last = parents.len();
            for most in [0, last / 3, last] {
                steps.set(0);
                let found = forest.nearest(last, |number| {
                    steps.set(steps.get() + 1);
                    number <= most
                });
                let mut expected = last;
                while expected > most {
                    expected = forest.parent(expected).unwrap();
                }
                prop_assert_eq!(found, Some(expected));
                prop_assert!(steps.get() <= 80, "{} steps", steps.get());
            }
        }
    }
}
