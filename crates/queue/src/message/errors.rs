//! The failed attempts that a message remembers (ERRORS).

use crate::collections::footprint::allocated;
use crate::Millis;

/// An attempt of a message that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedAttempt {
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// When it failed, in Unix ms.
    pub at: Millis,
    /// The name of the consumer that had the message, if it gave one.
    pub consumer: Option<Box<[u8]>>,
    /// The error text of the consumer, or `timeout`.
    pub text: Box<[u8]>,
}

/// The last failed attempts of a message, the oldest first; at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Errors {
    /// The list has no spare room: most messages fail a few times at most.
    list: Box<[FailedAttempt]>,
}

impl Errors {
    /// These failed attempts; `None` if there are none.
    pub fn of(list: Vec<FailedAttempt>) -> Option<Box<Errors>> {
        let list = list.into_boxed_slice();
        (!list.is_empty()).then(|| Box::new(Errors { list }))
    }

    /// Adds `failed` to `errors`, and keeps the last `most` of them.
    pub fn with(
        errors: Option<Box<Errors>>,
        failed: FailedAttempt,
        most: usize,
    ) -> Option<Box<Errors>> {
        let mut list = errors.map_or(Vec::new(), |errors| errors.list.into_vec());
        list.push(failed);
        list.drain(..list.len().saturating_sub(most));
        Errors::of(list)
    }

    /// These attempts with their times changed by a function.
    pub fn moved(self, time: impl Fn(Millis) -> Millis) -> Option<Box<Errors>> {
        let mut list = self.list.into_vec();
        list.iter_mut()
            .for_each(|failed| failed.at = time(failed.at));
        Errors::of(list)
    }

    /// The attempts, the oldest first.
    pub fn list(&self) -> &[FailedAttempt] {
        &self.list
    }

    /// The bytes of the attempts.
    pub fn heap_bytes(&self) -> usize {
        let texts = self.list.iter().map(|failed| {
            let consumer = failed.consumer.as_ref();
            allocated(failed.text.len()) + consumer.map_or(0, |name| allocated(name.len()))
        });
        allocated(size_of::<Errors>()) + allocated(size_of_val(&*self.list)) + texts.sum::<usize>()
    }
}
