//! A length in front of other bytes: seven bits of it in each byte, the low ones first.

/// The bits of a length in each byte. The one above says that another byte follows.
const BITS: u32 = 7;
/// The most bytes of a length.
const MOST: u32 = 4;

/// Writes a length of less than 2^28.
pub fn put_length(out: &mut impl Extend<u8>, mut len: usize) {
    while len >> BITS > 0 {
        out.extend([len as u8 | 1 << BITS]);
        len >>= BITS;
    }
    out.extend([len as u8]);
}

/// The length at the start of these bytes, and the bytes behind it; `None` if there is none.
#[inline]
pub fn take_length(mut bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut len = 0;
    for place in 0..MOST {
        let (byte, rest) = bytes.split_first()?;
        bytes = rest;
        len |= usize::from(byte & !(1 << BITS)) << (place * BITS);
        if byte >> BITS == 0 {
            return Some((len, bytes));
        }
    }
    None
}
