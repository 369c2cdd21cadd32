use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// What one message carries: the id, if one was given, and the payload.
type Carried = (Option<Vec<u8>>, Vec<u8>);

fn content((id, payload): &Carried) -> Content<'_> {
    Content {
        id: id.as_deref(),
        payload,
    }
}

/// Some bytes that differ from message to message; a given id with some of them.
fn carried(n: u64, len: usize) -> Carried {
    let bytes = n.to_le_bytes().into_iter().cycle();
    let id = n.is_multiple_of(3).then(|| format!("id-{n}").into_bytes());
    (id, bytes.take(len).collect())
}

/// Puts in a message with what it carries.
fn put(store: &mut Store, seq: Seq, carried: &Carried) {
    let message = Message::new(content(carried), seq, seq);
    store.insert(seq, message, content(carried));
}

/// Each message is there with what it carries, and its bytes are counted.
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
    // Of many chunks only some are looked at each time.
    (0..20).for_each(|_| store.tidy());
    store.bodies.check(bytes);
}

proptest! {
    #[test]
    fn behaves_like_a_map(
        steps in prop::collection::vec((0u8..8, 0u64..2000, 0usize..1 << 20), 1..600),
    ) {
        let mut store = Store::default();
        let mut model = BTreeMap::new();
        let mut next = 1u64;
        for (kind, n, len) in steps {
            // Most are short, some do not fit between others.
            let len = if len % 16 == 0 { len % 700 } else { len % 24 };
            // The oldest goes, as in a line, or any.
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
fn a_few_stragglers_do_not_hold_the_memory_of_the_many() {
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

/// A line of few messages, one of them staying: it takes no more as time goes on.
#[test]
fn what_passes_by_takes_no_memory() {
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

/// Large payloads have a chunk each; a small one keeps an open chunk.
#[test]
fn of_many_that_have_gone_nothing_is_kept() {
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
fn bodies_take_little_more_than_their_bytes() {
    let mut store = Store::default();
    (1..=10_000).for_each(|seq| put(&mut store, seq, &carried(1, 20)));
    let taken = store.bodies.memory_bytes();
    // Chunks of half a kilobyte have a greater share of it than real ones.
    assert!(taken < 10_000 * 25, "{taken} bytes");
    store.set_payload(5, &[1; 1 << 20]);
    assert!(store.bodies.memory_bytes() - taken <= 1 << 20);
    assert_eq!(store.get(5).unwrap().payload_len(), 1 << 20);
}
