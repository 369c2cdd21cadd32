//! Golden bytes of each version of the encodings. Files and replication
//! streams of running servers hold such bytes, so they must stay readable for
//! ever. A new version gets new bytes beside the old ones.

use std::fmt::Write;

use smallvec::smallvec;

use crate::codec::log_entry::{Creation, LogEntry};
use crate::detached::Ties;
use crate::message::score::Score;
use crate::named_limits::LimitRule;
use crate::op::{Before, DueTime, Fetch, NackKind, Removal, Send};
use crate::settings::{Clock, Rate, Settings};
use crate::{Moment, Op, Queue};

/// One queue in version 1 of the snapshot encoding.
const SNAPSHOT: &str = "\
    4f01ffff0fb0ea010000e807904e00000000000001060000000ae0d403000000efcdab8967452301b6f6\
    d8be9f3404ee96dde6819698030300020000010000000000000001ececb1fdbe68020100020011030677\
    6f726b6572b6f6d8be9f340200011eb801ececb1fdbe68003600dcadbacd83acb00600e0d4030100706c\
    61696e0c0200637573746f6d65722d373aaf0100904eff00076f726465722d37b50f4100000000000004\
    4001016b01768f4e010001008f4e8f4e010974727920616761696e0000726963680940a0fe0a6c617465\
    72020003\
    ";

/// Log entries of two messages and of two more whose ids have another salt, and
/// the snapshot of all four.
const SALTED: [&str; 3] = [
    "236b4bd71cb06006800201610162",
    "236c4bd71cb06006800155555555555555550201610162",
    "4401ffff0fb0ea01000000904e0000000000000106000000000000005555555555555555b6f6d8be9f34\
    05000400000000000000000000000000000000b6f6d8be9f3401010907efcdab89674523010a9001ecec\
    b1fdbe68006103480062090755555555555555550348006103480062020004",
];

const RECORDS: [&str; 5] = [
    "236b4bd71cb0600602ffff0fb0ea010000e807904e00000000000001060000000ae0d403000000efcdab8967452301706c61696e",
    "236c4bd71cb060067c076f726465722d370a637573746f6d65722d37ff010041000000000000044001016b017672696368",
    "256d4bd71cb060068406776f726b657202010000",
    "276e4bd71cb060061c01018827010000000000000074727920616761696e",
    "236f4bd71cb06006200190bf056c61746572",
];

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

pub fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16);
    digits.map(|pair| byte(pair).unwrap()).collect()
}

/// The log entries of a queue with some of each kind.
fn records() -> Vec<Vec<u8>> {
    let start = Moment::at_us(1_795_159_374_646_123);
    let settings = Settings {
        retain: 1_000,
        rate: Some(Rate {
            count: 10,
            per: 60_000,
        }),
        ..Settings::default()
    };
    let creation = Creation {
        settings,
        clock: Clock::Server,
        salt: 0x0123_4567_89AB_CDEF,
    };
    let plain = Send::plain(b"plain");
    let mut rich = Send::plain(b"rich");
    rich.id = Some(b"order-7"[..].into());
    rich.group = Some(b"customer-7"[..].into());
    rich.due = DueTime::After(0);
    rich.priority = -1;
    rich.choices.score = Score::of_double(2.5);
    rich.choices.headers = Box::new([(b"k"[..].into(), b"v"[..].into())]);
    let fetch = Fetch {
        count: 2,
        consumer: Some(b"worker"[..].into()),
        ..Fetch::one()
    };
    let nack = Op::Nack {
        receipts: smallvec![start.us + 2],
        kind: NackKind::Delay(5_000),
        error: Some(b"try again"[..].into()),
        random: 1,
        note: None,
        pause: None,
    };
    let later = Op::Send(Send {
        due: DueTime::After(90_000),
        ..Send::plain(b"later")
    });
    let ops = [
        Op::Send(plain),
        Op::Send(rich),
        Op::fetch(fetch),
        nack,
        later,
    ];
    let mut creation = Some(creation);
    let records = ops.iter().zip(0..).map(|(op, n)| {
        let moment = Moment::at_us(start.us + n);
        let mut out = Vec::new();
        LogEntry::of(moment, 0, creation.take(), op).encode_into(&mut out);
        out
    });
    records.collect()
}

