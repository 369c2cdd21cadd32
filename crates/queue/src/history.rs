//! What has happened to a message: nothing, one delivery, or more.
//!
//! Most messages are delivered once and end well. As long as there is no more to
//! tell of one, that takes no allocation.

use super::consumer::ConsumerIx;
use super::extension::Extension;
use super::{Millis, Receipt, MAX_EXACT, NEVER};

/// What is known of a message beyond what was sent.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum History {
    /// Nothing.
    #[default]
    None,
    /// It was delivered once and has not come back, so that its due time stays; nothing
    /// else is known.
    Once {
        /// The low bytes of the receipt; 0 where there is none, or no longer.
        receipt: [u8; 7],
        /// Who had the delivery.
        consumer: ConsumerIx,
        /// How long after the due time of the message it started, in ms.
        late: u32,
    },
    /// Whatever there is.
    Full(Box<Extension>),
}

#[inline]
fn low_bytes(receipt: Receipt) -> [u8; 7] {
    let [a, b, c, d, e, f, g, _] = receipt.to_le_bytes();
    [a, b, c, d, e, f, g]
}

#[inline]
fn whole(low_bytes: [u8; 7]) -> Receipt {
    let [a, b, c, d, e, f, g] = low_bytes;
    Receipt::from_le_bytes([a, b, c, d, e, f, g, 0])
}

fn start_of(due: Millis, late: u32) -> Millis {
    due.saturating_add(late.into())
}

impl History {
    /// One delivery of a message with this due time; `None` where a number is too large.
    #[inline]
    fn once(due: Millis, now: Millis, receipt: Receipt, consumer: ConsumerIx) -> Option<History> {
        let late = u32::try_from(now.checked_sub(due)?).ok()?;
        (receipt <= MAX_EXACT).then(|| History::Once {
            receipt: low_bytes(receipt),
            consumer,
            late,
        })
    }

    /// What there is to tell, if it is more than one delivery.
    pub fn extension(&self) -> Option<&Extension> {
        match self {
            History::Full(extension) => Some(extension),
            History::None | History::Once { .. } => None,
        }
    }

    /// The same of a message with this due time, made when first needed: before that
    /// changes.
    pub fn extension_mut(&mut self, due: Millis) -> &mut Extension {
        match self {
            History::Full(extension) => extension,
            shorter => {
                let mut extension = Box::new(Extension::new(due));
                if let History::Once {
                    receipt,
                    consumer,
                    late,
                } = *shorter
                {
                    extension.start(start_of(due, late), whole(receipt), consumer);
                }
                *shorter = History::Full(extension);
                shorter.extension_mut(due)
            }
        }
    }

    /// A delivery of a message with this due time starts; the receipt is 0 where no
    /// ack is expected. How many deliveries that are.
    #[inline]
    pub fn start(
        &mut self,
        due: Millis,
        now: Millis,
        receipt: Receipt,
        consumer: ConsumerIx,
    ) -> u32 {
        if let History::None = self {
            if let Some(once) = History::once(due, now, receipt, consumer) {
                *self = once;
                return 1;
            }
        }
        let extension = self.extension_mut(due);
        extension.start(now, receipt, consumer);
        extension.attempt
    }

    /// The present delivery is over.
    #[inline]
    pub fn stop(&mut self) {
        match self {
            History::None => {}
            History::Once { receipt, .. } => *receipt = low_bytes(0),
            History::Full(extension) => extension.receipt = 0,
        }
    }

    /// Receipt of the present delivery; 0 unless the message runs.
    #[inline]
    pub fn receipt(&self) -> Receipt {
        match self {
            History::None => 0,
            History::Once { receipt, .. } => whole(*receipt),
            History::Full(extension) => extension.receipt,
        }
    }

    /// Who had the last delivery.
    #[inline]
    pub fn consumer(&self) -> ConsumerIx {
        match self {
            History::None => ConsumerIx::NONE,
            History::Once { consumer, .. } => *consumer,
            History::Full(extension) => extension.consumer,
        }
    }

    /// Sets who had the last delivery, where there was one.
    pub fn set_consumer(&mut self, had: ConsumerIx) {
        match self {
            History::None => {}
            History::Once { consumer, .. } => *consumer = had,
            History::Full(extension) => extension.consumer = had,
        }
    }

    /// Deliveries so far, less those that cost no attempt.
    pub fn attempt(&self) -> u32 {
        match self {
            History::None => 0,
            History::Once { .. } => 1,
            History::Full(extension) => extension.attempt,
        }
    }

    /// Start of the first and of the last delivery of a message with this due time,
    /// or NEVER.
    pub fn started_at(&self, due: Millis) -> (Millis, Millis) {
        match self {
            History::None => (NEVER, NEVER),
            History::Once { late, .. } => (start_of(due, *late), start_of(due, *late)),
            History::Full(extension) => (extension.first_started_at, extension.started_at),
        }
    }
}

impl History {
    /// What is known of a message that runs, in as little as it takes.
    pub fn of_running(extension: Extension, due: Millis) -> History {
        let (now, receipt, consumer) =
            (extension.started_at, extension.receipt, extension.consumer);
        let mut plain = Extension::new(due);
        plain.start(now, receipt, consumer);
        let once = History::once(due, now, receipt, consumer);
        once.filter(|_| plain == extension)
            .unwrap_or_else(|| History::Full(Box::new(extension)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_delivery_takes_nothing_beside_the_message() {
        assert_eq!(size_of::<History>(), 16);
        let mut history = History::None;
        assert_eq!(history.start(5, 7, MAX_EXACT, ConsumerIx::NONE), 1);
        assert!(history.extension().is_none());
        assert_eq!(history.receipt(), MAX_EXACT);
        assert_eq!(history.started_at(5), (7, 7));
    }

    proptest! {
        /// Whatever is too large for one delivery beside the message, or is not the
        /// only one, is told by an extension; nobody sees a difference.
        #[test]
        fn tells_what_an_extension_tells(
            due in prop_oneof![0..200u64, 0..=MAX_EXACT],
            starts in prop::collection::vec(
                (prop_oneof![0..200u64, 0..=MAX_EXACT], 0..=MAX_EXACT, any::<bool>()), 1..4),
        ) {
            let (mut history, mut extension) = (History::None, Extension::new(due));
            for (later, receipt, stops) in starts {
                let now = due.saturating_add(later);
                extension.start(now, receipt, ConsumerIx::NONE);
                let attempt = history.start(due, now, receipt, ConsumerIx::NONE);
                prop_assert_eq!(attempt, extension.attempt);
                let copied = History::of_running(extension.clone(), due);
                prop_assert_eq!(&copied, &history);
                if stops {
                    extension.receipt = 0;
                    history.stop();
                }
                prop_assert_eq!(history.receipt(), extension.receipt);
                let starts = (extension.first_started_at, extension.started_at);
                prop_assert_eq!(history.started_at(due), starts);
                let mut told = history.clone();
                prop_assert_eq!(told.extension_mut(due), &mut extension);
            }
        }
    }
}
