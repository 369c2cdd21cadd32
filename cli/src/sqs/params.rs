//! The parameters of an action, in the form of the JSON protocol.

use serde_json::{Map, Value as Json};

use super::fault::Fault;

/// The parameters of an action or of an entry of a batch.
pub type Params = Map<String, Json>;

/// Returns a text. A number is a text as well.
pub fn text(params: &Params, name: &str) -> Option<String> {
    match params.get(name)? {
        Json::String(text) => Some(text.clone()),
        Json::Null => None,
        other => Some(other.to_string()),
    }
}

/// Returns a text that must be there.
pub fn needed(params: &Params, name: &str) -> Result<String, Fault> {
    text(params, name)
        .filter(|text| !text.is_empty())
        .ok_or_else(|| Fault::missing(name))
}

/// Returns a number.
pub fn number(params: &Params, name: &str) -> Result<Option<i64>, Fault> {
    let Some(text) = text(params, name) else {
        return Ok(None);
    };
    match text.trim().parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(Fault::parameter(text, name, "Must be an integer.")),
    }
}

/// Returns a list of texts.
pub fn texts(params: &Params, name: &str) -> Vec<String> {
    let Some(Json::Array(items)) = params.get(name) else {
        return Vec::new();
    };
    let texts = items.iter().filter_map(Json::as_str);
    texts.map(str::to_owned).collect()
}

/// Returns a map.
pub fn map<'a>(params: &'a Params, name: &str) -> Option<&'a Params> {
    params.get(name)?.as_object()
}

/// Returns a map of texts.
pub fn text_map(params: &Params, name: &str) -> Vec<(String, String)> {
    let Some(map) = map(params, name) else {
        return Vec::new();
    };
    map.keys()
        .map(|key| (key.clone(), text(map, key).unwrap_or_default()))
        .collect()
}

/// Builds the parameters of an answer. What is empty is left out.
#[derive(Default)]
pub struct Built(Params);

impl Built {
    /// Adds a value, unless it is empty.
    pub fn with(mut self, name: &str, value: impl Into<Json>) -> Built {
        let value = value.into();
        let is_empty = match &value {
            Json::Null => true,
            Json::Array(items) => items.is_empty(),
            Json::Object(fields) => fields.is_empty(),
            _ => false,
        };
        if !is_empty {
            self.0.insert(name.to_owned(), value);
        }
        self
    }

    /// Returns the parameters.
    pub fn done(self) -> Params {
        self.0
    }
}