#[test]
fn log_entries_stay_byte_equal() {
    let records: Vec<String> = records().iter().map(|record| hex(record)).collect();
    assert_eq!(records, RECORDS);
}

#[test]
fn snapshots_stay_byte_equal() {
    let records = RECORDS.map(bytes);
    let first = LogEntry::decode(&records[0]).unwrap();
    let mut queue = first.created.as_ref().unwrap().queue();
    for record in &records {
        LogEntry::decode(record)
            .unwrap()
            .replay(&mut queue)
            .unwrap();
    }
    assert_eq!(hex(&saved(&queue)), SNAPSHOT);
    let mut block = Some(bytes(SNAPSHOT));
    let loaded = Queue::load(1, &mut || block.take()).unwrap();
    assert_eq!(saved(&loaded), saved(&queue));
}

#[test]
fn snapshots_of_unknown_versions_are_refused() {
    for (version, age) in [(0, "older"), (2, "older"), (6, "older"), (7, "newer")] {
        let mut block = Some(bytes(SNAPSHOT));
        let refused = Queue::load(version, &mut || block.take()).unwrap_err();
        assert!(refused.contains(age), "{version}: {refused}");
    }
}

/// A log entry before whose operation more was done than processing due
/// events.
const WITH_MORE: &str = "416b4bd71cb060060107c0cf24be9dd9be9f3403";

#[test]
fn log_entries_with_more_stay_byte_equal() {
    let before = Before {
        cut: 600_000,
        spare: 1_795_159_379_646,
        without_fires: true,
        steps: 3,
    };
    let moment = Moment::at_us(1_795_159_374_646_123);
    let mut out = Vec::new();
    LogEntry::of(moment, before, None, &Op::Tick).encode_into(&mut out);
    assert_eq!(hex(&out), WITH_MORE);
    assert_eq!(LogEntry::decode(&out).unwrap().before, before);
}

/// A log entry of one of the kinds from 32 on, alone and after further changes.
const LIMIT: [&str; 2] = [
    "606b4bd71cb06006000500617069",
    "806b4bd71cb060060001c0cf240500617069",
];

#[test]
fn log_entries_of_later_kinds_stay_byte_equal() {
    let cut = Before {
        cut: 600_000,
        ..Before::default()
    };
    for (before, entry) in [Before::default(), cut].into_iter().zip(LIMIT) {
        let read = bytes(entry);
        let op = Op::Limit {
            name: b"api"[..].into(),
            rule: LimitRule {
                concurrency: 5,
                ..LimitRule::default()
            },
        };
        let moment = Moment::at_us(1_795_159_374_646_123);
        let mut out = Vec::new();
        LogEntry::of(moment, before, None, &op).encode_into(&mut out);
        assert_eq!(hex(&out), entry);
        let read = LogEntry::decode(&read).unwrap();
        assert_eq!((&*read.op, read.before), (&op, before));
    }
}

/// Log entries that cut ties of a queue to other keys: one, two and all of them.
const DETACHED: [&str; 3] = [
    "686b4bd71cb0600604",
    "686b4bd71cb0600618",
    "686b4bd71cb060061c",
];

#[test]
fn cuts_of_ties_stay_byte_equal() {
    let ties = [(true, false), (false, true), (true, true)];
    for ((events, others), entry) in ties.into_iter().zip(DETACHED) {
        let read = bytes(entry);
        let op = Op::Detach(Ties {
            events,
            dead_to: others,
            parents: others,
        });
        let moment = Moment::at_us(1_795_159_374_646_123);
        let mut out = Vec::new();
        LogEntry::of(moment, 0, None, &op).encode_into(&mut out);
        assert_eq!(hex(&out), entry);
        assert_eq!(*LogEntry::decode(&read).unwrap().op, op);
    }
}

