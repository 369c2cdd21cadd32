//! Log entries are read as they were written, and impossible ones are refused.

use proptest::prelude::*;

use super::ops::{changes, op, Scale};
use crate::codec::log_entry::{Chunk, Creation, LogEntry};
use crate::op::{Before, Fetch, Send};
use crate::settings::{Clock, Settings};
use crate::{Moment, Op, MAX_EXACT};

fn creation() -> impl Strategy<Value = Creation> {
    let clock = prop_oneof![Just(Clock::Server), (0..=MAX_EXACT).prop_map(Clock::Manual)];
    (changes(Scale::Any), clock, any::<u64>()).prop_map(|(changes, clock, salt)| Creation {
        settings: Settings::default().with(&changes),
        clock,
        salt,
    })
}

fn before() -> impl Strategy<Value = Before> {
    let number = |most: u64| prop_oneof![3 => Just(0), 1 => 1..=most];
    let numbers = (number(MAX_EXACT), number(MAX_EXACT), number(u64::MAX));
    let all = (numbers, proptest::bool::weighted(0.2));
    all.prop_map(|((cut, spare, steps), without_fires)| Before {
        cut,
        spare,
        without_fires,
        steps,
    })
}

fn encoded(record: &LogEntry) -> Vec<u8> {
    let mut out = Vec::new();
    record.encode_into(&mut out);
    out
}

/// The log entry that is read from `bytes`, as text, since it borrows from
/// them.
fn seen(bytes: &[u8]) -> String {
    match LogEntry::decode(bytes) {
        Ok(record) => format!("{record:?}"),
        Err(error) => error.0.to_owned(),
    }
}

proptest! {
    #[test]
    fn a_log_entry_is_read_as_it_was_written(
        op in op(Scale::Any),
        us in prop_oneof![0..1000u64, 0..1u64 << 56, Just(1_795_159_374_646_123)],
        later in 0..3u64,
        before in before(),
        created in proptest::option::weighted(0.2, creation()),
    ) {
        let receipt = match op {
            Op::Fetch(_) => (us + later).min(MAX_EXACT),
            _ => 0,
        };
        let record = LogEntry::of(Moment { us, receipt }, before, created, &op);
        let bytes = encoded(&record);
        prop_assert_eq!(seen(&bytes), format!("{record:?}"));
        prop_assert_eq!(Chunk::of(&bytes), Ok(None));
        for len in 0..bytes.len() {
            // A log entry that ends with a text may be cut short and still be
            // valid.
            if let Ok(shorter) = LogEntry::decode(&bytes[..len]) {
                prop_assert_eq!(encoded(&shorter), &bytes[..len]);
            }
        }
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(
        tag in 0x20..0x40u8,
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0..4u8], 0..80),
    ) {
        let all = [&[tag], &*bytes].concat();
        let again = LogEntry::decode(&all).map(|record| encoded(&record));
        if let Ok(again) = again {
            prop_assert_eq!(seen(&again), seen(&all));
        }
    }
}

#[test]
fn log_entries_of_send_fetch_and_ack_are_short() {
    let moment = Moment::at_us(1_795_159_374_646_123);
    let record = |op: &Op| encoded(&LogEntry::of(moment, 0, None, op)).len();
    assert_eq!(record(&Op::Send(Send::plain(b"0123456789"))), 9 + 10);
    assert_eq!(record(&Op::fetch(Fetch::one())), 9);
    let acks = smallvec::smallvec![moment.us - 60_000];
    let fetch = Fetch {
        acks,
        ..Fetch::one()
    };
    assert_eq!(record(&Op::fetch(fetch)), 13);
    let receipts = smallvec::smallvec![moment.us - 60_000, moment.us - 59_999];
    let ack = Op::Ack {
        receipts,
        result: None,
    };
    assert_eq!(record(&ack), 14);
}

#[test]
fn operations_that_no_command_can_make_are_refused() {
    let head = |kind: u8, flags: u8| {
        let mut bytes = vec![0x20 | kind, 1, 0, 0, 0, 0, 0, 0, flags];
        move |rest: &[u8]| {
            bytes.extend_from_slice(rest);
            LogEntry::decode(&bytes)
                .map(|_| ())
                .map_err(|error| error.0)
        }
    };
    assert_eq!(head(3, 0)(b"payload"), Ok(()));
    assert!(head(0, 0)(b"").is_err(), "an unknown kind");
    assert!(head(3, 0b100)(b"\0payload").is_err(), "an empty id");
    assert!(head(3, 0b100)(b"\x85\x08aaaa").is_err(), "an id cut off");
    assert!(
        head(3, 0x80)(b"\0payload").is_err(),
        "REPLACE without an id"
    );
    assert!(
        head(3, 0x80)(b"\xFF\xFF\xFF\xFF\x0F").is_err(),
        "4G payloads"
    );
    let nan = [1, 0, 0, 0, 0, 0, 0, 0xF8, 0x7F];
    assert!(head(3, 0x40)(&nan).is_err(), "a score that is no number");
    assert!(head(3, 0x40)(&[2, 0]).is_err(), "LEASE 0");
    assert!(head(3, 0x20)(&[1, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x10]).is_err());
    assert!(head(5, 0x80)(&[0, 1, 0, 0]).is_err(), "COUNT 0");
    assert!(
        head(5, 0x80)(&[0x91, 0x4E, 1, 0, 0]).is_err(),
        "COUNT 10001"
    );
    assert!(head(2, 0)(&[0x80, 0x80, 0x01, 101]).is_err(), "JITTER 101");
    assert!(head(18, 0b100)(&[0, b'g']).is_err(), "WEIGHT 0");
    let other_version = [0xA0 | 3, 1, 0, 0, 0, 0, 0, 0, 0];
    assert!(LogEntry::decode(&other_version).is_err());
}
