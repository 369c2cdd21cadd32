//! Templates: commands with blanks, such as `XADD q * f {payload}`.
//!
//! | blank | becomes |
//! |---|---|
//! | `{payload}`, `{payload:n}` | one word, or n words, of random bytes |
//! | `{uuid}` | a random UUID, the same within one command |
//! | `{seq}`, `{seq:n}` | the number of the command, or that modulo n |
//! | `{rand:low:high}` | an integer of that range, both ends included |
//! | `{conn}` | the number of the connection |
//! | `{taken}` | an item of the last reply that was taken: the word is repeated for each of them |
//! | `{count}` | the number of these items |
//!
//! If nothing was taken, the part in brackets is left out, and a command with
//! `{taken}` outside of brackets is not sent at all.

use crate::resp::Taken;

/// The values of the blanks of one command.
pub struct Values<'a> {
    /// The number of the command.
    pub seq: u64,
    /// The number of the connection.
    pub connection: usize,
    /// Bytes of a payload.
    pub payload: usize,
    /// Items of the last reply that was taken.
    pub taken: &'a Taken,
}

enum Part {
    Fixed(Vec<u8>),
    Payload,
    Uuid,
    Seq(u64),
    Random(u64, u64),
    Connection,
    Count,
    Taken,
}

enum Word {
    /// A word without blanks, with its RESP length.
    Fixed(Vec<u8>),
    /// This number of words of payload.
    Payloads(usize),
    Parts(Vec<Part>),
    /// A word that is repeated for each item that was taken.
    EachTaken(Vec<Part>),
}

/// A command that can be written many times, each time with other values in its blanks.
pub struct Template {
    always: Vec<Word>,
    /// Words that follow `always` if something was taken.
    bracketed: Vec<Word>,
    needs_taken: bool,
}

impl Template {
    /// Parses a command, whose words are separated by spaces. Brackets must be
    /// words of their own, at the end of the command.
    ///
    /// # Errors
    /// A sentence that names the word which is wrong.
    pub fn parse(text: &str) -> Result<Template, String> {
        let mut always = Vec::new();
        let mut bracketed = Vec::new();
        let mut inside = false;
        let mut closed = false;
        for word in text.split_whitespace() {
            match word {
                "[" if !inside && !closed => inside = true,
                "]" if inside => (inside, closed) = (false, true),
                _ if closed => return Err(format!("{text}: words after the bracket")),
                _ if inside => bracketed.push(parse_word(word)?),
                _ => always.push(parse_word(word)?),
            }
        }
        if inside || always.is_empty() {
            return Err(format!("{text}: an open bracket, or no command"));
        }
        let needs_taken = always.iter().any(|word| matches!(word, Word::EachTaken(_)));
        Ok(Template {
            always,
            bracketed,
            needs_taken,
        })
    }

    /// Appends the command to `out`. Returns false and appends nothing if it needs
    /// an item and none was taken.
    pub fn write(&self, out: &mut Vec<u8>, values: &Values<'_>) -> bool {
        let taken = values.taken.len();
        if self.needs_taken && taken == 0 {
            return false;
        }
        let bracketed: &[Word] = if taken == 0 { &[] } else { &self.bracketed };
        let words = || self.always.iter().chain(bracketed);
        let count = words().map(|word| word.count(taken)).sum();
        out.push(b'*');
        decimal(out, count);
        out.extend_from_slice(b"\r\n");
        let mut uuid = None;
        for word in words() {
            word.write(out, values, &mut uuid);
        }
        true
    }
}

impl Word {
    fn count(&self, taken: usize) -> u64 {
        match self {
            Word::Fixed(_) | Word::Parts(_) => 1,
            Word::Payloads(count) => *count as u64,
            Word::EachTaken(_) => taken as u64,
        }
    }

    fn write(&self, out: &mut Vec<u8>, values: &Values<'_>, uuid: &mut Option<[u8; 36]>) {
        match self {
            Word::Fixed(bytes) => out.extend_from_slice(bytes),
            Word::Payloads(count) => {
                for _ in 0..*count {
                    out.push(b'$');
                    decimal(out, values.payload as u64);
                    out.extend_from_slice(b"\r\n");
                    random_bytes(out, values.payload);
                    out.extend_from_slice(b"\r\n");
                }
            }
            Word::Parts(parts) => bulk(out, parts, values, &[], uuid),
            Word::EachTaken(parts) => {
                for item in values.taken.iter() {
                    bulk(out, parts, values, item, uuid);
                }
            }
        }
    }
}

fn parse_word(word: &str) -> Result<Word, String> {
    if let Some(count) = word
        .strip_prefix("{payload:")
        .and_then(|rest| rest.strip_suffix('}'))
    {
        return Ok(Word::Payloads(number(count)? as usize));
    }
    let mut parts = Vec::new();
    let mut rest = word;
    while let Some(open) = rest.find('{') {
        let close = rest[open..]
            .find('}')
            .ok_or_else(|| format!("{word}: no closing brace"))?;
        if open > 0 {
            parts.push(Part::Fixed(rest[..open].into()));
        }
        parts.push(parse_blank(&rest[open + 1..open + close])?);
        rest = &rest[open + close + 1..];
    }
    if parts.is_empty() {
        return Ok(Word::Fixed(
            format!("${}\r\n{word}\r\n", word.len()).into_bytes(),
        ));
    }
    if !rest.is_empty() {
        parts.push(Part::Fixed(rest.into()));
    }
    if parts.iter().any(|part| matches!(part, Part::Taken)) {
        return Ok(Word::EachTaken(parts));
    }
    Ok(match parts[..] {
        [Part::Payload] => Word::Payloads(1),
        _ => Word::Parts(parts),
    })
}

