//! Keeps watch over all queues of a server, in steps of bounded size: however many
//! queues there are, a step asks for few of them.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Bound;
use std::time::{Duration, Instant};

use super::family;
use super::history::{History, Rates, KEPT};
use super::keys::{self, Scan};
use super::queue::Queue;
use super::trouble::{self, Trouble};
use crate::failure::Failure;
use crate::server::Server;

/// Time between two scans of all keys for new queues.
const SEARCH: Duration = Duration::from_secs(5);

/// Maximum time of a scan before the next figures are shown.
const SEARCH_SLICE: Duration = Duration::from_millis(100);

/// Maximum number of queues that one step asks for, beside those that somebody looks at.
const BUDGET: usize = 1000;

/// Maximum number of samples that are kept of all queues together. Each takes about 110
/// bytes.
const POINTS: usize = 100_000;

/// Asks the server for the figures of its queues.
pub struct Watch {
    names: Vec<Vec<u8>>,
    /// `None` if the user has named the queues.
    scan: Option<Scan>,
    pattern: Option<Vec<u8>>,
    searched: Option<Instant>,
    /// The place in `names` where the next step begins.
    next: usize,
    /// Whether any queue could be read.
    any: bool,
}

/// The changes that one step has brought.
#[derive(Debug, Clone)]
pub struct Round {
    /// When the figures were read.
    pub at: Instant,
    /// New figures of some of the queues.
    pub fresh: Vec<Queue>,
    /// Queues that are gone, or that the user may not see any more.
    pub gone: Vec<Vec<u8>>,
    /// The number of queues whose names are known.
    pub names: usize,
    /// Whether all keys have been scanned yet.
    pub complete: bool,
}

impl Watch {
    /// Watches the queues of these names, or if there are none, all whose names match.
    pub fn new(names: Vec<Vec<u8>>, pattern: Option<Vec<u8>>) -> Watch {
        Watch {
            scan: names.is_empty().then(Scan::default),
            names,
            pattern,
            searched: None,
            next: 0,
            any: false,
        }
    }

    /// Watches the queues that the command line names: some queues, one pattern, or all.
    pub fn of(given: &[String], pattern: Option<&str>) -> Result<Watch, Failure> {
        let (names, pattern) = keys::chosen(given, pattern)?;
        Ok(Watch::new(names, pattern))
    }

    /// Begins the scan anew, after the connection was lost: half a scan of one server is
    /// of no use on the next one.
    pub fn restart(&mut self) {
        self.scan = self.scan.take().map(|_| Scan::default());
    }

    /// Continues the scan for queues. Asks for the figures of those that are `seen` by
    /// somebody now, and of the next of all others.
    pub fn step(&mut self, server: &mut Server, seen: &[Vec<u8>]) -> Result<Round, Failure> {
        let mut gone = Vec::new();
        let complete = self.search(server, &mut gone)?;
        let mut asked: Vec<Vec<u8>> = Vec::new();
        let mut once: HashSet<&[u8]> = HashSet::new();
        for name in seen {
            if self.names.binary_search(name).is_ok() && once.insert(name) {
                asked.push(name.clone());
            }
        }
        for _ in 0..self.names.len().min(BUDGET) {
            self.next = (self.next + 1) % self.names.len();
            let Some(name) = self.names.get(self.next) else {
                break;
            };
            if once.insert(name) {
                asked.push(name.clone());
            }
        }
        let replies = keys::infos(server, &asked)?;
        let mut fresh = Vec::with_capacity(asked.len());
        let mut forbidden = None;
        for (name, reply) in asked.into_iter().zip(replies) {
            match reply {
                Ok(info) => fresh.push(Queue::of(&name, info)?),
                Err(failure) if failure.is_forbidden() => {
                    forbidden = Some(failure);
                    gone.push(name);
                }
                Err(failure) if failure.is_about_key() => gone.push(name),
                // An error such as LOADING: the queues are still there.
                Err(failure) => return Err(failure),
            }
        }
        self.any |= !fresh.is_empty();
        match forbidden {
            // SCAN also finds queues that the user has no right to read. It is an error
            // only if there is no other.
            Some(failure) if !self.any => Err(failure),
            _ => Ok(Round {
                at: Instant::now(),
                fresh,
                gone,
                names: self.names.len(),
                complete,
            }),
        }
    }

