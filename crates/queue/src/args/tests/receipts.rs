//! Tests of the arguments of ACK, NACK, TOUCH.

use crate::args::ack::*;
use crate::args::nack::*;
use crate::args::testing::{error, words};
use crate::args::touch::*;
use crate::op::Receipts;
use crate::op::{NackKind, NackPause, Op, Paused};

fn receipts(list: &[u64]) -> Receipts {
    Receipts::from_slice(list)
}

#[test]
fn ack_reads_receipts_and_an_optional_result() {
    words("7 8", |w| {
        let expected = Op::Ack {
            receipts: receipts(&[7, 8]),
            result: None,
        };
        assert_eq!(ack(w).map(|ack| ack.op), Ok(expected));
    });
    words("7 result RESULT", |w| {
        let expected = Op::Ack {
            receipts: receipts(&[7]),
            result: Some(b"RESULT"[..].into()),
        };
        assert_eq!(ack(w).map(|ack| ack.op), Ok(expected));
    });
    for (text, expected) in [
        ("RESULT x", "receipt must be an integer, not 'RESULT'"),
        ("7 8.5", "receipt must be an integer, not '8.5'"),
        ("7 x", "unknown option 'x'"),
        ("7 RESULT", "RESULT needs a value"),
        ("7 RESULT a RESULT b", "RESULT is given twice"),
        ("7 RESULT a 8", "unknown option '8'"),
    ] {
        let error = words(text, |w| error(ack(w)));
        assert_eq!(error, format!("ERR {expected}"));
    }
}

#[test]
fn nack_reads_receipts_and_how_the_messages_go_on() {
    for (text, kind) in [
        ("7", NackKind::Backoff),
        ("7 delay 5", NackKind::Delay(5)),
        ("7 SILENT", NackKind::Silent),
        ("7 SILENT DELAY 5", NackKind::Snooze(5)),
        ("7 DELAY 0 SILENT", NackKind::Silent),
        ("7 fatal", NackKind::Fatal),
    ] {
        words(text, |w| {
            let expected = Op::Nack {
                receipts: receipts(&[7]),
                kind,
                error: None,
                random: 9,
                note: None,
                pause: None,
            };
            assert_eq!(nack(w, 9), Ok(expected));
        });
    }
    words("7 FATAL ERROR SILENT", |w| {
        let expected = Op::Nack {
            receipts: receipts(&[7]),
            kind: NackKind::Fatal,
            error: Some(b"SILENT"[..].into()),
            random: 0,
            note: None,
            pause: None,
        };
        assert_eq!(nack(w, 0), Ok(expected));
    });
    words("7 pause group 30 note x", |w| {
        let expected = Op::Nack {
            receipts: receipts(&[7]),
            kind: NackKind::Backoff,
            error: None,
            random: 0,
            note: Some(b"x"[..].into()),
            pause: Some(NackPause {
                of: Paused::Group,
                ms: 30,
            }),
        };
        assert_eq!(nack(w, 0), Ok(expected));
    });
    let long = "x".repeat(64 * 1024);
    words(&format!("7 NOTE {long}"), |w| assert!(nack(w, 0).is_ok()));
    let too_long = words(&format!("7 NOTE {long}x"), |w| error(nack(w, 0)));
    let expected = "ERR NOTE must be at most 65536 bytes long, not 65537";
    assert_eq!(too_long, expected);
    for (text, expected) in [
        ("SILENT", "receipt must be an integer, not 'SILENT'"),
        ("7 NONSENSE", "unknown option 'NONSENSE'"),
        (
            "7 DELAY -1",
            "DELAY must be an integer from 0 to 9007199254740991, not '-1'",
        ),
        ("7 ERROR", "ERROR needs a value"),
        ("7 ERROR a ERROR b", "ERROR is given twice"),
        ("7 SILENT SILENT", "SILENT is given twice"),
        ("7 FATAL SILENT", "SILENT and FATAL exclude each other"),
        ("7 FATAL DELAY 5", "DELAY and FATAL exclude each other"),
        ("7 NOTE", "NOTE needs a value"),
        ("7 NOTE a NOTE b", "NOTE is given twice"),
        ("7 PAUSE", "PAUSE needs a value"),
        ("7 PAUSE ALL 5", "PAUSE must be GROUP or QUEUE, not 'ALL'"),
        ("7 PAUSE GROUP", "PAUSE needs a value"),
        (
            "7 PAUSE QUEUE 0",
            "PAUSE must be an integer from 1 to 9007199254740991, not '0'",
        ),
        ("7 PAUSE QUEUE 5 PAUSE GROUP 5", "PAUSE is given twice"),
    ] {
        let error = words(text, |w| error(nack(w, 0)));
        assert_eq!(error, format!("ERR {expected}"));
    }
}

#[test]
fn touch_reads_a_duration_and_receipts() {
    words("5 7 7", |w| {
        let expected = Op::Touch {
            ms: 5,
            receipts: receipts(&[7, 7]),
            note: None,
        };
        assert_eq!(touch(w), Ok(expected));
    });
    for (text, expected) in [
        (
            "0 7",
            "ms must be an integer from 1 to 9007199254740991, not '0'",
        ),
        ("5 x", "receipt must be an integer, not 'x'"),
        ("5 7 x", "unknown option 'x'"),
        ("5 7 NOTE", "NOTE needs a value"),
    ] {
        let error = words(text, |w| error(touch(w)));
        assert_eq!(error, format!("ERR {expected}"));
    }
}
