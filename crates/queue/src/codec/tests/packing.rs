//! Tests queues whose payloads are packed: a snapshot keeps them so, nobody sees it, and damaged
//! ones are refused.

use std::collections::BTreeSet;

use crate::codec::snapshot::tag;
use crate::codec::wire::put_number;
use crate::message::packing::train;
use crate::message::store::Step;
use crate::op::{DueTime, Fetch, Send};
use crate::queue::rebuild::validate;
use crate::settings::{Clock, Settings};
use crate::{Done, Moment, Op, Queue};

const MESSAGES: u64 = 400;
const START: Moment = Moment {
    us: 1_000_000,
    receipt: 1,
};

fn payload(n: u64) -> Vec<u8> {
    let id = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    format!(r#"{{"task": "mails.send", "id": "{id:016x}", "eta": null, "retries": 0}}"#).into()
}

fn pack(queue: &mut Queue) {
    loop {
        match queue.pack(START) {
            Step::More => {}
            Step::Wait(_) => return,
            Step::Train(samples) => queue.trained(train(&samples).as_deref()),
        }
    }
}

/// A queue of delayed messages. Its payloads are packed if that is asked for.
fn queue(is_packed: bool) -> Queue {
    let settings = Settings {
        compress: true,
        ..Settings::default()
    };
    let mut queue = Queue::new(settings, Clock::Server, 7);
    queue.made_at(START);
    for n in 0..MESSAGES {
        let payload = payload(n);
        let send = Send {
            due: DueTime::At(20_000),
            ..Send::plain(&payload)
        };
        queue.apply(&Op::Send(send), START).unwrap();
    }
    if is_packed {
        pack(&mut queue);
    }
    assert_eq!(queue.packing_sums().before > 0, is_packed);
    queue.take_effects();
    queue
}

fn saved(queue: &Queue) -> Vec<u8> {
    let mut bytes = Vec::new();
    queue.save(&mut |block| bytes.extend_from_slice(block));
    bytes
}

fn loaded(bytes: &[u8]) -> Result<Queue, String> {
    let mut blocks = [bytes].into_iter();
    Queue::load(Queue::VERSION, &mut || blocks.next().map(<[u8]>::to_vec))
}

fn digest(queue: &Queue) -> Vec<u8> {
    let mut bytes = Vec::new();
    queue.digest(&mut |part| bytes.extend_from_slice(part));
    bytes
}

/// All payloads, by delivering them.
fn payloads(mut queue: Queue) -> BTreeSet<Vec<u8>> {
    let later = Moment::at_us(30_000_000);
    queue.advance(queue.now(later), 10_000);
    let fetch = Fetch {
        count: MESSAGES,
        ..Fetch::one()
    };
    let Ok(Done::Fetched(given)) = queue.apply(&Op::fetch(fetch), later) else {
        panic!("nothing was delivered");
    };
    let message = |seq| queue.content(queue.message(seq).unwrap());
    let all = given.iter();
    all.map(|one| message(one.seq).payload.bytes().into_owned())
        .collect()
}

#[test]
fn a_packed_queue_is_saved_packed_and_looks_like_the_plain_one() {
    let (plain, packed) = (queue(false), queue(true));
    assert_eq!(digest(&plain), digest(&packed));
    let bytes = saved(&packed);
    assert!(bytes.len() * 3 < saved(&plain).len() * 2 + 48 * 1024);
    let again = loaded(&bytes).unwrap();
    assert_eq!(again.packing_sums(), packed.packing_sums());
    assert_eq!(saved(&again), bytes);
    validate(&again).unwrap();
    let expected: BTreeSet<_> = (0..MESSAGES).map(payload).collect();
    for queue in [plain, packed.clone(), packed, again] {
        assert_eq!(payloads(queue), expected);
    }
}

#[test]
fn a_loaded_queue_goes_on_with_its_dictionary() {
    let mut queue = loaded(&saved(&queue(true))).unwrap();
    let before = queue.packing_sums().before;
    let payload = payload(MESSAGES + 1);
    for _ in 0..500 {
        let send = Send {
            due: DueTime::At(20_000),
            ..Send::plain(&payload)
        };
        queue.apply(&Op::Send(send), START).unwrap();
    }
    while matches!(queue.pack(START), Step::More) {}
    assert!(queue.packing_sums().before > before);
}

/// Each byte of a snapshot may be forged: it is refused, or all payloads can be read.
#[test]
fn a_damaged_snapshot_of_a_packed_queue_is_refused_or_whole() {
    let bytes = saved(&queue(true));
    let (mut refused, mut taken) = (BTreeSet::new(), 0);
    for at in (0..bytes.len()).step_by(7) {
        for change in [1, 0x80] {
            let mut forged = bytes.clone();
            forged[at] ^= change;
            match loaded(&forged) {
                Err(why) => drop(refused.insert(why)),
                Ok(queue) => {
                    let count = queue
                        .parts()
                        .messages()
                        .map(|one| one.content.payload.bytes().len());
                    assert!(count.count() as u64 <= MESSAGES);
                    taken += 1;
                }
            }
        }
    }
    assert!(
        refused
            .iter()
            .any(|why| why.contains("a packed payload is damaged")),
        "{refused:?}"
    );
    assert!(taken > 0);
}

/// The bytes of a plain queue with these frames behind its first one, which is that of the queue.
fn with_frames(frames: &[&[u8]]) -> Vec<u8> {
    let mut bytes = saved(&queue(false));
    let mut inserted = Vec::new();
    for frame in frames {
        put_number(&mut inserted, frame.len() as u64);
        inserted.extend_from_slice(frame);
    }
    let (first, len) = match bytes[0] < 0x80 {
        true => (1, usize::from(bytes[0])),
        false => (2, usize::from(bytes[0] & 0x7f) | usize::from(bytes[1]) << 7),
    };
    bytes.splice(first + len..first + len, inserted);
    bytes
}

#[test]
fn dictionaries_that_cannot_be_are_refused_in_words() {
    let long = [&[tag::DICTIONARY, 0, 0][..], &[1; 16385]].concat();
    for (frames, why) in [
        (vec![&[tag::PACKED, 1][..]], "a dictionary that is missing"),
        (vec![&[tag::PACKED, 9]], "too many dictionaries"),
        (vec![&[tag::DICTIONARY, 8, 0, 1]], "too many dictionaries"),
        (vec![&[tag::DICTIONARY, 0, 2, 1]], "flag"),
        (vec![&long], "a dictionary must be at most 16384 bytes long"),
        (
            vec![&[tag::DICTIONARY, 0, 0, 1], &[tag::DICTIONARY, 0, 0, 1]],
            "two dictionaries",
        ),
        (
            vec![&[tag::DICTIONARY, 0, 1, 1], &[tag::DICTIONARY, 1, 1, 1]],
            "two that are current",
        ),
    ] {
        let refused = loaded(&with_frames(&frames)).map(|_| ());
        assert!(
            refused.clone().is_err_and(|got| got.contains(why)),
            "{why}: {refused:?}"
        );
    }
}

#[test]
fn a_dictionary_that_nothing_needs_is_not_loaded() {
    let bytes = with_frames(&[&[tag::DICTIONARY, 0, 0, 1], &[tag::DICTIONARY, 3, 1, 1]]);
    let queue = loaded(&bytes).unwrap();
    let kept: Vec<_> = queue
        .parts()
        .dictionaries()
        .map(|one| (one.0, one.2))
        .collect();
    assert_eq!(kept, [(3, true)]);
}
