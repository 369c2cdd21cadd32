//! The groups of a queue that may have none. A message without a group makes no table of them.

use super::{Group, GroupIx, Groups};
use crate::collections::rare::Rare;
use crate::Millis;

impl Rare<Groups> {
    /// As [`Groups::get`].
    #[inline]
    pub fn get(&self, ix: GroupIx) -> Option<&Group> {
        self.used()?.get(ix)
    }

    /// As [`Groups::name`].
    #[inline]
    pub fn name(&self, ix: GroupIx) -> Option<&[u8]> {
        self.used()?.name(ix)
    }

    /// As [`Groups::get_mut`].
    #[inline]
    pub fn get_mut(&mut self, ix: GroupIx) -> Option<&mut Group> {
        self.used_mut()?.get_mut(ix)
    }

    /// As [`Groups::with`].
    #[inline]
    pub fn with<R>(&mut self, ix: GroupIx, change: impl FnOnce(&mut Group) -> R) -> Option<R> {
        self.used_mut()?.with(ix, change)
    }

    /// As [`Groups::wake_at`].
    #[inline]
    pub fn wake_at(&mut self, ix: GroupIx, wake: Option<Millis>) {
        if let Some(groups) = self.used_mut() {
            groups.wake_at(ix, wake);
        }
    }

    /// As [`Groups::settle`].
    #[inline]
    pub fn settle(&mut self, ix: GroupIx) {
        if let Some(groups) = self.used_mut() {
            groups.settle(ix);
        }
    }
}
