//! Queues under random operations: a snapshot holds all of them, and records
//! lead a second queue to the same place.

use proptest::collection::vec;
use proptest::prelude::*;

use super::ops::{changes, op, Scale};
use crate::core::consumer::ConsumerIx;
use crate::core::group::GroupIx;
use crate::core::op::{Fetch, NackKind, Receipts, Redrive, Send, Sent};
use crate::core::queue::parts::validate;
use crate::core::settings::{Clock, Settings};
use crate::core::state::State;
use crate::core::{Done, Moment, Op, Queue, Receipt};
use crate::ffi::QueueValue;
use crate::persist::record::{Chunk, Creation, Record};
use crate::persist::restore;
use crate::persist::snapshot::SAVED;
use crate::persist::wire::Reader;

/// One thing that happens on a primary.
#[derive(Debug, Clone)]
struct Act {
    /// Time that passes before it, in ms.
    passes: u64,
    /// Steps that time may take.
    steps: u64,
    /// Purged messages that are freed.
    swept: usize,
    /// Nothing: time goes by itself.
    op: Option<Op<'static>>,
}

fn act() -> impl Strategy<Value = Act> {
    let steps = prop_oneof![4 => 0..4u64, 2 => Just(1_000_000)];
    let swept = prop_oneof![4 => Just(0usize), 1 => 1..4usize];
    let op = prop_oneof![5 => op(Scale::Small).prop_map(Some), 1 => Just(None)];
    (prop_oneof![2 => Just(0u64), 3 => 0..8u64], steps, swept, op).prop_map(
        |(passes, steps, swept, op)| Act {
            passes,
            steps,
            swept,
            op,
        },
    )
}

fn acts(most: usize) -> impl Strategy<Value = Vec<Act>> {
    vec(act(), 1..most)
}

/// So many dead messages that they are redriven in slices.
fn many_redriven() -> Vec<Act> {
    let send = |group: Option<&'static [u8]>| {
        let mut send = Send::plain(b"");
        send.payloads = smallvec::smallvec![&b"x"[..]; 150];
        send.group = group.map(Into::into);
        Op::Send(send)
    };
    let fetch = Fetch {
        count: 300,
        per_group: 150,
        lease: Some(1_000),
        ..Fetch::one()
    };
    let nack = Op::Nack {
        receipts: (1..=300).collect(),
        kind: NackKind::Fatal,
        error: None,
        random: 0,
    };
    at_once([
        send(None),
        send(Some(b"a")),
        Op::Fetch(fetch),
        nack,
        Op::Redrive(Redrive::Oldest(u64::MAX)),
    ])
}

/// Operations between which time does nothing.
fn at_once(ops: impl IntoIterator<Item = Op<'static>>) -> Vec<Act> {
    let act = |op| Act {
        passes: 0,
        steps: 0,
        swept: 0,
        op: Some(op),
    };
    ops.into_iter().map(act).collect()
}

/// Groups that hold back what they have, until what held them is purged: so
/// many that they go on one after the other.
fn many_held(state: State) -> Vec<Act> {
    let groups = [&b"a"[..], b"b", b"c", b"d", b"e"];
    let send = |group: &&'static [u8]| {
        let mut send = Send::plain(b"");
        send.payloads = smallvec::smallvec![&b"x"[..]; 3];
        send.group = Some((*group).into());
        Op::Send(send)
    };
    let fetch = Fetch {
        count: 10,
        per_group: 2,
        lease: Some(1_000),
        ..Fetch::one()
    };
    let nack = Op::Nack {
        receipts: (1..=7).collect(),
        kind: NackKind::Delay(20),
        error: None,
        random: 0,
    };
    let purge = Op::Purge {
        state: Some(state),
        group: None,
    };
    let ops = groups.iter().map(send);
    at_once(ops.chain([Op::Fetch(fetch), nack, purge]))
}

/// A history, now and then one of a queue in the midst of something large.
fn history(most: usize) -> impl Strategy<Value = Vec<Act>> {
    let busy = prop_oneof![
        Just(many_redriven()),
        Just(many_held(State::Retry)),
        Just(many_held(State::Running)),
    ];
    let busy = (busy, acts(most)).prop_map(|(first, acts)| first.into_iter().chain(acts).collect());
    prop_oneof![8 => acts(most), 2 => busy]
}

fn settings() -> impl Strategy<Value = Settings> {
    changes(Scale::Small).prop_map(|changes| {
        Settings {
            lease: 10,
            ..Settings::default()
        }
        .with(&changes)
    })
}

fn clock() -> impl Strategy<Value = Clock> {
    prop_oneof![4 => Just(Clock::Server), 1 => Just(Clock::Manual(3))]
}

/// A queue and what it has told others.
struct Primary {
    queue: Queue,
    us: u64,
    issued: Vec<Receipt>,
    records: Vec<Vec<u8>>,
}

impl Primary {
    fn new(creation: &Creation) -> Primary {
        let mut primary = Primary::of(creation.queue(), 5_000);
        let moment = Moment::at_us(primary.us);
        primary.tell(Record::of(moment, 0, Some(creation.clone()), &Op::Tick));
        primary
    }

