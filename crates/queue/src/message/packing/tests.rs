use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;

const OWN: &str = "0b1c33f4-7a0e-4b5e-8f37-3f0f5f7a9d11";

/// A dictionary for texts that have an id in common.
static DICTIONARY: LazyLock<Dictionary> = LazyLock::new(|| {
    let mut samples = Samples::default();
    for n in 0..400u64 {
        let id = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let payload = format!(
            r#"{{"task": "mails.send", "id": "{id:016x}{n:016x}", "reply_to": "{COMMON}", "n": {n}}}"#
        );
        samples.add(None, payload.as_bytes());
    }
    Dictionary::of(&train(&samples).unwrap()).unwrap()
});

const COMMON: &str = "f3b17c15-bf3b-34b7-8c98-ae99777824dd";

/// Parts of payloads: text, ids in all lengths, marks, and what is nearly an id.
fn part() -> impl Strategy<Value = Vec<u8>> {
    let text = |pattern: &str| proptest::string::string_regex(pattern).unwrap();
    prop_oneof![
        Just(OWN.as_bytes().to_vec()),
        Just(COMMON.as_bytes().to_vec()),
        Just(br#"{"task": "mails.send", "id": ""#.to_vec()),
        text("[0-9a-f]{0,70}").prop_map(String::into_bytes),
        text("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{11,13}").prop_map(String::into_bytes),
        text("[0-9A-F]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").prop_map(String::into_bytes),
        text(r#"[a-z"{}: -]{0,40}"#).prop_map(String::into_bytes),
        proptest::collection::vec(0xF0..=0xFFu8, 0..3),
    ]
}

/// A payload in which some parts come again.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let parts = proptest::collection::vec(part(), 1..20);
    let order = proptest::collection::vec(any::<prop::sample::Index>(), 0..40);
    (parts, order).prop_map(|(parts, order)| {
        let again = order.iter().map(|index| index.get(&parts));
        parts.iter().chain(again).flatten().copied().collect()
    })
}

proptest! {
    #[test]
    fn every_payload_comes_back(payloads in proptest::collection::vec((payload(), any::<bool>()), 1..20)) {
        let (dictionary, mut packed) = (&*DICTIONARY, Vec::new());
        for (payload, is_own) in payloads {
            let own = is_own.then_some(OWN.as_bytes());
            if dictionary.pack(&payload, own, &mut packed) {
                prop_assert_eq!(dictionary.unpack(&packed, own, payload.len()), Some(payload));
            }
        }
    }

    /// What was forged is refused, or a payload of the length that was told.
    #[test]
    fn forged_bytes_unpack_to_that_length_or_not_at_all(
        payload in payload(), at in any::<prop::sample::Index>(), byte: u8, len in 0..3000usize, is_own: bool,
    ) {
        let (dictionary, mut packed) = (&*DICTIONARY, Vec::new());
        if dictionary.pack(&payload, Some(OWN.as_bytes()), &mut packed) {
            let at = at.index(packed.len());
            packed[at] = byte;
            let own = is_own.then_some(OWN.as_bytes());
            for len in [len, payload.len()] {
                let unpacked = dictionary.unpack(&packed, own, len);
                prop_assert!(unpacked.is_none_or(|payload| payload.len() == len));
            }
        }
    }
}

#[test]
fn payloads_of_all_lengths_come_back() {
    let (dictionary, mut packed) = (&*DICTIONARY, Vec::new());
    let mut lengths: Vec<usize> = (6..16)
        .flat_map(|log| [(1 << log) - 1, 1 << log, (1 << log) + 1])
        .collect();
    lengths.push(LARGEST);
    for len in lengths {
        let text = br#"{"task": "mails.send", "n": 17}"#.iter().cycle();
        let payload: Vec<u8> = text.take(len).copied().collect();
        assert!(dictionary.pack(&payload, None, &mut packed), "{len}");
        assert_eq!(dictionary.unpack(&packed, None, len), Some(payload));
    }
}

#[test]
fn an_id_takes_its_bytes_once_and_the_own_one_none() {
    let (dictionary, mut packed) = (&*DICTIONARY, Vec::new());
    let mut size = |ids: &str| {
        let payload = format!(r#"{{"task": "mails.send", "id": "{ids}", "n": 5}}"#);
        assert!(dictionary.pack(payload.as_bytes(), Some(OWN.as_bytes()), &mut packed));
        packed.len()
    };
    let other = "c41e456e-1e04-4c91-9222-d47dcb0b0b9c";
    let (none, own, new) = (size("x"), size(OWN), size(other));
    assert_eq!(own, none);
    assert!(new <= none + 16, "{new} {none}");
    assert!(size(&format!("{other},{other},{other},{other}")) <= new + 8);
    let known = size(COMMON);
    assert!(known < none + 8, "{known} {none}");
}
