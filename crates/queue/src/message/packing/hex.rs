//! Ids in the text of a payload: hexadecimal digits, which are kept as the bytes that they stand
//! for.
//!
//! An id has nothing in common with another one, so a dictionary saves nothing of it, and it cuts
//! what lies around it into short pieces. A payload often has the same one several times, and its
//! message's own. So ids are taken out of the text, and a mark stays in the place of each.

use std::collections::HashMap;
use std::ops::Range;

use const_hex::{decode_to_slice, encode_to_slice};
use smallvec::SmallVec;

use crate::message::id::uuid_text;

/// The least of the marks, which UTF-8 never has.
const MARKS: u8 = 0xF8;
/// In the place of a UUID, whose 16 bytes are the next ones of those taken out.
const UUID: u8 = MARKS;
/// In the place of other digits. The number of their bytes follows.
const DIGITS: u8 = 0xF9;
/// In the place of the id of the message.
const OWN: u8 = 0xFA;
/// In the place of the first id that was taken out; the marks above it are for the next ones.
const AGAIN: u8 = 0xFB;
/// The ids for which there is a mark when they come again.
const KNOWN: usize = (u8::MAX - AGAIN) as usize + 1;

/// The length of a UUID as text, and the places of its hyphens.
const UUID_LEN: usize = 36;
const HYPHENS: [usize; 4] = [8, 13, 18, 23];
/// The bytes of a UUID.
const UUID_BYTES: usize = 16;
/// The bytes of other digits that are taken out. Fewer could as well be a time or a number.
const BYTES: Range<usize> = 12..33;

/// One of so many payloads must have an id for a dictionary to have it.
const COMMON: usize = 64;

fn is_digit(byte: &u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

fn is_uuid(text: &[u8]) -> bool {
    let mut bytes = text.iter().zip(0..);
    bytes.all(|(byte, at)| match HYPHENS.contains(&at) {
        true => *byte == b'-',
        false => is_digit(byte),
    })
}

/// The place of the first id in `text` that begins at `from` or later.
fn find(text: &[u8], mut from: usize) -> Option<Range<usize>> {
    loop {
        let rest = text.get(from..)?;
        let begin = from + rest.iter().position(is_digit)?;
        let digits = text.get(begin..)?.iter().take_while(|byte| is_digit(byte));
        let end = begin + digits.count();
        let len = end - begin;
        if len == HYPHENS[0] {
            let end = begin + UUID_LEN;
            if text.get(begin..end).is_some_and(is_uuid) {
                return Some(begin..end);
            }
        } else if len.is_multiple_of(2) && BYTES.contains(&(len / 2)) {
            return Some(begin..end);
        }
        from = end;
    }
}

/// All ids in a text.
pub fn ids(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let place = find(text, from)?;
        from = place.end;
        text.get(place)
    })
}

/// The ids that many of these payloads have: they stay where they are, for a dictionary knows them.
pub fn common<'a>(payloads: impl ExactSizeIterator<Item = &'a [u8]>) -> Vec<Box<[u8]>> {
    let least = (payloads.len() / COMMON).max(2);
    let mut counts: HashMap<&[u8], (usize, usize)> = HashMap::new();
    for (payload, number) in payloads.zip(1..) {
        for id in ids(payload) {
            let (count, last) = counts.entry(id).or_default();
            *count += usize::from(std::mem::replace(last, number) != number);
        }
    }
    let often = counts.into_iter().filter(|(_, (count, _))| *count >= least);
    let mut often: Vec<Box<[u8]>> = often.map(|(id, _)| id.into()).collect();
    often.sort_unstable();
    often
}

/// A payload in parts.
#[derive(Debug, Default)]
pub struct Parts {
    /// The text with marks in it.
    pub text: Vec<u8>,
    /// The bytes of the ids that were taken out.
    pub ids: Vec<u8>,
}

impl Parts {
    /// Takes the ids out of a payload. `own` is the id of its message. Those among `common`, which
    /// is sorted, stay in the text. Returns whether that is possible.
    pub fn take_out(&mut self, payload: &[u8], own: Option<&[u8]>, common: &[Box<[u8]>]) -> bool {
        self.text.clear();
        self.ids.clear();
        if payload.iter().any(|byte| *byte >= MARKS) {
            return false;
        }
        let mut known = SmallVec::<[&[u8]; KNOWN]>::new();
        let (mut from, mut copied) = (0, 0);
        while let Some(place) = find(payload, from) {
            from = place.end;
            let id = payload.get(place.clone()).unwrap_or_default();
            if common.binary_search_by(|one| (**one).cmp(id)).is_ok() {
                continue;
            }
            let before = payload.get(copied..place.start);
            self.text.extend_from_slice(before.unwrap_or_default());
            copied = place.end;
            if own == Some(id) {
                self.text.push(OWN);
            } else if let Some(number) = known.iter().position(|one| *one == id) {
                self.text.push(AGAIN + number as u8);
            } else {
                if known.len() < KNOWN {
                    known.push(id);
                }
                self.take_new(id);
            }
        }
        let rest = payload.get(copied..);
        self.text.extend_from_slice(rest.unwrap_or_default());
        true
    }

    fn take_new(&mut self, id: &[u8]) {
        let digits: SmallVec<[u8; 64]> = id.iter().copied().filter(is_digit).collect();
        match id.len() == digits.len() {
            true => self.text.extend([DIGITS, (id.len() / 2) as u8]),
            false => self.text.push(UUID),
        }
        let mut bytes = [0; BYTES.end];
        let bytes = bytes.get_mut(..digits.len() / 2).unwrap_or_default();
        // They are digits, and an even number of them.
        let _ = decode_to_slice(&digits, bytes);
        self.ids.extend_from_slice(bytes);
    }
}

/// The payload of `len` bytes with this text, these ids in the places of its marks, and the id `own`
/// of its message; `None` if there is none. Takes little more memory than that.
pub fn put_back(text: &[u8], mut ids: &[u8], own: Option<&[u8]>, len: usize) -> Option<Vec<u8>> {
    let mut payload = Vec::with_capacity(len);
    let mut known = SmallVec::<[Range<usize>; KNOWN]>::new();
    let mut text = text.iter();
    loop {
        let rest = text.as_slice();
        let plain = rest.iter().position(|byte| *byte >= MARKS);
        let (plain, marked) = rest.split_at(plain.unwrap_or(rest.len()));
        payload.extend_from_slice(plain);
        text = marked.iter();
        let begin = payload.len();
        match text.next() {
            None => break,
            Some(&OWN) => payload.extend_from_slice(own?),
            Some(mark @ (&UUID | &DIGITS)) => {
                let count = match *mark {
                    UUID => UUID_BYTES,
                    _ => usize::from(*text.next()?),
                };
                let (id, rest) = ids.split_at_checked(count)?;
                ids = rest;
                match <&[u8; UUID_BYTES]>::try_from(id) {
                    Ok(id) if *mark == UUID => payload.extend_from_slice(&uuid_text(id)),
                    _ => {
                        payload.resize(begin + 2 * count, 0);
                        encode_to_slice(id, payload.get_mut(begin..)?).ok()?;
                    }
                }
                if known.len() < KNOWN {
                    known.push(begin..payload.len());
                }
            }
            Some(mark) => {
                let place = known.get(usize::from(*mark - AGAIN))?.clone();
                payload.extend_from_within(place);
            }
        }
        if payload.len() > len {
            return None;
        }
    }
    (payload.len() == len && ids.is_empty()).then_some(payload)
}
