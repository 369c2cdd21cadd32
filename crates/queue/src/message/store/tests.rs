use super::stored::{head, Stored};
use super::*;
use crate::message::state::StoredState;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::message::packing::{train, Dictionary};

/// The content of one message: the id, if one was given, and the payload.
type Carried = (Option<Vec<u8>>, Vec<u8>);

fn content((id, payload): &Carried) -> Content<'_> {
    Content {
        id: id.as_deref().map(GivenId::Text),
        payload: Payload::Plain(payload),
    }
}

/// Content that differs from message to message. Every third message has a given
/// id, of which every other is a UUID.
fn carried(n: u64, len: usize) -> Carried {
    let bytes = n.to_le_bytes().into_iter().cycle();
    let id = match n % 6 {
        0 => Some(format!("id-{n}").into_bytes()),
        3 => Some(format!("{n:08x}-1e04-4c91-9222-d47dcb0b0b9c").into_bytes()),
        _ => None,
    };
    (id, bytes.take(len).collect())
}

/// Adds a message with its content.
fn put(store: &mut Store, seq: Seq, carried: &Carried) {
    let message = Message::new(content(carried), seq, seq);
    store.insert(seq, message, content(carried));
}

/// Checks that each message has its content, and that the bytes are counted.
fn check(store: &mut Store, model: &BTreeMap<Seq, Carried>) {
    let seqs: Vec<Seq> = model.keys().copied().collect();
    assert_eq!((store.len(), store.seqs()), (model.len(), seqs));
    for (seq, expected) in model {
        let message = store.get(*seq).unwrap();
        assert_eq!(store.content(message), content(expected), "{seq}");
        assert_eq!(message.payload_len(), expected.1.len() as u64);
        let id = store.given_id(*seq).map(Id::to_box);
        assert_eq!(id.as_deref(), expected.0.as_deref());
    }
    let bytes = model.keys().map(|seq| {
        let content = store.content(store.get(*seq).unwrap());
        Stored::of(content, &head(content)).len()
    });
    let bytes = bytes.sum();
    // One call compares only some of the chunks.
    (0..20).for_each(|_| store.tidy());
    store.bodies.check(bytes);
}

/// A dictionary for the payloads of [`carried`], of which the longer ones repeat themselves.
fn dictionary() -> Arc<Dictionary> {
    Arc::new(Dictionary::of(&[7; 64]).unwrap())
}

proptest! {
    #[test]
    fn a_store_equals_a_map_after_any_steps(
        steps in prop::collection::vec((0u8..10, 0u64..2000, 0usize..1 << 20), 1..600),
    ) {
        let mut store = Store::default();
        let mut model = BTreeMap::new();
        let mut next = 1u64;
        store.set_packing(true);
        store.add_dictionary(3, dictionary(), true);
        for (kind, n, len) in steps {
            // Most payloads are short; some get their own chunk.
            let len = if len % 16 == 0 { len % 700 } else { len % 24 };
            // Removes the oldest message, as in a queue, or any other.
            let oldest = model.keys().next().copied();
            let some = match kind {
                5 => oldest.unwrap_or(next),
                _ => n % next,
            };
            match kind {
                0..=3 => {
                    next += n % 3;
                    model.insert(next, carried(n, len));
                    put(&mut store, next, &model[&next]);
                    next += 1;
                }
                8..=9 => while matches!(store.pack(n * 100), Step::More) {},
                4 => {
                    store.set_payload(some, &carried(n, len).1);
                    if let Some((_, payload)) = model.get_mut(&some) {
                        *payload = carried(n, len).1;
                    }
                }
                _ => {
                    let gone = store.remove(some, |message| message.sent_at);
                    prop_assert_eq!(gone, model.remove(&some).map(|_| some));
                }
            }
            check(&mut store, &model);
        }
        let copy = store.clone();
        while let Some((seq, _)) = model.pop_first() {
            store.remove(seq, |_| ());
            check(&mut store, &model);
        }
        prop_assert_eq!(store.packing_sums().after, 0);
        store.bodies.dictionaries = None;
        prop_assert!(store.bodies.memory_bytes() < 2048, "{} bytes", store.bodies.memory_bytes());
        let mut copy = copy;
        while copy.drop_page() {}
        prop_assert_eq!(copy.len(), 0);
    }
}

