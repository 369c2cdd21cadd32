//! Paths and documents: an error, or values that stand in the document.
//!
//! The first line holds the paths, with blanks between them; the rest is the
//! document.

#![no_main]

use dq_queue::json::{extract, Path};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.splitn(2, |byte| *byte == b'\n');
    let (Some(paths), Some(document)) = (parts.next(), parts.next()) else {
        return;
    };
    let paths: Vec<Path> = paths
        .split(|byte| *byte == b' ')
        .filter_map(|path| Path::parse(path).ok())
        .collect();
    if let Ok(found) = extract(document, &paths) {
        assert_eq!(found.len(), paths.len());
        // Another reader accepts the document too: nothing but whole JSON passes. (It refuses numbers beyond a
        // double and stops at a depth of its own, which is no fault of the document.)
        let mut reader = serde_json::Deserializer::from_slice(document);
        reader.disable_recursion_limit();
        let whole = serde::de::Deserialize::deserialize(&mut reader);
        let whole: Result<serde::de::IgnoredAny, _> = whole;
        whole.and_then(|_| reader.end()).expect("whole JSON");
    }
});
