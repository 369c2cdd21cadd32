//! The parts of a queue, for taking it down in writing and building it anew.
//!
//! Everything that can make a difference to anyone is in the parts, in an
//! order that depends on nothing but the operations that led to the queue. So
//! queues that were given the same operations have equal parts, and queues of
//! equal parts answer alike from then on. What the parts imply (every index
//! and most counts) is left out and made anew by the [`Builder`].

mod build;
mod check;
mod lists;
#[cfg(any(test, feature = "validate"))]
mod valid;

use super::Queue;
use crate::body::Content;
use crate::consumer::ConsumerIx;
use crate::group::{Group, GroupIx};
use crate::id::Id;
use crate::lease::{Batch, Leases};
use crate::limits::Invalid;
use crate::line::{Join, LineKey};
use crate::message::Message;
use crate::rate::RateWindow;
use crate::schedule::Schedule;
use crate::settings::{Clock, Settings};
use crate::stats::{Lateness, Totals};
use crate::{Millis, Receipt, Seq};

pub use build::{Builder, GroupPart};

/// A place in the line. Who joined when is told by rank, since the numbers
/// that operations give out need not be the same in two equal queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Priority of the message that would be given.
    pub priority: i8,
    /// When it joined.
    pub time: Millis,
    /// 0 where time did it; else commands by their order, from 1.
    pub rank: u64,
    /// The message that would have been given then.
    pub seq: Seq,
}

/// What a queue has once.
#[derive(Debug, Clone)]
pub struct Whole {
    /// Its options.
    pub settings: Settings,
    /// Whose time it follows.
    pub clock: Clock,
    /// The latest time it has acted at.
    pub last: Millis,
    /// The number of the next message.
    pub next_seq: Seq,
    /// The last receipt given out.
    pub last_receipt: Receipt,
    /// The salt of its ids.
    pub salt: u64,
    /// What it has done.
    pub totals: Totals,
    /// How late deliveries were.
    pub lateness: Lateness,
    /// What its RATE has to count.
    pub window: RateWindow,
    /// Until when it is paused; NEVER for without end.
    pub paused_until: Option<Millis>,
    /// When the dead messages that still are to be moved were redriven, and
    /// the rank of that command; zeros where there are none.
    pub redriven: (Millis, u64),
    /// Where the ungrouped messages stand.
    pub plain_line: Option<Standing>,
}

/// What a message is beyond its place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Marks {
    /// It was redriven and only waits to be moved.
    pub redriving: bool,
    /// It was purged and only counts in its group.
    pub purged: bool,
}

/// A consumer that counts as one: when it was last seen, and how many
/// messages it was given, acked and nacked.
pub type Known = (Millis, [u64; 3]);

/// What a message that runs has beside its receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// First receipt of the batch that it was delivered in.
    pub batch: Receipt,
    /// When its lease ends.
    pub until: Millis,
}

/// A message on its way into or out of a snapshot.
#[derive(Debug, Clone, Copy)]
pub struct Numbered<'a> {
    /// Its number.
    pub seq: Seq,
    /// The message.
    pub message: &'a Message,
    /// What it carries.
    pub content: Content<'a>,
    /// Its lease, if it was delivered.
    pub term: Option<Term>,
    /// What it is beyond its place.
    pub marks: Marks,
}

/// Whom a message names, by the numbers of parts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Names {
    /// Its group.
    pub group: Option<u64>,
    /// Who had its last delivery.
    pub consumer: Option<u64>,
}

/// A group on its way into a snapshot.
#[derive(Debug, Clone)]
pub struct GroupSeen<'a> {
    /// The group itself.
    pub group: &'a Group,
    /// Dead messages that hold it: their numbers, in order, and ids.
    pub held_by: Vec<(Seq, Id<'a>)>,
    /// Its place in the line, if it can give.
    pub line: Option<Standing>,
    /// Messages given in the present turn.
    pub turn: u64,
    /// When to look at it again though nothing happens to it.
    pub wake: Option<Millis>,
    /// Whether a purge took its place in the line, and nothing has been done to
    /// it since.
    pub displaced: bool,
}