    /// Continues the scan for queues. Returns whether all keys have been scanned once.
    fn search(&mut self, server: &mut Server, gone: &mut Vec<Vec<u8>>) -> Result<bool, Failure> {
        let Some(scan) = &mut self.scan else {
            self.names.sort();
            return Ok(true);
        };
        if self.searched.is_some_and(|at| at.elapsed() < SEARCH) {
            return Ok(true);
        }
        match scan.step(server, self.pattern.as_deref(), SEARCH_SLICE)? {
            Some(names) => {
                let before = std::mem::replace(&mut self.names, names);
                let left = |name: &Vec<u8>| self.names.binary_search(name).is_err();
                gone.extend(before.into_iter().filter(left));
                self.searched = Some(Instant::now());
            }
            None => {
                self.names.extend_from_slice(scan.so_far());
                self.names.sort();
                self.names.dedup();
            }
        }
        Ok(self.searched.is_some())
    }
}

/// The last figures of all queues, and their last samples.
#[derive(Debug, Default)]
pub struct Board {
    entries: BTreeMap<Vec<u8>, Entry>,
    /// The sums of families that have at least two queues.
    families: BTreeMap<Vec<u8>, Entry>,
    /// Whether all keys have been scanned yet.
    pub complete: bool,
    /// Whether any figures have come.
    pub begun: bool,
}

/// The known facts about one queue, or about a family.
#[derive(Debug, Default)]
pub struct Entry {
    /// Its last figures, or their sums. The name of a family is that in lists.
    pub queue: Queue,
    /// Its last samples.
    pub history: History,
    /// The number of its queues: 1, or more for a family.
    pub parts: usize,
}

impl Entry {
    /// Returns the samples of this entry with newer figures.
    pub fn with(&self, queue: Queue) -> Entry {
        Entry {
            queue,
            history: self.history.clone(),
            parts: self.parts,
        }
    }

    /// Returns the rates of the last seconds, if they are known.
    pub fn rates(&self) -> Option<Rates> {
        self.history.rates()
    }
}

impl Board {
    /// Takes over the changes that a step has brought.
    pub fn take(&mut self, round: Round) {
        let kept = (POINTS / round.names.max(1)).clamp(10, KEPT);
        let names = round.fresh.iter().map(|queue| &queue.name);
        let families: BTreeSet<Vec<u8>> = names
            .chain(&round.gone)
            .filter_map(|name| family::of(name).map(<[u8]>::to_vec))
            .collect();
        for mut queue in round.fresh {
            // Cloned only when the queue is new.
            match self.entries.get_mut(&queue.name) {
                Some(entry) => {
                    // The trouble that was found out stays until the queue is looked at again.
                    if queue.trouble.is_empty() && trouble::may_have(&queue) {
                        queue.trouble = std::mem::take(&mut entry.queue.trouble);
                    }
                    entry.history.add(round.at, &queue, kept);
                    entry.queue = queue;
                }
                None => {
                    let mut history = History::default();
                    history.add(round.at, &queue, kept);
                    let entry = Entry {
                        queue,
                        history,
                        parts: 1,
                    };
                    self.entries.insert(entry.queue.name.clone(), entry);
                }
            }
        }
        for name in &round.gone {
            self.entries.remove(name);
        }
        for name in families {
            self.add_up(&name, round.at, kept);
        }
        self.complete = round.complete;
        self.begun = true;
    }

    /// Adds up the queues of a family. If their number has changed, the old sums cannot be
    /// compared with the new ones, so the samples are dropped.
    fn add_up(&mut self, family: &[u8], at: Instant, kept: usize) {
        let mut sum: Option<Queue> = None;
        let mut parts = 0;
        for entry in self.of_family(family) {
            parts += 1;
            match &mut sum {
                None => sum = Some(entry.queue.clone()),
                Some(sum) => sum.add(&entry.queue),
            }
        }
        let Some(mut queue) = sum.filter(|_| parts > 1) else {
            self.families.remove(family);
            return;
        };
        queue.name = family::shown(family);
        let entry = self.families.entry(family.to_vec()).or_default();
        if entry.parts != parts {
            *entry = Entry::default();
        }
        entry.history.add(at, &queue, kept);
        entry.queue = queue;
        entry.parts = parts;
    }

