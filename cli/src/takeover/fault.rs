//! Failures, with the end from which they came.

use crate::failure::Failure;

/// Says that a failure came from the source.
pub fn at_source(failure: Failure) -> Failure {
    named("SOURCE", failure)
}

/// Says that a failure came from the target.
pub fn at_target_end(failure: Failure) -> Failure {
    named("TARGET", failure)
}

fn named(end: &str, failure: Failure) -> Failure {
    match failure {
        Failure::Lost(words) => Failure::Lost(format!("{end}: {words}")),
        Failure::Refused(words)
            if words.starts_with("WRONGTYPE") || words.contains("WRONGTYPE") =>
        {
            Failure::Refused(format!(
                "TYPE {end}: a key of the queue has another type: {words}"
            ))
        }
        Failure::Refused(words) => Failure::Refused(format!("{end}: {words}")),
        other => other,
    }
}