/// A queue seen as its parts.
#[derive(Debug)]
pub struct Parts<'a> {
    queue: &'a Queue,
    /// The numbers of the commands by which anyone joined the line.
    tickets: Vec<u64>,
    /// Whether messages are in the store that were purged.
    has_purged: bool,
}

impl Queue {
    /// The queue as its parts. O(n log n) of the groups in line.
    pub fn parts(&self) -> Parts<'_> {
        let line = self.line.iter().map(|(key, ())| key).chain(self.plain_line);
        let redriving = &self.redriving;
        let redriven = (!redriving.left.is_empty()).then_some(redriving.join);
        let purged = (!self.remains.is_empty()).then_some(self.remains.join);
        let mut tickets: Vec<u64> = line
            .map(|key| key.join)
            .chain(redriven)
            .chain(purged)
            .map(|join| join.ticket)
            .filter(|ticket| *ticket > 0)
            .collect();
        tickets.sort_unstable();
        tickets.dedup();
        Parts {
            queue: self,
            tickets,
            has_purged: self.has_purged(),
        }
    }
}

impl Queue {
    /// The lease of a message, if it runs or only counts in its group.
    fn term_of(&self, message: &Message) -> Option<Term> {
        let receipt = message.receipt();
        if receipt == 0 {
            return None;
        }
        let of = |leases: &Leases| {
            Some(Term {
                until: leases.find(receipt)?.until,
                batch: leases.batch_of(receipt).first,
            })
        };
        of(&self.leases).or_else(|| of(&self.remains.leases))
    }
}

impl<'a> Parts<'a> {
    /// What it has once.
    pub fn whole(&self) -> Whole {
        let queue = self.queue;
        Whole {
            settings: queue.settings.clone(),
            clock: queue.clock,
            last: queue.last,
            next_seq: queue.next_seq,
            last_receipt: queue.last_receipt,
            salt: queue.ids.salt(),
            totals: queue.totals,
            lateness: queue.lateness.clone(),
            window: queue.window.clone(),
            paused_until: queue.paused_until,
            redriven: match queue.redriving.left.is_empty() {
                true => (0, 0),
                false => {
                    let join = queue.redriving.join;
                    (join.time, self.rank(join))
                }
            },
            plain_line: queue.plain_line.map(|key| self.standing(key)),
        }
    }

    /// The salt of the ids that it makes now.
    pub fn salt(&self) -> u64 {
        self.queue.ids.salt()
    }

    /// The salt of the id of a message.
    #[inline]
    pub fn salt_of(&self, seq: Seq) -> u64 {
        self.queue.ids.salt_of(seq)
    }

    /// Its messages and records, in the order of their numbers.
    pub fn messages(&self) -> impl Iterator<Item = Numbered<'a>> + 'a {
        let (queue, has_purged) = (self.queue, self.has_purged);
        let none_redriving = queue.redriving.left.is_empty();
        queue
            .store
            .iter()
            .map(move |(seq, message)| Numbered {
                seq,
                message,
                content: queue.store.content(message),
                term: queue.term_of(message),
                marks: Marks {
                    redriving: !none_redriving && queue.redriving.has(seq, message),
                    purged: has_purged && queue.is_remains(seq, message),
                },
            })
            .filter(move |numbered| {
                !has_purged || numbered.marks.purged || !queue.is_purged(numbered.seq)
            })
    }

