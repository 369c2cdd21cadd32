//! Requests: which protocol they speak, who sends them, and what they ask for.

use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::body::Bytes;
use axum::http::{HeaderMap, Method, Uri, Version};
use serde_json::Value as Json;

use super::fault::{Fault, Kind};
use super::keys::Key;
use super::params::Params;
use super::query;
use crate::web::is_ours;

/// How a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// JSON 1.0.
    Json,
    /// The Query protocol, with answers in XML.
    Query,
    /// The Query protocol, with answers in JSON.
    QueryJson,
}

/// A request.
pub struct Call {
    /// The action that it asks for.
    pub action: String,
    /// With which parameters.
    pub params: Params,
    /// The key that has signed it.
    pub key: Arc<Key>,
    /// The beginning of the URLs of queues for this client.
    pub base: String,
    /// The header of a trace.
    pub trace: Option<String>,
}

impl Call {
    /// Returns who sends messages by this request.
    pub fn sender(&self) -> String {
        match self.key.id.is_empty() {
            true => "ANONYMOUS".to_owned(),
            false => self.key.id.clone(),
        }
    }
}

/// A request as it has come.
pub struct Incoming {
    /// Its method.
    pub method: Method,
    /// Its address.
    pub uri: Uri,
    /// The version of HTTP.
    pub version: Version,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

impl Incoming {
    /// Returns a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the protocol.
    pub fn protocol(&self) -> Protocol {
        let kind = self.header("content-type").unwrap_or_default();
        if self.header("x-amz-target").is_some() || kind.starts_with("application/x-amz-json") {
            return Protocol::Json;
        }
        let accepts = self.header("accept").unwrap_or_default();
        match accepts.starts_with("application/json") {
            true => Protocol::QueryJson,
            false => Protocol::Query,
        }
    }

    /// Returns the action and its parameters. None if it asks for nothing.
    pub fn asks(&self) -> Result<Option<(String, Params)>, Fault> {
        let malformed = |what: String| Fault::new(Kind::MalformedInput, what);
        if self.protocol() == Protocol::Json {
            let target = self.header("x-amz-target").unwrap_or_default();
            let Some((_, action)) = target.split_once('.') else {
                return Ok(None);
            };
            let body = match self.body.trim_ascii() {
                b"" => b"{}".as_slice(),
                body => body,
            };
            let params = match serde_json::from_slice(body) {
                Ok(Json::Object(params)) => params,
                Ok(_) => return Err(malformed("The body is no JSON object.".to_owned())),
                Err(error) => return Err(malformed(format!("The body is no JSON: {error}."))),
            };
            return Ok(Some((action.to_owned(), params)));
        }
        let mut pairs = query::pairs(self.uri.query().unwrap_or_default());
        if self.method == Method::POST {
            pairs.extend(query::pairs(&String::from_utf8_lossy(&self.body)));
        }
        let action = pairs.iter().find(|(name, _)| name == "Action");
        let Some(action) = action.map(|(_, action)| action.clone()) else {
            return Ok(None);
        };
        let mut params = query::params(pairs);
        // A request to the address of a queue is about that queue.
        let path = self.uri.path().trim_matches('/');
        if path.contains('/') {
            if ["CreateQueue", "ListQueues"].contains(&action.as_str()) {
                let message = format!("The action {action} is not valid for this endpoint.");
                return Err(Fault::new(Kind::InvalidAction, message));
            }
            let url = Json::from(format!("/{path}"));
            params.entry("QueueUrl").or_insert(url);
        }
        Ok(Some((action, params)))
    }

    /// Returns whether a page in a browser may have sent it: one of another place, or one whose
    /// name was made to lead to this machine. Where nobody signs, that must not be enough.
    pub fn is_of_page(&self, public_url: Option<&str>) -> bool {
        let host = self.header("host").unwrap_or_default().to_ascii_lowercase();
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => &host,
        };
        let is_here = name.starts_with('[')
            || name.parse::<Ipv4Addr>().is_ok()
            || !name.contains('.')
            || name.ends_with(".localhost")
            || public_url.and_then(|url| url.split('/').nth(2)) == Some(&host);
        !is_here || !is_ours(|name| self.header(name).map(str::to_owned))
    }

    /// Returns whether the connection ends with the answer. So does that to a HEAD, which has no
    /// body.
    pub fn closes(&self) -> bool {
        let connection = self.header("connection").unwrap_or_default();
        self.version < Version::HTTP_11
            || self.method == Method::HEAD
            || connection.to_ascii_lowercase().contains("close")
    }

    /// Returns what the URLs of queues begin with, if nobody says otherwise.
    pub fn base(&self) -> String {
        let host = self.header("host").unwrap_or("localhost");
        let scheme = match self.header("x-forwarded-proto") {
            Some("https") => "https",
            _ => "http",
        };
        format!("{scheme}://{host}")
    }
}
