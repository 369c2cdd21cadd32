//! Numbers and byte strings as bytes.
//!
//! A number takes seven bits a byte, the lowest first (LEB128), so that small
//! ones are short. What is close to something known is written as its
//! difference from it. A reader never panics and never believes a length: it
//! only hands out what is there.

use crate::limits::Invalid;

/// How many elements are reserved room for before any of them has been read,
/// whatever the input claims.
pub const MOST_RESERVED: usize = 1024;

/// Writes a number: 1 byte below 128, at most 10.
#[inline]
pub fn put_number(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Writes a number in the place of the byte at `at`. O(bytes behind it) from 128 on.
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

/// Writes a number that may be negative; short where it is close to zero.
#[inline]
pub fn put_signed(out: &mut Vec<u8>, n: i64) {
    put_number(out, ((n << 1) ^ (n >> 63)) as u64);
}

/// Writes a number as its difference from `base`.
#[inline]
pub fn put_delta(out: &mut Vec<u8>, n: u64, base: u64) {
    put_signed(out, n.wrapping_sub(base) as i64);
}

/// Writes a number or its absence.
pub fn put_optional(out: &mut Vec<u8>, n: Option<u64>) {
    put_flag(out, n.is_some());
    if let Some(n) = n {
        put_number(out, n);
    }
}

/// Writes yes or no.
pub fn put_flag(out: &mut Vec<u8>, flag: bool) {
    out.push(u8::from(flag));
}

/// Writes bytes behind their length.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Writes bytes or their absence.
pub fn put_optional_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    put_flag(out, bytes.is_some());
    if let Some(bytes) = bytes {
        put_bytes(out, bytes);
    }
}

/// Writes eight bytes, for what is as likely large as small.
pub fn put_fixed(out: &mut Vec<u8>, n: u64) {
    out.extend_from_slice(&n.to_le_bytes());
}

/// Reads what the functions above have written.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

const CUT_OFF: Invalid = Invalid("it ends too early");

impl<'a> Reader<'a> {
    /// Reads from the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// Whether everything has been read.
    pub fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// An error where something is left to read.
    pub fn end(self) -> Result<(), Invalid> {
        match self.is_at_end() {
            true => Ok(()),
            false => Err(Invalid("something follows its end")),
        }
    }

    /// One byte.
    #[inline]
    pub fn byte(&mut self) -> Result<u8, Invalid> {
        let (first, rest) = self.rest.split_first().ok_or(CUT_OFF)?;
        self.rest = rest;
        Ok(*first)
    }

    /// So many bytes.
    #[inline]
    pub fn take(&mut self, len: u64) -> Result<&'a [u8], Invalid> {
        let len = usize::try_from(len).map_err(|_| CUT_OFF)?;
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(CUT_OFF)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Everything that is left.
    #[inline]
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// A number.
    #[inline]
    pub fn number(&mut self) -> Result<u64, Invalid> {
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
        Err(Invalid("a number is beyond 64 bits"))
    }

    /// A number that may be negative.
    #[inline]
    pub fn signed(&mut self) -> Result<i64, Invalid> {
        let n = self.number()?;
        Ok((n >> 1) as i64 ^ -((n & 1) as i64))
    }

    /// A number written as its difference from `base`.
    #[inline]
    pub fn delta(&mut self, base: u64) -> Result<u64, Invalid> {
        Ok(base.wrapping_add(self.signed()? as u64))
    }

    /// A number or its absence.
    pub fn optional(&mut self) -> Result<Option<u64>, Invalid> {
        match self.flag()? {
            true => self.number().map(Some),
            false => Ok(None),
        }
    }

    /// Yes or no.
    pub fn flag(&mut self) -> Result<bool, Invalid> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Invalid("a flag is neither 0 nor 1")),
        }
    }

    /// Bytes behind their length.
    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8], Invalid> {
        let len = self.number()?;
        self.take(len)
    }

    /// Bytes or their absence.
    pub fn optional_bytes(&mut self) -> Result<Option<&'a [u8]>, Invalid> {
        match self.flag()? {
            true => self.bytes().map(Some),
            false => Ok(None),
        }
    }

    /// Eight bytes.
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
        fn numbers_come_back(n in any::<u64>(), shift in 0..64u32, base in any::<u64>()) {
            let n = n >> shift;
            let mut out = Vec::new();
            put_number(&mut out, n);
            put_signed(&mut out, n as i64);
            put_delta(&mut out, n, base);
            put_fixed(&mut out, n);
            put_optional(&mut out, Some(n));
            let mut reader = Reader::new(&out);
            prop_assert_eq!(reader.number(), Ok(n));
            prop_assert_eq!(reader.signed(), Ok(n as i64));
            prop_assert_eq!(reader.delta(base), Ok(n));
            prop_assert_eq!(reader.fixed(), Ok(n));
            prop_assert_eq!(reader.optional(), Ok(Some(n)));
            prop_assert_eq!(reader.end(), Ok(()));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..24)) {
            let reader = Reader::new(&bytes);
            let _ = reader.clone().number();
            let _ = reader.clone().bytes();
            let _ = reader.clone().optional_bytes();
            let _ = reader.clone().fixed();
        }
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let too_long = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02];
        assert!(Reader::new(&too_long).number().is_err());
        let largest = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01];
        assert_eq!(Reader::new(&largest).number(), Ok(u64::MAX));
        assert!(Reader::new(&largest).bytes().is_err());
        assert!(Reader::new(&[0x80]).number().is_err());
        assert!(Reader::new(&[2]).flag().is_err());
    }
}
