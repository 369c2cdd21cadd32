//! The deliveries of a message, in as little memory as possible.
//!
//! Most messages are delivered once and then acked. The one delivery is therefore
//! stored in the message itself; only what goes beyond it allocates an
//! [`Extension`].

use super::extension::Extension;
use crate::{ConsumerIx, Millis, Receipt, MAX_EXACT, NEVER};

/// The state of a message beyond the data that SEND stored.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum History {
    /// The message was never delivered and has no options of its own.
    #[default]
    None,
    /// The message was delivered once and has not become pending again, so that its due
    /// time is still the one before the delivery. No other data is stored.
    Once {
        /// The low seven bytes of the receipt; 0 if there is none, or the delivery
        /// is over.
        receipt: [u8; 7],
        /// The consumer of the delivery.
        consumer: ConsumerIx,
        /// How long after the message's due time the delivery started, in ms.
        late: u32,
    },
    /// All other cases.
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
    /// One delivery of a message with this due time. `None` if it started before
    /// that time or a number is too large for this form.
    #[inline]
    fn once(due: Millis, now: Millis, receipt: Receipt, consumer: ConsumerIx) -> Option<History> {
        let late = u32::try_from(now.checked_sub(due)?).ok()?;
        (receipt <= MAX_EXACT).then(|| History::Once {
            receipt: low_bytes(receipt),
            consumer,
            late,
        })
    }

    /// The extension, if there is one.
    pub fn extension(&self) -> Option<&Extension> {
        match self {
            History::Full(extension) => Some(extension),
            History::None | History::Once { .. } => None,
        }
    }

    /// The extension, made if there is none yet. `due` is the message's due time:
    /// call this before changing that.
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

    /// Records the start of a delivery of a message with this due time. `receipt`
    /// is 0 if no ack is expected. Returns the number of the attempt.
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

    /// Records the end of the current delivery.
    #[inline]
    pub fn stop(&mut self) {
        match self {
            History::None => {}
            History::Once { receipt, .. } => *receipt = low_bytes(0),
            History::Full(extension) => extension.receipt = 0,
        }
    }

    /// Receipt of the current delivery; 0 unless the message is running.
    #[inline]
    pub fn receipt(&self) -> Receipt {
        match self {
            History::None => 0,
            History::Once { receipt, .. } => whole(*receipt),
            History::Full(extension) => extension.receipt,
        }
    }

    /// The consumer of the last delivery.
    #[inline]
    pub fn consumer(&self) -> ConsumerIx {
        match self {
            History::None => ConsumerIx::NONE,
            History::Once { consumer, .. } => *consumer,
            History::Full(extension) => extension.consumer,
        }
    }

    /// Sets the consumer of the last delivery, if there was one.
    pub fn set_consumer(&mut self, had: ConsumerIx) {
        match self {
            History::None => {}
            History::Once { consumer, .. } => *consumer = had,
            History::Full(extension) => extension.consumer = had,
        }
    }

    /// Deliveries so far, without those that did not count as attempts.
    pub fn attempt(&self) -> u32 {
        match self {
            History::None => 0,
            History::Once { .. } => 1,
            History::Full(extension) => extension.attempt,
        }
    }

    /// When the first and the last delivery of a message with this due time
    /// started. Both are NEVER if there was none.
    pub fn started_at(&self, due: Millis) -> (Millis, Millis) {
        match self {
            History::None => (NEVER, NEVER),
            History::Once { late, .. } => (start_of(due, *late), start_of(due, *late)),
            History::Full(extension) => (extension.first_started_at, extension.started_at),
        }
    }
}

impl History {
    /// The history of a running message in its shortest form.
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
    fn one_delivery_is_stored_without_an_extension() {
        assert_eq!(size_of::<History>(), 16);
        let mut history = History::None;
        assert_eq!(history.start(5, 7, MAX_EXACT, ConsumerIx::NONE), 1);
        assert!(history.extension().is_none());
        assert_eq!(history.receipt(), MAX_EXACT);
        assert_eq!(history.started_at(5), (7, 7));
    }

    proptest! {
        /// A delivery that does not fit into the message, or is not the only one,
        /// goes to an extension. Callers must see no difference.
        #[test]
        fn every_form_of_history_gives_the_answers_of_an_extension(
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
