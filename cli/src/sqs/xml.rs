//! The Query protocol: an answer of the JSON protocol as XML, or as the JSON of old clients.

use std::fmt::Write;

use serde_json::{json, Value as Json};

use super::fault::{Fault, Kind};
use super::params::Params;

const NAMESPACE: &str = "http://queue.amazonaws.com/doc/2012-11-05/";

/// Actions whose answer has no result.
const SILENT: [&str; 9] = [
    "AddPermission",
    "ChangeMessageVisibility",
    "DeleteMessage",
    "DeleteQueue",
    "PurgeQueue",
    "RemovePermission",
    "SetQueueAttributes",
    "TagQueue",
    "UntagQueue",
];

/// Returns the answer to an action.
pub fn answer(action: &str, result: &Params, request: &str) -> String {
    let mut xml = format!("<?xml version=\"1.0\"?><{action}Response xmlns=\"{NAMESPACE}\">");
    if !SILENT.contains(&action) {
        let mut inner = String::new();
        fields(&mut inner, action, result);
        match inner.is_empty() {
            true => write!(xml, "<{action}Result/>"),
            false => write!(xml, "<{action}Result>{inner}</{action}Result>"),
        }
        .unwrap_or_default();
    }
    xml.push_str("<ResponseMetadata>");
    element(&mut xml, "RequestId", request);
    let _ = write!(xml, "</ResponseMetadata></{action}Response>");
    xml
}

/// Returns the answer to an action for clients that ask the Query protocol for JSON.
pub fn answer_json(action: &str, result: &Params, request: &str) -> String {
    let mut shown = result.clone();
    if let Some(messages) = shown.remove("Messages") {
        shown.insert("messages".to_owned(), messages);
    }
    if let Some(Json::Object(attributes)) = result.get("Attributes") {
        let pairs = attributes.iter();
        let pairs: Json = pairs
            .map(|(name, value)| json!({ "Name": name, "Value": value }))
            .collect();
        shown.insert("Attributes".to_owned(), pairs);
    }
    let mut response = Params::new();
    if !SILENT.contains(&action) {
        response.insert(format!("{action}Result"), Json::Object(shown));
    }
    response.insert(
        "ResponseMetadata".to_owned(),
        json!({ "RequestId": request }),
    );
    json!({ format!("{action}Response"): response }).to_string()
}

/// Returns an error.
pub fn fault(fault: &Fault, request: &str) -> String {
    let mut xml = format!("<?xml version=\"1.0\"?><ErrorResponse xmlns=\"{NAMESPACE}\"><Error>");
    element(&mut xml, "Type", fault.kind.blame());
    element(&mut xml, "Code", &fault.kind.code());
    element(&mut xml, "Message", query_message(fault));
    xml.push_str("<Detail/></Error>");
    element(&mut xml, "RequestId", request);
    xml.push_str("</ErrorResponse>");
    xml
}

/// Returns an error for clients that ask the Query protocol for JSON.
pub fn fault_json(fault: &Fault, request: &str) -> String {
    let (blame, code) = (fault.kind.blame(), fault.kind.code());
    let error = json!({ "Type": blame, "Code": code, "Message": query_message(fault) });
    json!({ "Error": error, "RequestId": request }).to_string()
}

/// Returns the text of an error, which is another one in this protocol for a missing queue.
fn query_message(fault: &Fault) -> &str {
    match fault.kind {
        Kind::QueueDoesNotExist => "The specified queue does not exist for this wsdl version.",
        _ => &fault.message,
    }
}

fn fields(xml: &mut String, action: &str, result: &Params) {
    for (name, value) in result {
        match value {
            Json::Array(items) => {
                let name = match (name.as_str(), action) {
                    ("QueueUrls" | "queueUrls", _) => "QueueUrl",
                    ("Messages", _) => "Message",
                    ("Results", _) => "ListMessageMoveTasksResultEntry",
                    ("Failed", _) => "BatchResultErrorEntry",
                    ("Successful", "SendMessageBatch") => "SendMessageBatchResultEntry",
                    ("Successful", "DeleteMessageBatch") => "DeleteMessageBatchResultEntry",
                    ("Successful", _) => "ChangeMessageVisibilityBatchResultEntry",
                    (other, _) => other,
                };
                for item in items {
                    nested(xml, name, action, item);
                }
            }
            Json::Object(map) => {
                let (name, key) = match name.as_str() {
                    "Attributes" => ("Attribute", "Name"),
                    "MessageAttributes" => ("MessageAttribute", "Name"),
                    _ => ("Tag", "Key"),
                };
                for (field, value) in map {
                    let _ = write!(xml, "<{name}>");
                    element(xml, key, field);
                    nested(xml, "Value", action, value);
                    let _ = write!(xml, "</{name}>");
                }
            }
            value => nested(xml, name, action, value),
        }
    }
}

fn nested(xml: &mut String, name: &str, action: &str, value: &Json) {
    match value {
        Json::Object(inner) => {
            let _ = write!(xml, "<{name}>");
            fields(xml, action, inner);
            let _ = write!(xml, "</{name}>");
        }
        Json::String(text) => element(xml, name, text),
        other => element(xml, name, &other.to_string()),
    }
}

fn element(xml: &mut String, name: &str, text: &str) {
    let _ = write!(xml, "<{name}>");
    for c in text.chars() {
        match c {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '"' => xml.push_str("&quot;"),
            '\r' => xml.push_str("&#xD;"),
            '\n' => xml.push_str("&#xA;"),
            '\t' => xml.push_str("&#x9;"),
            // XML has no other control characters. Only a queue that something else than
            // the gateway fills can hold them.
            c if c < ' ' => xml.push('\u{fffd}'),
            c => xml.push(c),
        }
    }
    let _ = write!(xml, "</{name}>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_written_as_xml() {
        let result = json!({ "Messages": [{ "Body": "<\r", "Attributes": { "SenderId": "a" },
            "MessageAttributes": { "k": { "DataType": "String", "StringValue": "v" } } }] });
        let Json::Object(result) = result else {
            unreachable!()
        };
        let xml = answer("ReceiveMessage", &result, "1");
        assert!(xml.contains(
            "<ReceiveMessageResult><Message><Body>&lt;&#xD;</Body><Attribute><Name>SenderId</Name>\
             <Value>a</Value></Attribute><MessageAttribute><Name>k</Name><Value>\
             <DataType>String</DataType><StringValue>v</StringValue></Value></MessageAttribute>\
             </Message></ReceiveMessageResult>"
        ));
        assert!(answer("ReceiveMessage", &Params::new(), "1").contains("<ReceiveMessageResult/>"));
        assert!(!answer("DeleteMessage", &Params::new(), "1").contains("Result"));
    }
}
