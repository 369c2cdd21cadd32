//! The arguments of a command, borrowed from the server. The bindings crate would copy each
//! argument and change its reference count, which costs 15 to 20 ns each.

use super::name::string_bytes;
use super::{raw, Failure, Name};
use smallvec::SmallVec;
use std::ops::Range;
use std::os::raw::c_int;

/// Arguments as bytes. Up to 12 need no allocation.
pub type Collected<'a> = SmallVec<[&'a [u8]; 12]>;

/// The arguments of a running command. Argument 0 is the command's own name.
#[derive(Clone, Copy)]
pub struct Args<'a> {
    strings: &'a [*mut raw::RedisModuleString],
}

impl<'a> Args<'a> {
    /// # Safety
    /// `argv` must hold `argc` strings that live, unchanged, for `'a`.
    pub(super) unsafe fn new(argv: *mut *mut raw::RedisModuleString, argc: c_int) -> Self {
        let count = usize::try_from(argc).unwrap_or(0);
        let strings = if argv.is_null() || count == 0 {
            &[][..]
        } else {
            // SAFETY: the caller vouches for the array.
            unsafe { std::slice::from_raw_parts(argv, count) }
        };
        Args { strings }
    }

    /// Argument 1 as the key. Error: there is no argument 1.
    pub fn key(self) -> Result<Name<'a>, Failure> {
        Ok(self.name(1).ok_or("ERR key is missing")?)
    }

    /// The arguments after the command's name.
    #[inline(always)]
    pub fn after_name(self) -> Collected<'a> {
        self.from(1)
    }

    /// A range of the arguments that [`Args::after_name`] returns, as names of keys.
    pub fn names(self, of: Range<usize>) -> impl Iterator<Item = Name<'a>> {
        of.filter_map(move |n| self.name(n + 1))
    }

    /// The arguments after the key, for a command whose key is argument 1.
    #[inline(always)]
    pub fn after_key(self) -> Collected<'a> {
        self.from(2)
    }

    #[inline(always)]
    fn from(self, first: usize) -> Collected<'a> {
        let strings = self.strings.get(first..).unwrap_or_default();
        let mut collected = Collected::new();
        for &string in strings {
            // SAFETY: the strings live for 'a (see new).
            collected.push(unsafe { string_bytes(string) });
        }
        collected
    }

    /// The number of arguments, including the command's name.
    #[inline]
    pub fn len(self) -> usize {
        self.strings.len()
    }

    /// The bytes of an argument, or `None` if the index is too large.
    #[inline]
    pub fn get(self, index: usize) -> Option<&'a [u8]> {
        // SAFETY: the strings live for 'a (see new).
        self.strings
            .get(index)
            .map(|&string| unsafe { string_bytes(string) })
    }

    /// An argument as the name of a key, or `None` if the index is too large.
    #[inline]
    pub fn name(self, index: usize) -> Option<Name<'a>> {
        // SAFETY: the strings live for 'a (see new).
        self.strings
            .get(index)
            .map(|&string| unsafe { Name::new(string) })
    }
}
