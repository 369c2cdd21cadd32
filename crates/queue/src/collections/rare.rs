//! A part of a queue that takes no memory before it is first changed.

use std::fmt;
use std::ops::{Deref, DerefMut};

use super::footprint::allocated;

/// A part that many queues never use. It is allocated by the first change, and stays: one that is
/// used once is soon used again.
///
/// Reading one that was never changed reads [`Unused::unused`], which all of them share. So a hash
/// that was computed by an unused part is of no use for the one that takes its place.
pub struct Rare<T>(Option<Box<T>>);

/// A part with a default that all queues can share for reading.
pub trait Unused: Default + 'static {
    /// The part as it is before its first change.
    fn unused() -> &'static Self;
}

/// Makes a static the unused value of each of these types: the one that is given, which costs
/// readers least, or a lazy one.
macro_rules! unused {
    ($($of:ty = $unused:expr),+) => {
        $(impl $crate::collections::rare::Unused for $of {
            #[inline]
            fn unused() -> &'static $of {
                static UNUSED: $of = $unused;
                &UNUSED
            }
        })+
    };
    ($($of:ty),+) => {
        $(impl $crate::collections::rare::Unused for $of {
            #[inline]
            fn unused() -> &'static $of {
                static UNUSED: std::sync::LazyLock<$of> = std::sync::LazyLock::new(Default::default);
                &UNUSED
            }
        })+
    };
}

pub(crate) use unused;

impl<T> Rare<T> {
    /// A part before its first change.
    pub const UNUSED: Rare<T> = Rare(None);

    /// A part that was made elsewhere; an unused one if it is as before its first change.
    pub fn unless(is_unused: bool, part: T) -> Rare<T> {
        Rare((!is_unused).then(|| Box::new(part)))
    }

    /// The part in its box; `None` if it was never changed.
    pub fn into_box(self) -> Option<Box<T>> {
        self.0
    }

    /// The part, if it was ever changed.
    #[inline]
    pub fn used(&self) -> Option<&T> {
        self.0.as_deref()
    }

    /// Bytes allocated for the part, without what it has allocated itself.
    pub fn box_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |_| allocated(size_of::<T>()))
    }

    /// The part, if it was ever changed, for changes that have nothing to do in an unused one.
    #[inline]
    pub fn used_mut(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()
    }
}

impl<T: Default> Rare<T> {
    /// Takes the part out and leaves an unused one.
    pub fn give_up(&mut self) -> T {
        self.0.take().map_or_else(T::default, |part| *part)
    }
}

impl<T> Default for Rare<T> {
    fn default() -> Rare<T> {
        Rare(None)
    }
}

impl<T: Clone> Clone for Rare<T> {
    fn clone(&self) -> Rare<T> {
        Rare(self.0.clone())
    }
}

impl<T: Unused> Deref for Rare<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match &self.0 {
            Some(part) => part,
            None => T::unused(),
        }
    }
}

impl<T: Unused> DerefMut for Rare<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        match &mut self.0 {
            Some(part) => part,
            none => make(none),
        }
    }
}

/// Not inlined, because a queue does it once for each part.
#[cold]
#[inline(never)]
fn make<T: Default>(part: &mut Option<Box<T>>) -> &mut T {
    part.insert(Box::default())
}

impl<T: Unused + fmt::Debug> fmt::Debug for Rare<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}
