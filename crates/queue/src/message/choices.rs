//! The options that SEND gave for a message.

use std::num::NonZeroU64;

use super::after::{After, Batching, Park};
use super::kin::{Children, Kin, Parent};
use super::limited::Limited;
use super::score::Score;
use super::Header;
use crate::settings::Backoff;
use crate::Millis;

/// The options that SEND gave for a message, beyond payload, id, due time, group
/// and priority.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Choices {
    /// Its position in its group; `None` for the default, its due time.
    pub score: Option<Score>,
    /// Its own lease time, in ms.
    pub lease: Option<NonZeroU64>,
    /// Its own number of failures that are forgiven; -1 for all.
    pub retries: Option<i64>,
    /// Its own backoff.
    pub backoff: Option<Backoff>,
    /// Its own time to live, in ms; 0 for no limit.
    pub ttl: Option<Millis>,
    /// A label chosen by the sender.
    pub label: Option<Box<[u8]>>,
    /// The headers in the order given.
    pub headers: Box<[Header]>,
    /// The options that few messages have, stored separately so that other messages need
    /// no memory for them. `None` rather than all defaults.
    pub rare: Option<Box<RareChoices>>,
}

/// The options of a message that few have.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RareChoices {
    /// How long its own record is kept after it finished or was cancelled, in ms; 0
    /// for not at all.
    pub retain: Option<Millis>,
    /// When it dies if it has not finished, in Unix ms.
    pub expire_at: Option<Millis>,
    /// How long after the first send of its chain of replacements the message is due at
    /// the latest, in ms.
    pub max_wait: Option<Millis>,
    /// BATCH, AFTER and PARK, if any is given.
    pub batching: Option<Box<Batching>>,
    /// How many of its leases may run out or be lost before it dies; 0 for no limit.
    pub max_timeouts: Option<u64>,
    /// How many of its last failed attempts are kept, 0 to 100.
    pub errors: Option<u8>,
    /// LIMITS and COST, if either is given.
    pub limited: Option<Box<Limited>>,
    /// PARENT and CHILDREN, if either is given.
    pub kin: Option<Box<Kin>>,
}

impl Choices {
    /// Whether all options have their defaults, so that nothing needs to be stored.
    pub fn is_default(&self) -> bool {
        let Choices {
            score,
            lease,
            retries,
            backoff,
            ttl,
            label,
            headers,
            rare,
        } = self;
        score.is_none()
            && lease.is_none()
            && retries.is_none()
            && backoff.is_none()
            && ttl.is_none()
            && label.is_none()
            && headers.is_empty()
            && rare.is_none()
    }

    /// How long its own record is kept, in ms, if SEND said so.
    pub fn retain(&self) -> Option<Millis> {
        self.rare.as_ref()?.retain
    }

    /// When it dies if it has not finished, in Unix ms, if SEND said so.
    pub fn expire_at(&self) -> Option<Millis> {
        self.rare.as_ref()?.expire_at
    }

    /// The value of MAXWAIT, in ms, if SEND gave one.
    pub fn max_wait(&self) -> Option<Millis> {
        self.rare.as_ref()?.max_wait
    }

    /// The value of MAXTIMEOUTS, if SEND gave one.
    pub fn max_timeouts(&self) -> Option<u64> {
        self.rare.as_ref()?.max_timeouts
    }

    /// The value of ERRORS, if SEND gave one.
    pub fn errors(&self) -> Option<u8> {
        self.rare.as_ref()?.errors
    }

    /// LIMITS and COST, if SEND gave LIMITS.
    pub fn limited(&self) -> Option<&Limited> {
        self.takes().filter(|limited| !limited.names.is_empty())
    }

    /// LIMITS and COST, if SEND gave either.
    pub fn takes(&self) -> Option<&Limited> {
        self.rare.as_ref()?.limited.as_deref()
    }

    /// BATCH, AFTER and PARK, if SEND gave any.
    pub fn batching(&self) -> Option<&Batching> {
        self.rare.as_ref()?.batching.as_deref()
    }

    /// The message at which it counts when it ends, if SEND named one. A stored message
    /// has it in an index of its queue.
    pub fn parent(&self) -> Option<&Parent> {
        self.rare.as_ref()?.kin.as_ref()?.parent.as_ref()
    }

    /// Removes the message at which it counts when it ends.
    pub fn forget_parent(&mut self) {
        self.change_rare(|rare| {
            let kin = rare.kin.take().map(|kin| Kin {
                parent: None,
                ..*kin
            });
            rare.kin = kin.filter(|kin| kin.children.is_some()).map(Box::new);
        });
    }

    /// The children that it waits for or has waited for, if SEND gave CHILDREN.
    pub fn children(&self) -> Option<&Children> {
        self.rare.as_ref()?.kin.as_ref()?.children.as_deref()
    }

    /// Like [`Choices::children`], for changes.
    pub fn children_mut(&mut self) -> Option<&mut Children> {
        self.rare.as_mut()?.kin.as_mut()?.children.as_deref_mut()
    }

    /// The way in which the message is parked when its batch holds it no longer, if SEND said so.
    pub fn park(&self) -> Option<Park> {
        self.batching()?.park
    }

    /// The batch that the message waits for or has waited for, for changes.
    pub fn after_mut(&mut self) -> Option<&mut After> {
        self.rare.as_mut()?.batching.as_mut()?.after.as_mut()
    }

    /// Changes the options that few messages have.
    pub fn change_rare(&mut self, change: impl FnOnce(&mut RareChoices)) {
        let mut rare = self.rare.take().unwrap_or_default();
        change(&mut rare);
        self.rare = (*rare != RareChoices::default()).then_some(rare);
    }

    /// The options as they are stored with the message, or `None` if nothing needs
    /// to be stored. Its batch and its parent are not among them: the queue knows them.
    /// PARK is only where a batch or children may hold the message first.
    pub fn stored(&self) -> Option<Box<Choices>> {
        let mut stored = self.clone();
        let has_children = self.children().is_some();
        if self.batching().is_some() {
            stored.change_rare(|rare| {
                let batching = rare.batching.take().map(|batching| *batching);
                let kept = batching.map(|batching| Batching {
                    batch: None,
                    ..batching
                });
                let kept =
                    kept.filter(|kept| kept.after.is_some() || has_children && kept.park.is_some());
                rare.batching = kept.map(Box::new);
            });
        }
        if self.parent().is_some() {
            stored.change_rare(|rare| {
                let children = rare.kin.take().and_then(|kin| kin.children);
                rare.kin = children.map(|children| {
                    Box::new(Kin {
                        parent: None,
                        children: Some(children),
                    })
                });
            });
        }
        (!stored.is_default()).then(|| Box::new(stored))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::extension::Texts;

    #[test]
    fn options_that_few_messages_have_take_no_room_in_the_others() {
        assert_eq!(size_of::<Choices>(), 112);
        let rare = crate::collections::footprint::allocated(size_of::<RareChoices>());
        assert_eq!(rare, 96);
        assert_eq!(size_of::<Texts>(), 48);
    }
}
