//! The keys of an import, beside those of the queue at the source and in the slot of the queue at the target.

use super::record::Bytes;

/// The keys of an import at both ends.
#[derive(Debug, Clone)]
pub struct Keys {
    /// The list of the jobs that are claimed and not yet deleted.
    pub claim: Bytes,
    /// A hash with the id of the run and the number of its last job.
    pub state: Bytes,
    /// The lease, which names the ledger.
    pub lease: Bytes,
    /// The claimed jobs that stay, until they are put back.
    pub stays: Bytes,
    /// The jobs that could not be put back, because their ids are in use again.
    pub conflicts: Bytes,
    /// How far an undo has come.
    pub undone: Bytes,
    /// The beginning of the keys of the queue.
    pub stem: Bytes,
}

impl Keys {
    /// Returns the keys beside those of a queue.
    pub fn of(stem: Bytes) -> Keys {
        let beside = |name: &str| [stem.as_slice(), b":dq:", name.as_bytes()].concat();
        Keys {
            claim: beside("claim"),
            state: beside("import"),
            lease: beside("lease"),
            stays: beside("stays"),
            conflicts: beside("conflicts"),
            undone: beside("undone"),
            stem,
        }
    }
}

/// Returns a key of the import `id` in the slot of the queue `key`.
pub fn at_target(key: &[u8], what: &str, id: &str) -> String {
    let name = String::from_utf8_lossy(key);
    let tag = name
        .split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'));
    let tag = tag.map(|(tag, _)| tag).filter(|tag| !tag.is_empty());
    format!("dq:{what}:{{{}}}:{id}", tag.unwrap_or(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marker_is_in_the_slot_of_the_queue() {
        for (key, tag) in [
            ("bull:mails", "{bull:mails}"),
            ("{bull}:mails", "{bull}"),
            ("a{b}c{d}", "{b}"),
        ] {
            assert_eq!(
                at_target(key.as_bytes(), "import", "1"),
                format!("dq:import:{tag}:1")
            );
        }
    }
}
