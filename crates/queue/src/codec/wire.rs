//! Encodes numbers and byte strings.
//!
//! A number takes one byte for every seven bits, the lowest first (LEB128), so
//! small numbers are short. A number that is close to a known one is written as
//! the difference. A reader never panics and never trusts a length: it only
//! returns bytes that are there.

use super::bounds::{self, Bound};
use crate::limits::Invalid;

/// The greatest number of elements for which memory is reserved before any of them has
/// been read, even if the input announces more.
pub const MOST_RESERVED: usize = 1024;

/// How a number is written. Only the tests that forge numbers look at it.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(test), allow(dead_code))]
pub enum Coded {
    /// By [`put_number`].
    Plainly,
    /// By [`put_signed`].
    Signed,
    /// By [`put_delta`] from this base.
    From(u64),
}

/// A number that was read: where in memory, by which bound, and how it is written.
#[cfg(test)]
pub type NumberRead = (usize, &'static Bound, Coded);

#[cfg(test)]
thread_local! {
    /// The numbers that readers of this thread have read. `None` while no test asks.
    pub static READ: std::cell::RefCell<Option<Vec<NumberRead>>> =
        const { std::cell::RefCell::new(None) };
}

/// Writes a number in 1 byte below 128, and in at most 10 bytes.
#[inline]
pub fn put_number(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Writes a number in place of the byte at `at`. From 128 on the bytes behind
/// it are moved, which is O(their number).
#[inline]
pub fn set_number(out: &mut Vec<u8>, mut at: usize, mut n: u64) {
    while n >= 0x80 {
        out.insert(at, n as u8 | 0x80);
        at += 1;
        n >>= 7;
    }
    if let Some(last) = out.get_mut(at) {
        *last = n as u8;
    }
}

/// Writes a number that may be negative; it is short if it is close to zero.
#[inline]
pub fn put_signed(out: &mut Vec<u8>, n: i64) {
    put_number(out, ((n << 1) ^ (n >> 63)) as u64);
}

/// Writes a number as its difference from `base`.
#[inline]
pub fn put_delta(out: &mut Vec<u8>, n: u64, base: u64) {
    put_signed(out, n.wrapping_sub(base) as i64);
}

/// Writes a flag, and the number if there is one.
pub fn put_optional(out: &mut Vec<u8>, n: Option<u64>) {
    put_flag(out, n.is_some());
    if let Some(n) = n {
        put_number(out, n);
    }
}

/// Writes a flag as 0 or 1.
pub fn put_flag(out: &mut Vec<u8>, flag: bool) {
    out.push(u8::from(flag));
}

/// Writes the length of `bytes` and the bytes.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Writes a flag, and length and bytes if there are any.
pub fn put_optional_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    put_flag(out, bytes.is_some());
    if let Some(bytes) = bytes {
        put_bytes(out, bytes);
    }
}

/// Writes eight bytes. It suits numbers that are as likely large as small, such
/// as random ones.
pub fn put_fixed(out: &mut Vec<u8>, n: u64) {
    out.extend_from_slice(&n.to_le_bytes());
}

/// Reads the output of the functions above. Every method returns an error if the input
/// ends too early.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

const CUT_OFF: Invalid = Invalid("the input ends too early");

impl<'a> Reader<'a> {
    /// Starts at the first of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// Tells the tests which number is read next.
    #[inline]
    fn note(&self, bound: &'static Bound, coded: Coded) {
        #[cfg(test)]
        READ.with_borrow_mut(|read| {
            let at = self.rest.as_ptr() as usize;
            read.iter_mut()
                .for_each(|read| read.push((at, bound, coded)));
        });
        let _ = (bound, coded);
    }

    /// Whether all bytes have been read.
    pub fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// Checks that all bytes have been read.
    pub fn end(self) -> Result<(), Invalid> {
        match self.is_at_end() {
            true => Ok(()),
            false => Err(Invalid("there are bytes after the end")),
        }
    }

    /// Reads one byte.
    #[inline]
    pub fn byte(&mut self) -> Result<u8, Invalid> {
        let (first, rest) = self.rest.split_first().ok_or(CUT_OFF)?;
        self.rest = rest;
        Ok(*first)
    }

    /// Reads `len` bytes.
    #[inline]
    pub fn take(&mut self, len: u64) -> Result<&'a [u8], Invalid> {
        let len = usize::try_from(len).map_err(|_| CUT_OFF)?;
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(CUT_OFF)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Reads all bytes that are left.
    #[inline]
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// Reads a number.
    ///
    /// Errors: it is out of bounds.
    #[inline]
    pub fn number(&mut self, bound: &'static Bound) -> Result<u64, Invalid> {
        self.note(bound, Coded::Plainly);
        bound.check(self.any()?)
    }

    /// Reads the number of elements that follow.
    ///
    /// Errors: there are fewer bytes left, and an element has at least one.
    pub fn list(&mut self) -> Result<usize, Invalid> {
        self.note(&bounds::CUT, Coded::Plainly);
        let count = usize::try_from(self.any()?).map_err(|_| CUT_OFF)?;
        match count <= self.rest.len() {
            true => Ok(count),
            false => Err(CUT_OFF),
        }
    }

    /// Reads a length.
    ///
    /// Errors: it has more than 64 bits.
    #[inline]
    pub fn any(&mut self) -> Result<u64, Invalid> {
        let mut n = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            if shift == 63 && bits > 1 {
                break;
            }
            n |= bits << shift;
            if byte < 0x80 {
                return Ok(n);
            }
        }
        Err(Invalid("a number has more than 64 bits"))
    }

    /// Reads a number that may be negative.
    ///
    /// Errors: its amount is more than 2^53-1.
    pub fn signed(&mut self) -> Result<i64, Invalid> {
        self.note(&bounds::EXACT, Coded::Signed);
        let n = self.any_signed()?;
        bounds::EXACT.check(n.unsigned_abs()).map(|_| n)
    }

    /// Reads any number of 64 bits with a sign.
    ///
    /// Errors: it has more than 64 bits.
    #[inline]
    pub fn any_signed(&mut self) -> Result<i64, Invalid> {
        let n = self.any()?;
        Ok((n >> 1) as i64 ^ -((n & 1) as i64))
    }

    /// Reads a number that was written as its difference from `base`.
    ///
    /// Errors: it is out of bounds.
    #[inline]
    pub fn delta(&mut self, base: u64, bound: &'static Bound) -> Result<u64, Invalid> {
        self.note(bound, Coded::From(base));
        bound.check(base.wrapping_add(self.any_signed()? as u64))
    }

    /// Reads a number that may be missing.
    ///
    /// Errors: it is out of bounds.
    pub fn optional(&mut self, bound: &'static Bound) -> Result<Option<u64>, Invalid> {
        match self.flag()? {
            true => self.number(bound).map(Some),
            false => Ok(None),
        }
    }

    /// Reads a flag.
    ///
    /// Errors: it is neither 0 nor 1.
    pub fn flag(&mut self) -> Result<bool, Invalid> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Invalid("a flag must be 0 or 1")),
        }
    }

    /// Reads a length and that many bytes.
    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8], Invalid> {
        let len = self.any()?;
        self.take(len)
    }

    /// Reads bytes that may be missing.
    pub fn optional_bytes(&mut self) -> Result<Option<&'a [u8]>, Invalid> {
        match self.flag()? {
            true => self.bytes().map(Some),
            false => Ok(None),
        }
    }

    /// Reads a number of eight bytes.
    pub fn fixed(&mut self) -> Result<u64, Invalid> {
        let bytes = self.take(8)?.try_into().map_err(|_| CUT_OFF)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_are_read_as_they_were_written(n in any::<u64>(), shift in 0..64u32, base in any::<u64>()) {
            let n = n >> shift;
            let mut out = Vec::new();
            put_number(&mut out, n);
            put_signed(&mut out, n as i64);
            put_delta(&mut out, n, base);
            put_fixed(&mut out, n);
            put_optional(&mut out, Some(n));
            let mut reader = Reader::new(&out);
            prop_assert_eq!(reader.any(), Ok(n));
            prop_assert_eq!(reader.any_signed(), Ok(n as i64));
            prop_assert_eq!(reader.delta(base, &bounds::CUT), Ok(n));
            prop_assert_eq!(reader.fixed(), Ok(n));
            prop_assert_eq!(reader.optional(&bounds::CUT), Ok(Some(n)));
            prop_assert_eq!(reader.end(), Ok(()));
        }

        #[test]
        fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..24)) {
            let reader = Reader::new(&bytes);
            let _ = reader.clone().any();
            let _ = reader.clone().bytes();
            let _ = reader.clone().optional_bytes();
            let _ = reader.clone().fixed();
        }
    }

    #[test]
    fn numbers_lengths_and_flags_out_of_range_are_refused() {
        let too_long = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02];
        assert!(Reader::new(&too_long).any().is_err());
        let largest = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01];
        assert_eq!(Reader::new(&largest).any(), Ok(u64::MAX));
        assert!(Reader::new(&largest).bytes().is_err());
        assert!(Reader::new(&[0x80]).any().is_err());
        assert!(Reader::new(&[2]).flag().is_err());
    }
}
