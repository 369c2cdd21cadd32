//! A reader of RESP2 replies that borrows from the receive buffer.

/// One reply. Its texts are slices of the buffer that it was read from.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// A status or an integer, as text.
    Text(&'a [u8]),
    /// A bulk string.
    Bulk(&'a [u8]),
    /// An error, with its prefix.
    Error(&'a [u8]),
    /// A null bulk string or array.
    Null,
    /// An array.
    Array(Vec<Reply<'a>>),
}

/// The error for bytes that are not RESP2.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed;

/// Reads the reply that starts at `at`. Returns it and where the next one starts,
/// or `None` if it is not complete yet.
pub fn read(buffer: &[u8], at: usize) -> Result<Option<(Reply<'_>, usize)>, Malformed> {
    let Some((line, next)) = line(buffer, at) else {
        return Ok(None);
    };
    let (&kind, rest) = line.split_first().ok_or(Malformed)?;
    match kind {
        b'+' | b':' => Ok(Some((Reply::Text(rest), next))),
        b'-' => Ok(Some((Reply::Error(rest), next))),
        b'$' => match length(rest)? {
            None => Ok(Some((Reply::Null, next))),
            Some(length) => Ok(buffer
                .get(next..next + length + 2)
                .map(|text| (Reply::Bulk(&text[..length]), next + length + 2))),
        },
        b'*' => match length(rest)? {
            None => Ok(Some((Reply::Null, next))),
            Some(length) => array(buffer, next, length),
        },
        _ => Err(Malformed),
    }
}

fn array(
    buffer: &[u8],
    mut at: usize,
    length: usize,
) -> Result<Option<(Reply<'_>, usize)>, Malformed> {
    let mut items = Vec::with_capacity(length.min(1024));
    for _ in 0..length {
        match read(buffer, at)? {
            None => return Ok(None),
            Some((item, next)) => {
                items.push(item);
                at = next;
            }
        }
    }
    Ok(Some((Reply::Array(items), at)))
}

fn line(buffer: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let rest = buffer.get(at..)?;
    let end = rest.iter().position(|&byte| byte == b'\r')?;
    (rest.len() > end + 1).then(|| (&rest[..end], at + end + 2))
}

/// Parses a length. Returns `None` for -1, the length of a null.
fn length(digits: &[u8]) -> Result<Option<usize>, Malformed> {
    if digits == b"-1" {
        return Ok(None);
    }
    let text = std::str::from_utf8(digits).map_err(|_| Malformed)?;
    text.parse().map(Some).map_err(|_| Malformed)
}

/// The items of a reply that a later command needs: ids or receipts. They are kept
/// in one buffer, so that nothing is allocated once it has grown.
#[derive(Default)]
pub struct Taken {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Taken {
    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Iterates over the items in the order of the reply.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let item = &self.text[start..end];
            start = end;
            item
        })
    }

    /// Removes all items and keeps the memory.
    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    fn push(&mut self, item: &[u8]) {
        self.text.extend_from_slice(item);
        self.ends.push(self.text.len());
    }
}

/// The place in a reply of the items that a later command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// DQ.FETCH: `[[id, receipt, attempt, payload], ...]`. The receipts are taken.
    Receipts,
    /// XREADGROUP: `[[key, [[id, fields], ...]]]`. The ids of entries are taken.
    Entries,
    /// A bulk string, unchanged.
    Bulk,
}

/// Replaces the items of `taken` by those of `reply`, which may have none.
pub fn take(shape: Shape, reply: &Reply<'_>, taken: &mut Taken) -> Result<(), Malformed> {
    taken.clear();
    match (shape, reply) {
        (_, Reply::Null) => Ok(()),
        (Shape::Bulk, Reply::Bulk(text)) => {
            taken.push(text);
            Ok(())
        }
        (Shape::Receipts, Reply::Array(messages)) => fields(messages, 1, taken),
        (Shape::Entries, Reply::Array(streams)) => {
            for stream in streams {
                match item(stream, 1) {
                    Some(Reply::Array(entries)) => fields(entries, 0, taken)?,
                    _ => return Err(Malformed),
                }
            }
            Ok(())
        }
        _ => Err(Malformed),
    }
}

fn fields(rows: &[Reply<'_>], column: usize, taken: &mut Taken) -> Result<(), Malformed> {
    for row in rows {
        match item(row, column) {
            Some(Reply::Text(text) | Reply::Bulk(text)) => taken.push(text),
            _ => return Err(Malformed),
        }
    }
    Ok(())
}

fn item<'r, 'a>(reply: &'r Reply<'a>, index: usize) -> Option<&'r Reply<'a>> {
    match reply {
        Reply::Array(items) => items.get(index),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FETCHED: &[u8] =
        b"*2\r\n*4\r\n$2\r\nm1\r\n:17\r\n:1\r\n$3\r\na\r\n\r\n*4\r\n$2\r\nm2\r\n:18\r\n:1\r\n$0\r\n\r\n";

    fn taken(shape: Shape, bytes: &[u8]) -> Vec<String> {
        let (reply, end) = read(bytes, 0).unwrap().unwrap();
        assert_eq!(end, bytes.len());
        let mut taken = Taken::default();
        take(shape, &reply, &mut taken).unwrap();
        let text = |item: &[u8]| String::from_utf8(item.to_vec()).unwrap();
        taken.iter().map(text).collect()
    }

    #[test]
    fn every_prefix_of_a_reply_is_incomplete() {
        for cut in 0..FETCHED.len() {
            assert_eq!(read(&FETCHED[..cut], 0), Ok(None), "cut at {cut}");
        }
    }

    #[test]
    fn the_items_of_each_shape_are_taken() {
        assert_eq!(taken(Shape::Receipts, FETCHED), ["17", "18"]);
        assert_eq!(taken(Shape::Receipts, b"*0\r\n"), [""; 0]);
        let read_group =
            b"*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n";
        assert_eq!(taken(Shape::Entries, read_group), ["1-0"]);
        assert_eq!(taken(Shape::Entries, b"*-1\r\n"), [""; 0]);
        assert_eq!(taken(Shape::Bulk, b"$2\r\nid\r\n"), ["id"]);
        assert_eq!(taken(Shape::Bulk, b"$-1\r\n"), [""; 0]);
    }

    #[test]
    fn bytes_that_are_not_resp_are_refused() {
        assert_eq!(read(b"?1\r\n", 0), Err(Malformed));
        assert_eq!(read(b"$x\r\n", 0), Err(Malformed));
    }
}
