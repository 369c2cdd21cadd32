//! The list of queues, in which the queues of a family are one line.

use std::cmp::Reverse;

use clap::ValueEnum;

use super::change::Target;
use super::family;
use super::queue::Queue;
use super::watch::{Board, Entry};

/// The order of the lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// Overdue or stuck for long first, then dead messages, then those that are blocked
    #[default]
    Trouble,
    /// By name
    Name,
    /// Overdue for longest first
    Oldest,
    /// Most ready and running messages first
    Load,
    /// Most dead messages first
    Dead,
}

impl Sort {
    /// Returns the next order. The first one follows the last one.
    pub fn next(self) -> Sort {
        let all = Sort::value_variants();
        all[(self as usize + 1) % all.len()]
    }

    /// Returns the order of this word.
    pub fn of(word: &str) -> Option<Sort> {
        let mut all = Sort::value_variants().iter().copied();
        all.find(|sort| sort.word() == word)
    }

    /// Returns the words for it.
    pub fn word(self) -> &'static str {
        match self {
            Sort::Trouble => "trouble",
            Sort::Name => "name",
            Sort::Oldest => "oldest",
            Sort::Load => "ready + running",
            Sort::Dead => "dead",
        }
    }

    /// Returns the numbers by which queues are sorted.
    fn weight(self, queue: &Queue) -> [u64; 3] {
        let [dead, blocked] = ["dead", "blocked"].map(|state| queue.count(state));
        match self {
            Sort::Trouble => [overdue_step(queue.needy()), dead, blocked],
            Sort::Name => [0; 3],
            Sort::Oldest => [queue.overdue().map_or(0, |age| age + 1), 0, 0],
            Sort::Load => [queue.count("ready") + queue.count("running"), 0, 0],
            Sort::Dead => [dead, 0, 0],
        }
    }

    /// Sorts queues. Equal ones stay in their order.
    pub fn sort<T>(self, rows: &mut [T], queue: impl Fn(&T) -> &Queue) {
        if self != Sort::Name {
            rows.sort_by_key(|row| Reverse(self.weight(queue(row))));
        }
    }
}

/// Returns how long something is overdue in steps that double, from a minute on. Less is no
/// trouble, and so the lines of busy queues do not change places all the time.
fn overdue_step(age: Option<u64>) -> u64 {
    u64::from(u64::BITS - (age.unwrap_or(0) / 60_000).leading_zeros())
}

/// A line of the list: a queue, or a family of at least two.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    /// Its figures, or their sums.
    pub entry: &'a Entry,
    /// The name of the family, if it is one.
    pub family: Option<&'a [u8]>,
}

impl Row<'_> {
    /// Returns the name in the list: that of the queue, or `mails:{*}`.
    pub fn name(&self) -> &[u8] {
        &self.entry.queue.name
    }

    /// Returns the target of a change of this line.
    pub fn target(&self) -> Target {
        match self.family {
            Some(family) => Target::Family(family.to_vec()),
            None => Target::Queue(self.name().to_vec()),
        }
    }
}

/// Returns the lines of the list. With a family, its queues are the lines.
pub fn rows<'a>(board: &'a Board, inside: Option<&'a [u8]>, sort: Sort) -> Vec<Row<'a>> {
    let single = |entry| Row {
        entry,
        family: None,
    };
    let mut rows: Vec<Row> = match inside {
        Some(family) => board.of_family(family).map(single).collect(),
        None => {
            let mut last = None;
            let line = |entry: &'a Entry| {
                let family = family::of(&entry.queue.name);
                let sum = family.and_then(|family| Some((family, board.family(family)?)));
                match sum {
                    None => Some(single(entry)),
                    // The queues of a family are neighbours in the list by name.
                    Some((family, _)) if last.replace(family) == Some(family) => None,
                    Some((family, entry)) => Some(Row {
                        entry,
                        family: Some(family),
                    }),
                }
            };
            board.entries().filter_map(line).collect()
        }
    };
    sort.sort(&mut rows, |row| &row.entry.queue);
    rows
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::model::trouble::Trouble;
    use crate::model::watch::Round;

    fn board(queues: &[(&str, u64)]) -> Board {
        let mut board = Board::default();
        let fresh = queues.iter().map(|(name, dead)| {
            let mut queue = Queue {
                name: name.as_bytes().to_vec(),
                ..Queue::default()
            };
            queue.counts[6] = *dead;
            queue
        });
        board.take(Round {
            at: Instant::now(),
            fresh: fresh.collect(),
            gone: Vec::new(),
            names: queues.len(),
            complete: true,
        });
        board
    }

    fn names(rows: &[Row]) -> Vec<String> {
        let name = |row: &Row| String::from_utf8_lossy(row.name()).into_owned();
        rows.iter().map(name).collect()
    }

    #[test]
    fn trouble_comes_first() {
        let queue = |name: &str, overdue: Option<u64>, dead, blocked| {
            let mut queue = Queue {
                name: name.as_bytes().to_vec(),
                oldest_due_age: overdue,
                ..Queue::default()
            };
            (queue.counts[6], queue.counts[2]) = (dead, blocked);
            queue
        };
        let mut queues = [
            queue("fine", None, 0, 0),
            queue("busy", Some(900), 0, 0),
            queue("held", None, 0, 5),
            queue("dead", Some(8000), 2, 0),
            queue("late", Some(90_000), 0, 3),
            queue("stuck", None, 0, 0),
        ];
        queues[5].trouble = vec![Trouble {
            code: "parked",
            words: String::new(),
            age: Some(9_000_000),
        }];
        Sort::Trouble.sort(&mut queues, |queue| queue);
        let names = queues.map(|queue| String::from_utf8(queue.name).unwrap());
        assert_eq!(names, ["stuck", "late", "dead", "held", "fine", "busy"]);
        assert_eq!(overdue_step(Some(59_999)), 0);
        assert!(overdue_step(Some(u64::MAX)) > overdue_step(Some(1 << 40)));
    }

    #[test]
    fn the_queues_of_a_family_are_one_line() {
        let board = board(&[
            ("a", 1),
            ("m:{0}", 2),
            ("m:{1}", 3),
            ("one:{0}", 9),
            ("z", 0),
        ]);
        let found = rows(&board, None, Sort::Name);
        assert_eq!(names(&found), ["a", "m:{*}", "one:{0}", "z"]);
        let sum = found[1].entry;
        assert_eq!((sum.queue.count("dead"), sum.parts), (5, 2));
        assert_eq!(found[1].target(), Target::Family(b"m".to_vec()));
        assert_eq!(
            names(&rows(&board, None, Sort::Dead)),
            ["one:{0}", "m:{*}", "a", "z"]
        );
        assert_eq!(
            names(&rows(&board, Some(b"m"), Sort::Name)),
            ["m:{0}", "m:{1}"]
        );
        assert!(rows(&board, Some(b"none"), Sort::Name).is_empty());
    }
}
