//! Tests of the table of consumers.

use super::*;

#[test]
fn those_that_were_idle_longest_are_forgotten_if_there_are_too_many() {
    let mut consumers = Consumers::default();
    let busy = consumers.see(b"busy", 0);
    consumers.deliver(busy, true);
    let names = (0..MAX_IDLE + 5).map(|n| n.to_string());
    for (at, name) in names.enumerate() {
        consumers.see(name.as_bytes(), at as Millis);
    }
    assert_eq!(consumers.idle.len(), MAX_IDLE);
    assert_eq!(consumers.known().len(), MAX_IDLE + 1);
    let is_known = |name: &str| {
        consumers
            .known()
            .iter()
            .any(|c| *c.name == *name.as_bytes())
    };
    assert!(is_known("busy") && is_known("5") && !is_known("4"));
}

#[test]
fn names_of_idle_consumers_take_a_limited_number_of_bytes() {
    let mut consumers = Consumers::default();
    for n in 0..3 * MAX_IDLE_BYTES / 1024 {
        let name = format!("{n:01024}");
        consumers.see(name.as_bytes(), n as Millis);
        consumers.see(name.as_bytes(), n as Millis);
    }
    assert_eq!(consumers.idle_bytes, MAX_IDLE_BYTES);
    assert_eq!(consumers.by_name.len(), MAX_IDLE_BYTES / 1024);
    while !consumers.known().is_empty() {
        consumers.forget_next();
    }
    assert_eq!(consumers.idle_bytes, 0);
}