    /// The group with this number.
    pub fn group(&self, ix: GroupIx) -> Option<GroupSeen<'a>> {
        let group = self.queue.groups.get(ix)?;
        let line = self.queue.stands(ix, group);
        let holds = group.holds(self.queue.groups.purges());
        let held_by = holds.iter().filter_map(|holder| {
            let id = self.queue.holder_id(holder)?;
            Some((holder.seq(), id))
        });
        Some(GroupSeen {
            group,
            held_by: held_by.collect(),
            line: line.map(|key| self.standing(key)),
            turn: match line == group.line(ix) {
                true => group.ext().turn,
                false => 0,
            },
            wake: self.queue.wake_of(group),
            displaced: group.is_displaced(self.queue.groups.purges()),
        })
    }

    /// The groups that have something to say though no message names them,
    /// and maybe others; by name.
    pub fn lasting_groups(&self) -> Vec<(GroupIx, &'a Group)> {
        let groups = self.queue.groups.starting_at(0);
        let mut lasting: Vec<(GroupIx, &Group)> = groups
            .filter_map(|(ix, group)| Some((ix, group?)))
            .filter(|(_, group)| {
                let ext = group.ext();
                ext.settings.is_some()
                    || ext.paused_until.is_some()
                    || !group.holds(self.queue.groups.purges()).is_empty()
            })
            .collect();
        lasting.sort_unstable_by(|a, b| a.1.name.cmp(&b.1.name));
        lasting
    }

    /// The name of a consumer.
    pub fn consumer(&self, ix: ConsumerIx) -> Option<&'a [u8]> {
        self.queue.consumers.name(ix)
    }

    /// Those who count as consumers, by name.
    pub fn consumers(&self) -> impl Iterator<Item = (&'a [u8], Known)> + 'a {
        let known = self.queue.consumers.known();
        known.into_iter().map(|consumer| {
            let counts = [consumer.delivered, consumer.acked, consumer.nacked];
            (&*consumer.name, (consumer.last_seen, counts))
        })
    }

    /// Its schedules, in the order of their creation.
    pub fn schedules(&self) -> Vec<(&'a [u8], &'a Schedule)> {
        let mut schedules: Vec<_> = self.queue.schedules.iter().collect();
        schedules.sort_unstable_by_key(|(_, schedule)| schedule.number);
        schedules
    }

    /// The ids that are taken though their messages are gone, and when those
    /// ended.
    pub fn dedup(&self) -> impl Iterator<Item = (&'a [u8], Millis)> + 'a {
        self.queue.records.dedup.entries()
    }

    /// When those were purged that still count in their groups, and the rank of
    /// that command; `None` where there are none.
    pub fn purged(&self) -> Option<(Millis, u64)> {
        let remains = &self.queue.remains;
        (!remains.is_empty()).then(|| (remains.join.time, self.rank(remains.join)))
    }

    /// The batches of more than one message of which some still run, or count
    /// in their group, in order.
    pub fn batches(&self) -> Vec<Batch> {
        let purged = self.queue.remains.leases.batches();
        let mut batches: Vec<Batch> = self.queue.leases.batches().chain(purged).collect();
        batches.sort_unstable();
        batches
    }

    /// A place in the line, told by rank.
    pub fn standing(&self, key: LineKey) -> Standing {
        Standing {
            priority: key.priority,
            time: key.join.time,
            rank: self.rank(key.join),
            seq: key.seq,
        }
    }

    fn rank(&self, join: Join) -> u64 {
        let before = |ticket: &u64| *ticket < join.ticket;
        match join.ticket {
            0 => 0,
            _ => self.tickets.partition_point(before) as u64 + 1,
        }
    }
}

impl Standing {
    fn key(self, group: GroupIx) -> LineKey {
        LineKey {
            priority: self.priority,
            join: Join {
                time: self.time,
                ticket: self.rank,
            },
            seq: self.seq,
            group,
        }
    }
}

type Checked = Result<(), Invalid>;

/// Whether a queue is what its own parts make, in every index and count: an
/// error names the first difference. For tests; O(n log n).
#[cfg(any(test, feature = "validate"))]
pub fn validate(queue: &Queue) -> Result<(), String> {
    let rebuilt = valid::rebuild(queue)?;
    let mut queue = queue.clone();
    for ix in queue.groups.all() {
        queue.heed_purges(ix);
    }
    valid::compare(&queue, &rebuilt)
}
