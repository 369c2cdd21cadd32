//! Tests queues under random operations: a snapshot holds all of a queue, and
//! log entries lead a replica to an equal queue.

use proptest::collection::vec;
use proptest::prelude::*;

use super::primary::{acts, creation, history, Primary};
use crate::codec::log_entry::{Chunk, LogEntry};
use crate::codec::restore::Restoring;
use crate::codec::snapshot::SAVED;
use crate::codec::wire::Reader;
use crate::message::limited::Limited;
use crate::named_limits::LimitRule;
use crate::op::{DueTime, Fetch, NackKind, Send};
use crate::queue::rebuild::validate;
use crate::settings::{Clock, Settings};
use crate::{ConsumerIx, Done, GroupIx, Moment, Op, Queue};

/// The outcome as a client sees it, without the numbers of slots, which may
/// differ between equal queues.
fn seen(mut done: Option<Done>) -> Option<Done> {
    if let Some(Done::Fetched(given)) = &mut done {
        for gone in given.iter_mut().filter_map(|d| d.gone.as_mut()) {
            let message = &mut gone.message;
            message.group = GroupIx::NONE;
            message.history.set_consumer(ConsumerIx::NONE);
        }
    }
    done
}

fn saved(queue: &Queue) -> Vec<Vec<u8>> {
    let mut blocks = Vec::new();
    queue.save(&mut |block| blocks.push(block.to_vec()));
    blocks
}

/// The first frame in which the snapshots of two queues differ.
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
    Queue::load(Queue::VERSION, &mut || blocks.next())
}

proptest! {
    #[test]
    fn a_queue_loaded_from_a_snapshot_behaves_like_the_original(
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
    fn log_entries_lead_a_replica_to_an_equal_queue(
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
            for news in &primary.told[told..] {
                let bytes = news.record(&primary.queue);
                if let Some(creation) = LogEntry::decode(&bytes).unwrap().created {
                    replica = Some(creation.queue());
                }
                for queue in replica.iter_mut().chain(&mut late) {
                    let bytes = news.record(queue);
                    let record = LogEntry::decode(&bytes).unwrap();
                    let done = record.replay(queue);
                    queue.take_effects();
                    prop_assert!(done.is_ok(), "{:?} {:?}", record, done);
                }
            }
            told = primary.told.len();
            for queue in replica.iter().chain(&late) {
                prop_assert_eq!(difference(queue, &primary.queue), None);
            }
        }
    }

    #[test]
    fn a_damaged_snapshot_is_refused_or_gives_a_valid_queue(
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
fn a_rewritten_log_restores_an_equal_queue() {
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
    let mut restoring = Restoring::default();
    let mut take =
        |db, record: &[u8]| restoring.take(db, b"key", Chunk::of(record).unwrap().unwrap());

    assert!(take(0, &records[1]).is_err(), "it has no beginning");
    // The first part again starts over, and another database has its own queue.
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
fn no_two_parts_of_a_digest_are_equal() {
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

/// A group with a failed message may keep its other messages in another
/// structure than after loading. Messages that come while due events still wait
/// to be processed must not make a difference.
#[test]
fn a_loaded_group_with_a_failed_message_behaves_like_the_original() {
    let to_group = |due| {
        let mut send = Send::plain(b"x");
        send.group = Some(b"g"[..].into());
        send.due = due;
        Op::Send(send)
    };
    let no_ack = Fetch {
        no_ack: true,
        ..Fetch::one()
    };
    let mut queue = Queue::new(Settings::default(), Clock::Server, 0);
    for op in [
        to_group(DueTime::Now),
        to_group(DueTime::Now),
        Op::fetch(Fetch::one()),
        Op::Nack {
            receipts: [1_000].into_iter().collect(),
            kind: NackKind::Delay(1),
            error: None,
            random: 0,
            note: None,
            pause: None,
        },
        to_group(DueTime::After(50)),
        to_group(DueTime::After(50)),
    ] {
        queue.apply(&op, Moment::at_ms(1)).unwrap();
    }
    for _ in 0..2 {
        queue.advance(10, u64::MAX);
        queue
            .apply(&Op::fetch(no_ack.clone()), Moment::at_ms(10))
            .unwrap();
    }
    let mut copy = loaded(&saved(&queue)).unwrap();
    for queue in [&mut queue, &mut copy] {
        // Both messages are due now, and the group has not joined the ready
        // line yet.
        assert_eq!(queue.advance(51, 2).steps, 2);
        queue
            .apply(&to_group(DueTime::Now), Moment::at_ms(51))
            .unwrap();
    }
    assert_eq!(difference(&copy, &queue), None);
}

/// The line in which a group waits is chosen anew when a message comes to the group. Whether
/// it is must not depend on the form in which the group keeps its messages, which is another
/// one after loading.
#[test]
fn a_loaded_group_waits_in_the_same_lines_for_its_limits() {
    let send = |group: Option<&'static [u8]>, limits: &[&str]| {
        let mut send = Send::plain(b"x");
        send.group = group.map(Into::into);
        send.choices.change_rare(|rare| {
            rare.limited = Some(Box::new(Limited {
                names: limits.iter().map(|name| name.as_bytes().into()).collect(),
                cost: 1,
            }));
        });
        send
    };
    let limit = |name: &'static [u8]| Op::Limit {
        name: name.into(),
        rule: LimitRule {
            concurrency: 1,
            ..LimitRule::default()
        },
    };
    let mut other = send(Some(b"g"), &["a", "b"]);
    (other.priority, other.id) = (1, Some(b"other"[..].into()));
    let mut queue = Queue::new(Settings::default(), Clock::Server, 0);
    let apply = |queue: &mut Queue, op: Op| queue.apply(&op, Moment::at_ms(1)).unwrap();
    for op in [
        limit(b"a"),
        limit(b"b"),
        Op::Send(send(None, &["a"])),
        Op::Send(send(None, &["b"])),
        Op::fetch(Fetch {
            count: 2,
            ..Fetch::one()
        }),
        // With two priorities, a group has the form for many messages until it is empty.
        Op::Send(send(Some(b"g"), &["a", "b"])),
        Op::Send(other),
        Op::Cancel {
            ids: vec![b"other"[..].into()],
        },
        // From now on, fewer wait for the other limit of the group.
        Op::Send(send(Some(b"h"), &["b"])),
    ] {
        apply(&mut queue, op);
    }
    let mut copy = loaded(&saved(&queue)).unwrap();
    for queue in [&mut queue, &mut copy] {
        apply(queue, Op::Send(send(Some(b"g"), &["a", "b"])));
    }
    assert_eq!(difference(&copy, &queue), None);
}
