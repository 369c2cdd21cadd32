//! A claimed job: everything that its queue kept of it, as the claim in the source packed it.

use rmpv::Value;

/// Bytes of a peer.
pub type Bytes = Vec<u8>;

/// A claimed job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its number within the import, from 1 on without gaps.
    pub number: u64,
    /// The name of the place from which it was taken, such as `wait`.
    pub place: String,
    /// Its score there as the server wrote it, with all of its digits. Empty in lists.
    pub score: String,
    /// Its id.
    pub id: Bytes,
    /// Its fields, in the order of the server.
    pub fields: Vec<(Bytes, Bytes)>,
    /// The keys that belonged to it, each part with its name first.
    pub extra: Vec<Vec<Bytes>>,
    /// The packed bytes, which the ledger keeps.
    pub packed: Bytes,
}

impl Record {
    /// Reads what a claim has packed. `None` if no claim of this version has packed it.
    pub fn unpack(packed: Bytes) -> Option<Record> {
        let value = rmpv::decode::read_value(&mut packed.as_slice()).ok()?;
        let Value::Array(parts) = value else {
            return None;
        };
        let [number, place, score, id, fields, extra] = <[Value; 6]>::try_from(parts).ok()?;
        let fields = list(fields)?
            .into_iter()
            .map(bytes)
            .collect::<Option<Vec<_>>>()?;
        let fields = fields
            .chunks_exact(2)
            .filter_map(|pair| Some((pair.first()?.clone(), pair.get(1)?.clone())))
            .collect();
        let extra = list(extra)?
            .into_iter()
            .map(|part| list(part)?.into_iter().map(bytes).collect())
            .collect::<Option<_>>()?;
        Some(Record {
            number: number.as_u64()?,
            place: String::from_utf8(bytes(place)?).ok()?,
            score: String::from_utf8(bytes(score)?).ok()?,
            id: bytes(id)?,
            fields,
            extra,
            packed,
        })
    }

    /// Returns the value of a field.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        let found = self
            .fields
            .iter()
            .find(|(field, _)| field == name.as_bytes());
        found.map(|(_, value)| value.as_slice())
    }

    /// Returns the value of a field that is a text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.field(name)
            .and_then(|value| std::str::from_utf8(value).ok())
    }

    /// Returns the value of a field that is a number, or 0.
    pub fn number_of(&self, name: &str) -> i64 {
        self.text(name)
            .and_then(|text| text.parse().ok())
            .unwrap_or(0)
    }

    /// Returns the parts of this name, each without the name.
    pub fn extras<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [Bytes]> + 'a {
        self.extra
            .iter()
            .filter(move |part| part.first().is_some_and(|first| first == name.as_bytes()))
            .filter_map(|part| part.get(1..))
    }

    /// Returns the score as a number.
    pub fn score(&self) -> f64 {
        self.score.parse().unwrap_or(0.0)
    }
}

fn list(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(items) => Some(items),
        _ => None,
    }
}

fn bytes(value: Value) -> Option<Bytes> {
    match value {
        Value::String(text) => Some(text.into_bytes()),
        Value::Binary(bytes) => Some(bytes),
        _ => None,
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Packs a record as the scripts do.
    pub fn packed(
        place: &str,
        score: &str,
        id: &str,
        fields: &[(&str, &str)],
        extra: &[&[&str]],
    ) -> Record {
        let text = |text: &str| Value::Binary(text.as_bytes().to_vec());
        let fields = fields
            .iter()
            .flat_map(|(name, value)| [text(name), text(value)]);
        let extra = extra
            .iter()
            .map(|part| Value::Array(part.iter().map(|word| text(word)).collect()));
        let value = Value::Array(vec![
            Value::from(7),
            text(place),
            text(score),
            text(id),
            Value::Array(fields.collect()),
            Value::Array(extra.collect()),
        ]);
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, &value).unwrap();
        Record::unpack(bytes).unwrap()
    }

    #[test]
    fn a_record_keeps_bytes_that_are_no_text() {
        let value = Value::Array(vec![
            Value::from(1),
            Value::from("wait"),
            Value::from(""),
            Value::Binary(vec![0xff, 0]),
            Value::Array(vec![Value::from("data"), Value::Binary(vec![0xfe])]),
            Value::Array(vec![]),
        ]);
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, &value).unwrap();
        let record = Record::unpack(bytes.clone()).unwrap();
        assert_eq!(record.id, [0xff, 0]);
        assert_eq!(record.field("data"), Some(&[0xfe][..]));
        assert_eq!(record.packed, bytes);
        assert_eq!(Record::unpack(b"\x93\x01".to_vec()), None);
    }
}
