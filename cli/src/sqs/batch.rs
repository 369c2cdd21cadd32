//! The entries of a batch.

use std::collections::HashSet;

use serde_json::{json, Value as Json};

use super::fault::{Fault, Kind};
use super::params::{self, Params};
use super::request::Call;

/// Maximum number of entries.
const MOST: usize = 10;

/// An entry.
#[derive(Debug)]
pub struct Entry {
    /// Its name in the batch.
    pub id: String,
    /// Its parameters.
    pub params: Params,
}

/// Returns the entries of a batch, which must be well formed.
pub fn entries(call: &Call) -> Result<Vec<Entry>, Fault> {
    let items = match call.params.get("Entries") {
        Some(Json::Array(items)) if !items.is_empty() => items,
        _ => {
            return Err(Fault::new(
                Kind::EmptyBatchRequest,
                format!(
                    "There should be at least one {}RequestEntry in the request.",
                    call.action
                ),
            ))
        }
    };
    if items.len() > MOST {
        return Err(Fault::new(
            Kind::TooManyEntriesInBatchRequest,
            format!(
                "Maximum number of entries per request are {MOST}. You have sent {}.",
                items.len()
            ),
        ));
    }
    let mut entries = Vec::with_capacity(items.len());
    let mut ids = HashSet::new();
    for item in items {
        let params = item.as_object().cloned().unwrap_or_default();
        let id = params::text(&params, "Id").unwrap_or_default();
        let letter = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if !(1..=80).contains(&id.len()) || !id.chars().all(letter) {
            return Err(Fault::new(
                Kind::InvalidBatchEntryId,
                "A batch entry id can only contain alphanumeric characters, hyphens and \
                 underscores. It can be at most 80 letters long.",
            ));
        }
        if !ids.insert(id.clone()) {
            return Err(Fault::new(
                Kind::BatchEntryIdsNotDistinct,
                format!("Id {id} repeated."),
            ));
        }
        entries.push(Entry { id, params });
    }
    Ok(entries)
}

/// Returns the result of an entry that has failed.
pub fn failed(id: &str, fault: &Fault) -> Json {
    json!({
        "Id": id,
        "SenderFault": fault.kind.blame() == "Sender",
        "Code": fault.kind.code(),
        "Message": fault.message,
    })
}
