//! Random options of messages that are held.

use std::num::NonZeroU64;

use proptest::option::{of, weighted};
use proptest::prelude::*;

use crate::message::after::{After, Batching, Counts, OnFail, Park};

/// PARK, with or without FOR.
pub fn park() -> impl Strategy<Value = Park> {
    of(1..30u64).prop_map(|ms| Park {
        ms: ms.and_then(NonZeroU64::new),
    })
}

/// BATCH, AFTER, PARK or more than one of them, of three batches.
pub fn batching() -> impl Strategy<Value = Box<Batching>> {
    let name = |number: u8| Box::from([b'x' + number]);
    let on_fail = prop::sample::select(&OnFail::ALL[..]);
    let park = weighted(0.3, park());
    (of(0..3u8), weighted(0.5, 0..3u8), on_fail, park).prop_map(
        move |(batch, after, on_fail, park)| {
            let batch = match after {
                None if park.is_some() => batch,
                None => Some(batch.unwrap_or(0)),
                Some(_) => batch.filter(|_| batch != after),
            };
            let after = after.map(|number| After {
                batch: name(number),
                on_fail,
                counts: Counts::default(),
            });
            Box::new(Batching {
                batch: batch.map(name),
                after,
                park,
            })
        },
    )
}
