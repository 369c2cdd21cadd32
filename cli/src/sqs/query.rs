//! The Query protocol: the form of a request as parameters of the JSON protocol.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;
use serde_json::Value as Json;

use super::params::Params;

/// The most fields of a form. A batch of ten messages with ten attributes each has some 600.
const FIELDS: usize = 10_000;

/// The most parts of a name with dots. The longest that there is has seven; a tree is as deep.
const PARTS: usize = 16;

/// Names with dots as a tree. The numbers of lists are in their order.
#[derive(Default)]
struct Node {
    value: Option<String>,
    inner: BTreeMap<(u64, String), Node>,
}

impl Node {
    fn add(&mut self, name: &str, value: String) {
        if name.split('.').count() > PARTS {
            return;
        }
        let mut node = self;
        for part in name.split('.') {
            let number = part.parse().unwrap_or(0);
            node = node.inner.entry((number, part.to_owned())).or_default();
        }
        node.value = Some(value);
    }

    fn get(&self, name: &str) -> Option<&Node> {
        self.inner.get(&(0, name.to_owned()))
    }

    fn text(&self) -> Json {
        Json::from(self.value.clone().unwrap_or_default())
    }

    /// Returns the items of a list. One that has no number is an item by itself.
    fn items(&self, first: &str) -> Vec<&Node> {
        match self.value.is_some() || self.get(first).is_some() {
            true => vec![self],
            false => self.inner.values().collect(),
        }
    }

    fn texts(&self) -> Json {
        let items = self.items("");
        items.into_iter().map(Node::text).collect()
    }

    /// Returns a map that is written as a list of names and values.
    fn map(&self, key: &str, value: fn(&Node) -> Json) -> Json {
        let mut map = Params::new();
        for item in self.items(key) {
            if let Some(name) = item.get(key).and_then(|name| name.value.clone()) {
                map.insert(name, item.get("Value").map_or(Json::Null, value));
            }
        }
        Json::Object(map)
    }

    fn fields(&self) -> Json {
        let fields = self.inner.iter();
        Json::Object(
            fields
                .map(|((_, name), node)| (name.clone(), node.text()))
                .collect(),
        )
    }

    fn params(&self) -> Params {
        let mut params = Params::new();
        for ((_, name), node) in &self.inner {
            let (name, value) = match name.as_str() {
                "AttributeName" => ("AttributeNames", node.texts()),
                "MessageAttributeName" => ("MessageAttributeNames", node.texts()),
                "MessageSystemAttributeName" => ("MessageSystemAttributeNames", node.texts()),
                "TagKey" => ("TagKeys", node.texts()),
                "ActionName" => ("Actions", node.texts()),
                "AWSAccountId" => ("AWSAccountIds", node.texts()),
                "Attribute" => ("Attributes", node.map("Name", Node::text)),
                "Tag" => ("Tags", node.map("Key", Node::text)),
                "MessageAttribute" => ("MessageAttributes", node.map("Name", Node::fields)),
                "MessageSystemAttribute" => {
                    ("MessageSystemAttributes", node.map("Name", Node::fields))
                }
                "SendMessageBatchRequestEntry"
                | "DeleteMessageBatchRequestEntry"
                | "ChangeMessageVisibilityBatchRequestEntry" => {
                    let entries = node.items("Id").into_iter();
                    let entries = entries.map(|entry| Json::Object(entry.params()));
                    ("Entries", entries.collect())
                }
                other => (other, node.text()),
            };
            params.insert(name.to_owned(), value);
        }
        params
    }
}

/// Reads the names and values of a form, as many of them as an action can have.
pub fn pairs(form: &str) -> Vec<(String, String)> {
    let decoded = |text: &str| {
        let text = text.replace('+', " ");
        percent_decode_str(&text).decode_utf8_lossy().into_owned()
    };
    form.split('&')
        .filter(|pair| !pair.is_empty())
        .take(FIELDS)
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect()
}

/// Returns the parameters that a form holds.
pub fn params(pairs: Vec<(String, String)>) -> Params {
    let mut root = Node::default();
    for (name, value) in pairs {
        root.add(&name, value);
    }
    root.params()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_becomes_parameters() {
        let form = "Action=X&AttributeName.2=b&AttributeName.1=a&AttributeName.10=c\
            &Attribute.1.Name=Delay%53&Attribute.1.Value=a+b&Attribute.2.Name=n&Attribute.2.Value=\
            &MessageAttribute.1.Name=k&MessageAttribute.1.Value.DataType=String\
            &MessageAttribute.1.Value.StringValue=v\
            &SendMessageBatchRequestEntry.1.Id=1&SendMessageBatchRequestEntry.1.MessageBody=x\
            &SendMessageBatchRequestEntry.1.MessageAttribute.1.Name=y\
            &SendMessageBatchRequestEntry.1.MessageAttribute.1.Value.DataType=Number&Tag.Key=t&Tag.Value=u";
        let deep = format!("{form}&{}=x", "a.".repeat(1_000_000));
        assert_eq!(params(pairs(&deep)), params(pairs(form)));
        assert_eq!(
            Json::Object(params(pairs(form))).to_string(),
            concat!(
                r#"{"Action":"X","Attributes":{"DelayS":"a b","n":""},"AttributeNames":["a","b","c"],"#,
                r#""MessageAttributes":{"k":{"DataType":"String","StringValue":"v"}},"#,
                r#""Entries":[{"Id":"1","MessageAttributes":{"y":{"DataType":"Number"}},"MessageBody":"x"}],"#,
                r#""Tags":{"t":"u"}}"#
            )
        );
    }
}