    /// Returns the queues of a family, by name.
    pub fn of_family<'a>(&'a self, family: &'a [u8]) -> impl Iterator<Item = &'a Entry> {
        let first = [family, b":{"].concat();
        self.entries
            .range(first.clone()..)
            .take_while(move |(name, _)| name.starts_with(&first))
            .filter(move |(name, _)| family::of(name) == Some(family))
            .map(|(_, entry)| entry)
    }

    /// Returns the sum of a family, if it has at least two queues.
    pub fn family(&self, family: &[u8]) -> Option<&Entry> {
        self.families.get(family)
    }

    /// Returns the known facts about the queue of this name.
    pub fn get(&self, name: &[u8]) -> Option<&Entry> {
        self.entries.get(name)
    }

    /// Returns up to `most` queues in which trouble may be found out, those after a name first.
    pub fn suspects(&self, after: &[u8], most: usize) -> Vec<Queue> {
        let next = self
            .entries
            .range((Bound::Excluded(after.to_vec()), Bound::Unbounded));
        let all = next.chain(self.entries.range(..=after.to_vec()));
        let suspects = all
            .map(|(_, entry)| &entry.queue)
            .filter(|queue| trouble::may_have(queue));
        suspects.take(most).cloned().collect()
    }

    /// Returns up to `most` queues that have records of finished messages, those after a name.
    pub fn finishers(&self, after: &[u8], most: usize) -> Vec<Queue> {
        let next = self
            .entries
            .range((Bound::Excluded(after.to_vec()), Bound::Unbounded));
        let queues = next.map(|(_, entry)| &entry.queue);
        let have = queues.filter(|queue| queue.count("finished") > 0);
        have.take(most).cloned().collect()
    }

    /// Notes the trouble that was found out.
    pub fn note(&mut self, name: &[u8], found: Vec<Trouble>) {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.queue.trouble.retain(|known| known.age.is_none());
            entry.queue.trouble.extend(found);
        }
    }

    /// Returns all queues, by name.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// Returns the number of queues.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(fresh: &[&str], gone: &[&str], names: usize) -> Round {
        let queue = |name: &&str| Queue {
            name: name.as_bytes().to_vec(),
            ..Queue::default()
        };
        Round {
            at: Instant::now(),
            fresh: fresh.iter().map(queue).collect(),
            gone: gone.iter().map(|name| name.as_bytes().to_vec()).collect(),
            names,
            complete: true,
        }
    }

    #[test]
    fn figures_stay_until_their_queue_is_gone() {
        let mut board = Board::default();
        assert!(!board.begun);
        board.take(round(&["b", "a"], &[], 3));
        board.take(round(&["c"], &[], 3));
        let names: Vec<_> = board.entries().map(|e| e.queue.name.clone()).collect();
        assert_eq!(names, [b"a", b"b", b"c"]);
        board.take(round(&[], &["b"], 2));
        assert!(board.get(b"b").is_none());
        assert_eq!(board.len(), 2);
    }

    #[test]
    fn with_many_queues_fewer_samples_are_kept() {
        for (queues, kept) in [(1, KEPT), (5_000, 20), (10_000, 10), (1_000_000, 10)] {
            let mut board = Board::default();
            for _ in 0..KEPT + 1 {
                board.take(round(&["a"], &[], queues));
            }
            assert_eq!(board.get(b"a").unwrap().history.len(), kept);
        }
    }

    #[test]
    fn a_family_is_added_up_and_begins_anew_with_other_queues() {
        let mut board = Board::default();
        board.take(round(&["f:{0}", "f:{1}", "f:{1}x", "f"], &[], 4));
        board.take(round(&["f:{0}", "f:{1}"], &[], 4));
        let lines = |board: &Board| {
            let sum = board.family(b"f");
            sum.map(|sum| (sum.parts, sum.history.len()))
        };
        assert_eq!(lines(&board), Some((2, 2)));
        assert_eq!(board.family(b"f").unwrap().queue.name, b"f:{*}");
        board.take(round(&["f:{2}"], &[], 5));
        assert_eq!(lines(&board), Some((3, 1)));
        board.take(round(&[], &["f:{0}", "f:{2}"], 3));
        assert_eq!(lines(&board), None);
    }
}