    fn of(queue: Queue, us: u64) -> Primary {
        Primary {
            queue,
            us,
            issued: Vec::new(),
            records: Vec::new(),
        }
    }

    fn tell(&mut self, record: Record) {
        let mut bytes = Vec::new();
        record.encode_into(&mut bytes);
        self.records.push(bytes);
    }

    /// Receipts that were given out, in the place of small numbers.
    fn real(&self, receipts: &mut Receipts) {
        for receipt in receipts {
            let at = (*receipt as usize).checked_sub(1);
            let from_last = at.and_then(|at| self.issued.len().checked_sub(at + 1));
            *receipt = from_last.map_or(0, |at| self.issued[at]);
        }
    }

    fn act(&mut self, act: &Act) -> Option<Done> {
        self.us += act.passes * 1000 + 1;
        let moment = Moment::at_us(self.us);
        let now = self.queue.now(moment);
        let mut steps = 0;
        if self.queue.has_work(now) {
            steps = self.queue.advance(now, act.steps).steps;
        }
        let mut op = act.op.clone().unwrap_or(Op::Tick);
        match &mut op {
            Op::Fetch(fetch) => self.real(&mut fetch.acks),
            Op::Ack { receipts, .. }
            | Op::Nack { receipts, .. }
            | Op::Touch { receipts, .. }
            | Op::EndLeases { receipts } => self.real(receipts),
            // Time goes on from where the clock stands.
            Op::Advance { to } => *to += self.queue.last_seen(),
            _ => {}
        }
        let done = self.queue.apply(&op, moment).ok();
        if let Some(Done::Fetched(given)) = &done {
            self.issued
                .extend(given.iter().map(|d| d.receipt).filter(|r| *r > 0));
        }
        let told = match &done {
            None => Op::Tick,
            Some(Done::Sent(sent)) if sent.first() == Some(&Sent::Taken) => Op::Duplicate,
            Some(_) => op,
        };
        if self.queue.take_effects().changed {
            self.tell(Record::of(moment, steps, None, &told));
        }
        self.queue.sweep(act.swept);
        done
    }
}

/// What a client sees of it; numbers of slots are nobody's business.
fn seen(mut done: Option<Done>) -> Option<Done> {
    if let Some(Done::Fetched(given)) = &mut done {
        for message in given.iter_mut().filter_map(|d| d.message.as_mut()) {
            message.group = GroupIx::NONE;
            message.ext.get_or_insert_default().consumer = ConsumerIx::NONE;
        }
    }
    done
}

fn saved(queue: &Queue) -> Vec<Vec<u8>> {
    let mut blocks = Vec::new();
    queue.save(&mut |block| blocks.push(block.to_vec()));
    blocks
}

/// The first part in which two queues differ.
fn difference(a: &Queue, b: &Queue) -> Option<String> {
    let frames = |queue: &Queue| {
        let bytes = saved(queue).concat();
        let mut reader = Reader::new(&bytes);
        let mut frames = Vec::new();
        while !reader.is_at_end() {
            frames.push(reader.bytes().unwrap().to_vec());
        }
        frames
    };
    let (a, b) = (frames(a), frames(b));
    if a == b {
        return None;
    }
    let both = a.iter().zip(&b).position(|(a, b)| a != b);
    let at = both.unwrap_or(a.len().min(b.len()));
    Some(format!("{:?} and {:?}", a.get(at), b.get(at)))
}

fn loaded(blocks: &[Vec<u8>]) -> Result<Queue, String> {
    let mut blocks = blocks.iter().cloned();
    Queue::load(1, &mut || blocks.next())
}

fn creation() -> impl Strategy<Value = Creation> {
    (settings(), clock(), any::<u64>()).prop_map(|(settings, clock, salt)| Creation {
        settings,
        clock,
        salt,
    })
}

