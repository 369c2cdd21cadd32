use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The content of one message: the id, if one was given, and the payload.
type Carried = (Option<Vec<u8>>, Vec<u8>);

fn content((id, payload): &Carried) -> Content<'_> {
    Content {
        id: id.as_deref(),
        payload,
    }
}

/// Content that differs from message to message. Every third message has a given
/// id.
fn carried(n: u64, len: usize) -> Carried {
    let bytes = n.to_le_bytes().into_iter().cycle();
    let id = n.is_multiple_of(3).then(|| format!("id-{n}").into_bytes());
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
        assert_eq!(store.given_id(*seq), expected.0.as_deref());
    }
    let bytes = model.values().map(|carried| content(carried).len()).sum();
    // One call compares only some of the chunks.
    (0..20).for_each(|_| store.tidy());
    store.bodies.check(bytes);
}

proptest! {
    #[test]
    fn a_store_equals_a_map_after_any_steps(
        steps in prop::collection::vec((0u8..8, 0u64..2000, 0usize..1 << 20), 1..600),
    ) {
        let mut store = Store::default();
        let mut model = BTreeMap::new();
        let mut next = 1u64;
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