#[test]
fn a_few_old_messages_do_not_keep_the_memory_of_those_removed() {
    let mut store = Store::default();
    for seq in 1..=64_000 {
        put(&mut store, seq, &carried(seq, 20));
    }
    let before = store.bodies.memory_bytes();
    for seq in (1..=64_000).filter(|seq| seq % PAGE != 7) {
        store.remove(seq, |_| ());
    }
    assert_eq!(store.len(), 500);
    let pages = store.pages.iter();
    let slots: usize = pages.map(|(_, page)| page.capacity()).sum();
    assert!(slots <= 1000, "{slots} slots for 500 messages");
    let after = store.bodies.memory_bytes();
    assert!(after * 20 < before, "{before} bytes, then {after}");
}

/// A queue of few messages, one of which stays, must not grow with time.
#[test]
fn messages_that_come_and_go_leave_no_memory_behind() {
    let mut store = Store::default();
    put(&mut store, 1, &carried(1, 20));
    for seq in 2..100_000 {
        put(&mut store, seq, &carried(seq, 20));
        store.remove(seq.saturating_sub(3).max(2), |_| ());
        assert!(store.bodies.memory_bytes() < 3000);
    }
    let stayed = carried(1, 20);
    assert_eq!(store.content(store.get(1).unwrap()), content(&stayed));
}

/// Each large payload has its own chunk; a small one keeps a shared chunk open.
#[test]
fn a_store_frees_its_memory_when_all_messages_are_removed() {
    let mut store = Store::default();
    put(&mut store, 1, &carried(1, 5));
    (2..=10_000).for_each(|seq| put(&mut store, seq, &carried(1, 600)));
    (1..=10_000).for_each(|seq| {
        store.remove(seq, |_| ());
    });
    let left = store.bodies.memory_bytes();
    assert!(left < 1024, "{left} bytes");
    put(&mut store, 10_001, &carried(1, 5));
    store.bodies.check(5);
}

#[test]
fn small_bodies_have_little_overhead() {
    let mut store = Store::default();
    (1..=10_000).for_each(|seq| put(&mut store, seq, &carried(1, 20)));
    let taken = store.bodies.memory_bytes();
    // In tests chunks have half a kilobyte, so their overhead is larger than in
    // production.
    assert!(taken < 10_000 * 25, "{taken} bytes");
    store.set_payload(5, &[1; 1 << 20]);
    assert!(store.bodies.memory_bytes() - taken <= 1 << 20);
    assert_eq!(store.get(5).unwrap().payload_len(), 1 << 20);
}

/// A payload as a framework sends it. Only its number differs.
fn task(n: u64) -> Vec<u8> {
    let id = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    format!(
        r#"{{"task": "shop.mail.send", "id": "{id:016x}", "eta": null, "retries": 0, "argsrepr": "[{n}]"}}"#
    )
    .into_bytes()
}

/// Does all steps that are possible at this time (Unix ms), and trains. Returns how often it did.
fn pack_all(store: &mut Store, now: Millis) -> usize {
    let mut trained = 0;
    loop {
        match store.pack(now) {
            Step::More => {}
            Step::Wait(_) => return trained,
            Step::Train(samples) => {
                store.trained(train(&samples).as_deref());
                trained += 1;
            }
        }
    }
}

fn store_of(count: u64, due: Millis, payload: impl Fn(u64) -> Vec<u8>) -> Store {
    let mut store = Store::default();
    store.set_packing(true);
    for seq in 1..=count {
        let carried = (None, payload(seq));
        store.insert(
            seq,
            Message::new(content(&carried), 1000, due),
            content(&carried),
        );
    }
    store
}

#[test]
fn payloads_that_look_alike_are_kept_in_a_part_of_their_bytes() {
    let mut store = store_of(10_000, 1_000_000, task);
    let before = store.memory_bytes();
    assert_eq!(pack_all(&mut store, 1000), 1);
    let sums = store.packing_sums();
    assert!(sums.after * 2 < sums.before, "{sums:?}");
    let after = store.memory_bytes();
    assert!(
        before - after > (sums.before - sums.after) as usize * 8 / 10,
        "{before} {after}"
    );
    for seq in 1..=10_000 {
        let message = store.get(seq).unwrap();
        assert_eq!(store.content(message).payload.bytes(), task(seq));
    }
    for seq in 1..=10_000 {
        store.remove(seq, |_| ());
    }
    assert_eq!(
        (store.packing_sums().before, store.packing_sums().after),
        (0, 0)
    );
}