fn parse_blank(blank: &str) -> Result<Part, String> {
    let mut fields = blank.split(':');
    let part = match (fields.next(), fields.next(), fields.next()) {
        (Some("payload"), None, _) => Part::Payload,
        (Some("uuid"), None, _) => Part::Uuid,
        (Some("seq"), None, _) => Part::Seq(u64::MAX),
        (Some("seq"), Some(modulo), None) => Part::Seq(number(modulo)?.max(1)),
        (Some("rand"), Some(low), Some(high)) => Part::Random(number(low)?, number(high)?),
        (Some("conn"), None, _) => Part::Connection,
        (Some("count"), None, _) => Part::Count,
        (Some("taken"), None, _) => Part::Taken,
        _ => return Err(format!("{{{blank}}} is no blank")),
    };
    match part {
        Part::Random(low, high) if low > high => Err(format!("{{{blank}}}: an empty range")),
        _ => Ok(part),
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text} is no number"))
}

fn bulk(
    out: &mut Vec<u8>,
    parts: &[Part],
    values: &Values<'_>,
    item: &[u8],
    uuid: &mut Option<[u8; 36]>,
) {
    // The length is only known after the word is written. Two digits are reserved for
    // it, which nearly always fit. Otherwise the word moves, because the server accepts
    // no leading zero.
    let start = out.len();
    out.extend_from_slice(b"$00\r\n");
    let body = out.len();
    for part in parts {
        match part {
            Part::Fixed(text) => out.extend_from_slice(text),
            Part::Payload => random_bytes(out, values.payload),
            Part::Uuid => out.extend_from_slice(uuid.get_or_insert_with(random_uuid)),
            Part::Seq(modulo) => decimal(out, values.seq % modulo),
            Part::Random(low, high) => decimal(out, fastrand::u64(*low..=*high)),
            Part::Connection => decimal(out, values.connection as u64),
            Part::Count => decimal(out, values.taken.len() as u64),
            Part::Taken => out.extend_from_slice(item),
        }
    }
    let length = out.len() - body;
    if (10..100).contains(&length) {
        out[start + 1] = b'0' + (length / 10) as u8;
        out[start + 2] = b'0' + (length % 10) as u8;
    } else {
        out.splice(start + 1..start + 3, length.to_string().into_bytes());
    }
    out.extend_from_slice(b"\r\n");
}

fn decimal(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

fn random_bytes(out: &mut Vec<u8>, length: usize) {
    let start = out.len();
    out.resize(start + length, 0);
    fastrand::fill(&mut out[start..]);
}

fn random_uuid() -> [u8; 36] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut bits = fastrand::u128(..);
    let mut text = [0; 36];
    for (at, digit) in text.iter_mut().enumerate() {
        *digit = if matches!(at, 8 | 13 | 18 | 23) {
            b'-'
        } else {
            let nibble = (bits & 15) as usize;
            bits >>= 4;
            HEX[nibble]
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::{read, take, Shape};

    fn taken(receipts: &[u64]) -> Taken {
        let mut bytes = format!("*{}\r\n", receipts.len());
        for receipt in receipts {
            bytes += &format!("*4\r\n$1\r\ni\r\n:{receipt}\r\n:1\r\n$0\r\n\r\n");
        }
        let (reply, _) = read(bytes.as_bytes(), 0).unwrap().unwrap();
        let mut taken = Taken::default();
        take(Shape::Receipts, &reply, &mut taken).unwrap();
        taken
    }

    fn written(template: &str, receipts: &[u64]) -> Option<String> {
        let mut out = Vec::new();
        let values = Values {
            seq: 12,
            connection: 3,
            payload: 0,
            taken: &taken(receipts),
        };
        let sent = Template::parse(template).unwrap().write(&mut out, &values);
        sent.then(|| String::from_utf8(out).unwrap())
    }

    #[test]
    fn blanks_are_filled() {
        assert_eq!(
            written("SET k:{seq}:{conn} {seq:5}", &[]).unwrap(),
            "*3\r\n$3\r\nSET\r\n$6\r\nk:12:3\r\n$1\r\n2\r\n"
        );
        assert_eq!(
            written("P {payload:2}", &[]).unwrap(),
            "*3\r\n$1\r\nP\r\n$0\r\n\r\n$0\r\n\r\n"
        );
    }

    #[test]
    fn words_with_taken_are_repeated_or_left_out() {
        let fetch = "F q [ ACK {count} {taken} ]";
        assert_eq!(written(fetch, &[]).unwrap(), "*2\r\n$1\r\nF\r\n$1\r\nq\r\n");
        assert_eq!(
            written(fetch, &[7, 8]).unwrap(),
            "*6\r\n$1\r\nF\r\n$1\r\nq\r\n$3\r\nACK\r\n$1\r\n2\r\n$1\r\n7\r\n$1\r\n8\r\n"
        );
        assert_eq!(written("ACK q {taken}", &[]), None);
        assert_eq!(
            written("GET m:{taken}", &[7]).unwrap(),
            "*2\r\n$3\r\nGET\r\n$3\r\nm:7\r\n"
        );
    }

    #[test]
    fn long_words_have_the_right_length() {
        let long = written(&format!("{}{{seq}}", "x".repeat(120)), &[]).unwrap();
        assert!(long.starts_with("*1\r\n$122\r\nxxx"), "{long}");
    }

    #[test]
    fn wrong_templates_are_refused() {
        for wrong in [
            "",
            "{nothing}",
            "P {seq",
            "P [ x",
            "P [ x ] y",
            "{rand:2:1}",
        ] {
            assert!(Template::parse(wrong).is_err(), "{wrong}");
        }
    }
}
