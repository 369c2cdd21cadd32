//! The texts between the stars of patterns with several: the parts of all of them are searched
//! for in a name at once.
//!
//! The parts are a tree of bytes. Going over a name, the search is at the node of the longest
//! text that begins a part and ends here; where no part goes on with the next byte, it falls
//! back to the node of the next shorter one (the automaton of Aho and Corasick). So it tries no
//! part by itself, however many there are. A pattern waits for one part at a time, and its
//! leftmost place leaves the most room for the parts behind it.

use std::collections::VecDeque;

use hashbrown::HashMap;

use crate::collections::footprint::allocated;
use crate::message::id::NameHasher;

/// The parts of patterns.
#[derive(Debug, Clone, Default)]
pub struct Parts {
    /// The node behind a node and a byte.
    behind: HashMap<(u32, u8), u32, NameHasher>,
    nodes: Vec<Node>,
    /// How many different parts there are.
    parts: u32,
    /// The length of all that was added.
    len: usize,
    /// The numbers of the parts of each pattern, in their order.
    sequences: Vec<Box<[u32]>>,
}

/// A beginning of a part. The first node is that of no bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Node {
    len: u32,
    /// The node before it.
    before: u32,
    /// Its last byte.
    byte: u8,
    /// The node of its longest end that begins a part.
    fallback: u32,
    /// The node of the longest shorter part that ends here too; 0 for none.
    shorter: u32,
    /// The number of the part that this is.
    part: Option<u32>,
}

/// A pattern whose text before the first star and behind the last one a name has.
#[derive(Debug, Clone, Copy)]
pub struct Candidate {
    /// Its place in the order in which patterns hold.
    pub order: usize,
    /// The number of its sequence of parts.
    pub sequence: usize,
    /// How many of its parts are found.
    pub found: usize,
    /// Where in the name its next part may begin.
    pub from: usize,
    /// Where in the name its parts must have ended.
    pub until: usize,
}

impl Parts {
    /// Adds the parts of a text between stars, and returns the number of their sequence. `None`
    /// if there are none. [`Parts::link`] must follow. O(length of the text).
    pub fn add(&mut self, between: &[u8]) -> Option<usize> {
        self.len += between.len();
        let parts = between.split(|byte| *byte == b'*');
        let parts = parts.filter(|part| !part.is_empty());
        let sequence: Box<[u32]> = parts.map(|part| self.add_part(part)).collect();
        (!sequence.is_empty()).then(|| {
            self.sequences.push(sequence);
            self.sequences.len() - 1
        })
    }

    /// The length of all that was added.
    pub fn len(&self) -> usize {
        self.len
    }

    fn add_part(&mut self, part: &[u8]) -> u32 {
        if self.nodes.is_empty() {
            self.nodes.push(Node::default());
        }
        let mut at = 0;
        for byte in part {
            let next = self.nodes.len() as u32;
            let behind = *self.behind.entry((at, *byte)).or_insert(next);
            if behind == next {
                self.nodes.push(Node {
                    len: self.node(at).len + 1,
                    before: at,
                    byte: *byte,
                    ..Node::default()
                });
            }
            at = behind;
        }
        let next = self.parts;
        let node = self.nodes.get_mut(at as usize);
        let part = node.map_or(next, |node| *node.part.get_or_insert(next));
        self.parts = self.parts.max(part + 1);
        part
    }

    /// Finds where each node falls back to. O(length of all parts).
    pub fn link(&mut self) {
        let mut numbers: Vec<u32> = (1..self.nodes.len() as u32).collect();
        numbers.sort_by_key(|number| self.node(*number).len);
        for number in numbers {
            let node = self.node(number);
            let fallback = match node.before {
                0 => 0,
                before => self.next(self.node(before).fallback, node.byte, &mut 0),
            };
            let back = self.node(fallback);
            if let Some(node) = self.nodes.get_mut(number as usize) {
                node.fallback = fallback;
                node.shorter = if back.part.is_some() {
                    fallback
                } else {
                    back.shorter
                };
            }
        }
    }

    fn node(&self, number: u32) -> Node {
        self.nodes.get(number as usize).copied().unwrap_or_default()
    }

    /// The node behind a node and a byte, fallen back as far as it takes.
    fn next(&self, mut at: u32, byte: u8, steps: &mut usize) -> u32 {
        loop {
            *steps += 1;
            match self.behind.get(&(at, byte)) {
                Some(next) => return *next,
                None if at == 0 => return 0,
                None => at = self.node(at).fallback,
            }
        }
    }

    /// The first candidate in the order of patterns whose parts are in the name: the parts in
    /// their order, and none over another. The candidates come in the order of `from`. Adds the
    /// number of its steps to `steps`. O(candidates + length of the name, times the number of parts
    /// that end in each other, + parts that are found).
    pub fn first(
        &self,
        name: &[u8],
        candidates: impl Iterator<Item = Candidate>,
        steps: &mut usize,
    ) -> Option<usize> {
        let mut candidates = candidates.peekable();
        // Those that wait for each part, in the order of `from`.
        let mut waiting = vec![VecDeque::new(); self.parts as usize];
        let mut best = None;
        let mut at = 0;
        for (begin, byte) in name.iter().enumerate() {
            while let Some(candidate) = candidates.next_if(|next| next.from <= begin) {
                *steps += 1;
                self.wait(&mut waiting, candidate);
            }
            at = self.next(at, *byte, steps);
            let (end, mut ending) = (begin + 1, at);
            while ending != 0 {
                *steps += 1;
                let node = self.node(ending);
                let begins = end - node.len as usize;
                while let Some(mut one) = first_waiting(&mut waiting, node.part, begins) {
                    *steps += 1;
                    (one.from, one.found) = (end, one.found + 1);
                    if !self.wait(&mut waiting, one) && end <= one.until {
                        best = best.into_iter().chain([one.order]).min();
                    }
                }
                ending = node.shorter;
            }
        }
        best
    }

    /// Lets a candidate wait for its next part. Returns false if there is none.
    fn wait(&self, waiting: &mut [VecDeque<Candidate>], one: Candidate) -> bool {
        let sequence = self.sequences.get(one.sequence);
        let part = sequence.and_then(|sequence| sequence.get(one.found));
        let waits = part.and_then(|part| waiting.get_mut(*part as usize));
        waits.map(|waits| waits.push_back(one)).is_some()
    }

    /// Bytes allocated, an estimate. O(patterns).
    pub fn memory_bytes(&self) -> usize {
        let sequences = self.sequences.iter();
        allocated(self.behind.allocation_size())
            + allocated(self.nodes.capacity() * size_of::<Node>())
            + allocated(self.sequences.capacity() * size_of::<Box<[u32]>>())
            + sequences
                .map(|parts| allocated(size_of_val(&**parts)))
                .sum::<usize>()
    }
}

/// Takes the first candidate that waits for a part, if the part may begin here.
fn first_waiting(
    waiting: &mut [VecDeque<Candidate>],
    part: Option<u32>,
    begins: usize,
) -> Option<Candidate> {
    let waits = waiting.get_mut(part? as usize)?;
    match waits.front()?.from <= begins {
        true => waits.pop_front(),
        false => None,
    }
}