proptest! {
    #[test]
    fn a_snapshot_holds_all_of_a_queue(
        creation in creation(),
        before in history(60),
        after in acts(30),
    ) {
        let mut primary = Primary::new(&creation);
        for act in &before {
            primary.act(act);
        }
        prop_assert_eq!(validate(&primary.queue), Ok(()));
        let blocks = saved(&primary.queue);
        let copy = loaded(&blocks);
        prop_assert!(copy.is_ok(), "{:?}", copy.err());
        let mut copy = Primary::of(copy.unwrap(), primary.us);
        copy.issued = primary.issued.clone();
        prop_assert_eq!(saved(&copy.queue), blocks);
        for act in &after {
            prop_assert_eq!(seen(primary.act(act)), seen(copy.act(act)));
            prop_assert_eq!(difference(&copy.queue, &primary.queue), None);
        }
        prop_assert_eq!(validate(&copy.queue), Ok(()));
    }

    #[test]
    fn records_lead_a_replica_to_the_same_place(
        creation in creation(),
        acts in history(80),
        synced_at in 0..80usize,
    ) {
        let mut primary = Primary::new(&creation);
        let mut replica: Option<Queue> = None;
        let mut late: Option<Queue> = None;
        let mut told = 0;
        for (n, act) in acts.iter().enumerate() {
            if n == synced_at {
                late = Some(loaded(&saved(&primary.queue)).unwrap());
            }
            primary.act(act);
            for bytes in &primary.records[told..] {
                let record = Record::decode(bytes).unwrap();
                if let Some(creation) = &record.created {
                    replica = Some(creation.queue());
                }
                for queue in replica.iter_mut().chain(&mut late) {
                    let done = record.replay(queue);
                    prop_assert!(done.is_ok(), "{:?} {:?}", record, done);
                }
            }
            told = primary.records.len();
            for queue in replica.iter().chain(&late) {
                prop_assert_eq!(difference(queue, &primary.queue), None);
            }
        }
    }

    #[test]
    fn broken_snapshots_make_sound_queues_or_none(
        creation in creation(),
        before in history(40),
        after in acts(20),
        changes in vec((any::<prop::sample::Index>(), 0..4u8, any::<u8>()), 1..4),
    ) {
        let mut primary = Primary::new(&creation);
        for act in &before {
            primary.act(act);
        }
        let mut bytes = saved(&primary.queue).concat();
        for (at, kind, byte) in changes {
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes[at] ^= 1 << (byte % 8),
                2 => drop(bytes.remove(at)),
                _ => bytes.insert(at, byte),
            }
            if bytes.is_empty() {
                return Ok(());
            }
        }
        let Ok(queue) = loaded(&[bytes]) else {
            return Ok(());
        };
        prop_assert_eq!(validate(&queue), Ok(()));
        let again = loaded(&saved(&queue));
        prop_assert!(again.is_ok(), "{:?}", again.err());
        prop_assert_eq!(saved(&again.unwrap()), saved(&queue));
        let mut primary = Primary::of(queue, primary.us);
        for act in &after {
            primary.act(act);
        }
        prop_assert_eq!(validate(&primary.queue), Ok(()));
    }
}

#[test]
fn truncated_snapshots_are_refused_and_blocks_may_be_cut_anywhere() {
    let mut queue = Queue::new(Settings::default(), Clock::Server, 7);
    for n in 0..2_000u64 {
        let payload = vec![b'x'; if n == 1_000 { 200_000 } else { 40 }];
        let mut send = Send::plain(&payload);
        send.group = (n % 3 == 0).then(|| format!("g{}", n % 11).into_bytes().into());
        queue
            .apply(&Op::Send(send), Moment::at_us(1_000_000 + n))
            .unwrap();
    }
    let blocks = saved(&queue);
    let (_, full) = blocks.split_last().unwrap();
    assert!(full.len() > 64 && full.iter().all(|block| block.len() == SAVED));
    let whole = blocks.concat();
    for size in [1, 7, 4096, whole.len()] {
        let cut: Vec<Vec<u8>> = whole.chunks(size).map(<[u8]>::to_vec).collect();
        assert_eq!(saved(&loaded(&cut).unwrap()), blocks);
    }
    for len in (0..3_000).chain((0..whole.len()).step_by(997)) {
        assert!(loaded(&[whole[..len].to_vec()]).is_err());
    }
    let mut longer = whole.clone();
    longer.push(0);
    assert!(loaded(&[longer]).is_err());
}

#[test]
fn a_rewritten_log_makes_the_queue_anew() {
    let mut queue = Queue::new(Settings::default(), Clock::Server, 7);
    for n in 0..3_000u64 {
        let payload = n.to_string().repeat(20);
        let send = Send::plain(payload.as_bytes());
        queue
            .apply(&Op::Send(send), Moment::at_us(1_000_000 + n))
            .unwrap();
    }
    let mut records = Vec::new();
    queue.rewrite(&mut |record| records.push(record.to_vec()));
    assert!(records.len() > 2);
    let take = |db, record: &[u8]| restore::take(db, b"key", Chunk::of(record).unwrap().unwrap());

    assert!(take(0, &records[1]).is_err(), "it has no beginning");
    // Begun anew, and beside one of another database.
    assert_eq!(take(0, &records[0]).map(|queue| queue.is_some()), Ok(false));
    let mut made = Vec::new();
    for record in &records {
        for db in [0, 1] {
            made.extend(take(db, record).unwrap());
        }
    }
    assert_eq!(made.len(), 2);
    for other in &made {
        assert_eq!(difference(other, &queue), None);
    }
}

#[test]
fn the_digest_has_parts_that_differ() {
    let mut queue = Queue::new(Settings::default(), Clock::Server, 7);
    let parts = |queue: &Queue| {
        let mut parts = Vec::new();
        queue.digest(&mut |part| parts.push(part.to_vec()));
        parts
    };
    let empty = parts(&queue);
    let payload = vec![0; 300_000];
    let send = Op::Send(Send::plain(&payload));
    queue.apply(&send, Moment::at_us(1)).unwrap();
    let mut full = parts(&queue);
    assert_ne!(empty, full);
    let count = full.len();
    full.sort_unstable();
    full.dedup();
    assert_eq!(full.len(), count);
}
