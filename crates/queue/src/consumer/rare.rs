//! The consumers of a queue that may have none. A delivery without the name of a consumer makes no table of
//! them.

use super::{ConsumerIx, Consumers};
use crate::collections::rare::Rare;

impl Rare<Consumers> {
    /// As [`Consumers::deliver`].
    #[inline]
    pub fn deliver(&mut self, ix: ConsumerIx, leased: bool) {
        if let Some(consumers) = self.used_mut() {
            consumers.deliver(ix, leased);
        }
    }

    /// As [`Consumers::release`].
    #[inline]
    pub fn release(&mut self, ix: ConsumerIx) {
        if let Some(consumers) = self.used_mut() {
            consumers.release(ix);
        }
    }

    /// As [`Consumers::ack`].
    #[inline]
    pub fn ack(&mut self, ix: ConsumerIx) {
        if let Some(consumers) = self.used_mut() {
            consumers.ack(ix);
        }
    }

    /// As [`Consumers::nack`].
    #[inline]
    pub fn nack(&mut self, ix: ConsumerIx) {
        if let Some(consumers) = self.used_mut() {
            consumers.nack(ix);
        }
    }

    /// As [`Consumers::unmention`].
    #[inline]
    pub fn unmention(&mut self, ix: ConsumerIx) {
        if let Some(consumers) = self.used_mut() {
            consumers.unmention(ix);
        }
    }

    /// As [`Consumers::unmention_all`].
    #[inline]
    pub fn unmention_all(&mut self) {
        if let Some(consumers) = self.used_mut() {
            consumers.unmention_all();
        }
    }

    /// As [`Consumers::forget_tokens`].
    #[inline]
    pub fn forget_tokens(&mut self) {
        if let Some(consumers) = self.used_mut() {
            consumers.forget_tokens();
        }
    }
}