/// Forms that version 1 does not have.
#[test]
fn log_entries_of_unknown_versions_are_refused() {
    for form in [0, 5, 6, 7] {
        let mut entry = bytes(RECORDS[4]);
        entry[0] = form << 5 | entry[0] & 31;
        assert!(LogEntry::decode(&entry).is_err(), "form {form}");
    }
}

/// The slices of a purge, as log entries.
const SLICES: [&str; 3] = [
    "366b4bd71cb060060003010204000500",
    "366c4bd71cb06006040201610162",
    "366d4bd71cb0600608",
];

#[test]
fn slices_of_a_purge() {
    let removals = [
        Removal::Messages(vec![1, 2, 3, 7, 12]),
        Removal::Holds(vec![b"a"[..].into(), b"b"[..].into()]),
        Removal::TakenIds,
    ];
    for (n, (removal, slice)) in removals.into_iter().zip(SLICES).enumerate() {
        let read = bytes(slice);
        let op = Op::Remove(removal);
        let moment = Moment::at_us(1_795_159_374_646_123 + n as u64);
        let mut out = Vec::new();
        LogEntry::of(moment, 0, None, &op).encode_into(&mut out);
        assert_eq!(hex(&out), slice);
        assert_eq!(*LogEntry::decode(&read).unwrap().op, op);
    }
}

/// A few bytes cannot name many messages.
#[test]
fn a_slice_that_names_too_many_messages_or_one_twice_is_refused() {
    // The number of runs, and of each run its distance from the run before, and how many numbers
    // follow its first.
    let kept = ["01 01 00", "01 01 8f4e", "02 01 8e4e 01 00"];
    let refused = [
        "01 00 00",
        "01 01 904e",
        "02 01 8f4e 01 00",
        "02 01 00 00 00",
    ];
    for (runs, is_kept) in kept
        .map(|r| (r, true))
        .into_iter()
        .chain(refused.map(|r| (r, false)))
    {
        let entry = bytes(&format!("366b4bd71cb0600600{}", runs.replace(' ', "")));
        let decoded = LogEntry::decode(&entry);
        assert_eq!(decoded.is_ok(), is_kept, "{runs}: {decoded:?}");
    }
}

#[test]
fn messages_keep_ids_of_two_salts_in_log_entries_and_snapshots() {
    let creation = Creation {
        settings: Settings::default(),
        clock: Clock::Server,
        salt: 0x0123_4567_89AB_CDEF,
    };
    let mut queue = creation.queue();
    let several = Send {
        payloads: smallvec![&b"a"[..], &b"b"[..]],
        ..Send::plain(b"")
    };
    let mut seen = Vec::new();
    let ops = [(several.clone(), None), (several, Some(u64::MAX / 3))];
    for ((send, new_salt), n) in ops.into_iter().zip(0..) {
        let op = Op::Send(Send { new_salt, ..send });
        let moment = Moment::at_us(1_795_159_374_646_123 + n);
        let record = LogEntry::of(moment, 0, None, &op);
        let mut bytes = Vec::new();
        record.encode_into(&mut bytes);
        seen.push(hex(&bytes));
        LogEntry::decode(&bytes)
            .unwrap()
            .replay(&mut queue)
            .unwrap();
    }
    seen.push(hex(&saved(&queue)));
    assert_eq!(seen, SALTED);
    let mut block = Some(saved(&queue));
    let loaded = Queue::load(Queue::VERSION, &mut || block.take()).unwrap();
    assert_eq!(saved(&loaded), saved(&queue));
    for seq in 1..=4 {
        let id = queue.id_of(seq, queue.message(seq).unwrap()).to_box();
        assert_eq!((queue.find(&id), loaded.find(&id)), (Some(seq), Some(seq)));
    }
}

pub fn saved(queue: &Queue) -> Vec<u8> {
    let mut blocks = Vec::new();
    queue.save(&mut |block| blocks.extend_from_slice(block));
    blocks
}
