//! Extracts fields of arbitrary documents by arbitrary paths. That must fail, or give
//! one result for each path of a document that another reader accepts, too.
//!
//! The first line holds the paths, with blanks between them. The rest is the
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
        // Another reader must accept the document, too, as whole JSON. Its own limit of depth is no fault of the
        // document, so it is switched off.
        let mut reader = serde_json::Deserializer::from_slice(document);
        reader.disable_recursion_limit();
        let whole = serde::de::Deserialize::deserialize(&mut reader);
        let whole: Result<serde::de::IgnoredAny, _> = whole;
        whole.and_then(|_| reader.end()).expect("whole JSON");
    }
});