/// It must not cost the messages that are delivered soon anything.
#[test]
fn a_message_is_packed_when_it_rests() {
    let mut store = store_of(2000, 4000, task);
    assert!(matches!(store.pack(1000), Step::More));
    let packed = |store: &mut Store, now| {
        pack_all(store, now);
        store.packing_sums().before > 0
    };
    assert!(!packed(&mut store, 1000));
    assert!(!packed(&mut store, 999 + REST));
    assert!(matches!(store.pack(999 + REST), Step::Wait(Some(at)) if at == 1000 + REST));
    (1..=2000).for_each(|seq| store.get_mut(seq).unwrap().stored = StoredState::Due);
    assert!(packed(&mut store, 1000 + REST));
}

#[test]
fn small_and_running_messages_stay_as_they_are() {
    let mut store = store_of(5000, 1_000_000, |n| task(n)[..60].to_vec());
    assert_eq!(pack_all(&mut store, 1000), 0);
    let mut store = store_of(5000, 1_000_000, task);
    (1..=5000).for_each(|seq| store.get_mut(seq).unwrap().stored = StoredState::Running);
    assert_eq!(pack_all(&mut store, 1000), 0);
    assert_eq!(store.packing_sums().after, 0);
}

/// The payload was replaced, or the message ran when its page was swept.
#[test]
fn a_message_that_rests_again_is_packed_later() {
    let mut store = store_of(5000, 1_000_000, task);
    store.get_mut(7).unwrap().stored = StoredState::Running;
    pack_all(&mut store, 1000);
    let before = store.packing_sums().before;
    store.get_mut(7).unwrap().stored = StoredState::Retry;
    store.rests_again(7);
    store.set_payload(2000, &task(9999));
    assert!(store.packing_sums().before < before);
    pack_all(&mut store, 1000);
    assert!(store.packing_sums().before > before);
    for (seq, expected) in [(7, task(7)), (2000, task(9999))] {
        let message = store.get(seq).unwrap();
        assert!(message.body.is_packed(), "{seq}");
        assert_eq!(store.content(message).payload.bytes(), expected);
    }
    assert!(!store.has_unpacked());
}

/// Each training costs, and so does each dictionary.
#[test]
fn payloads_with_nothing_in_common_are_tried_ever_more_rarely() {
    let random = |n: u64| {
        let mut x = n;
        let bytes = std::iter::repeat_with(|| {
            x = x
                .wrapping_mul(0x5851_F42D_4C95_7F2D)
                .wrapping_add(0x1405_7B7E_F767_814F);
            (x >> 56) as u8
        });
        bytes.take(200).collect()
    };
    let mut store = store_of(20_000, 1_000_000, random);
    let trained = pack_all(&mut store, 1000);
    assert!((1..=8).contains(&trained), "{trained}");
    let sums = store.packing_sums();
    assert_eq!((sums.before, sums.dictionaries), (0, 0));
}

#[test]
fn a_dictionary_that_no_longer_fits_is_replaced() {
    let of_kind = |n: u64| {
        match n {
        0..10_000 => task(n),
        _ => format!(r#"<order number="{n}" customer="{}"><currency>EUR</currency><positions count="1"/></order>"#, n * 77).into_bytes(),
    }
    };
    let mut store = store_of(40_000, 1_000_000, of_kind);
    assert!(pack_all(&mut store, 1000) > 1);
    let sums = store.packing_sums();
    assert!(sums.after * 2 < sums.before, "{sums:?}");
    let all = store.dictionaries().count();
    assert!(all > 1, "{all}");
    (1..30_000).for_each(|seq| {
        store.remove(seq, |_| ());
    });
    assert!(store.dictionaries().count() < all);
}

#[test]
fn an_emptied_store_goes_on_with_its_dictionary() {
    let mut store = store_of(10_000, 1_000_000, task);
    pack_all(&mut store, 1000);
    let like = store.like();
    assert_eq!((like.len(), like.dictionaries().count()), (0, 1));
    store.set_packing(false);
    assert!(!store.has_unpacked());
    assert!(store.packing_sums().before > 0);
}
