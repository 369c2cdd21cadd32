//! A request as the pages see it: its address, fields, headers and session.

use std::net::SocketAddr;

use axum::http::HeaderMap;

use super::query::Query;

/// The name of the cookie of a session.
const COOKIE: &str = "dq-session";

/// A request whose body has been read.
pub struct Incoming {
    pub address: SocketAddr,
    pub path: String,
    pub posted: bool,
    pub query: Query,
    pub form: Query,
    pub headers: HeaderMap,
}

impl Incoming {
    pub fn header(&self, name: &str) -> Option<String> {
        let value = self.headers.get(name)?;
        Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
    }

    pub fn headers(&self, name: &str) -> Vec<String> {
        let values = self.headers.get_all(name).iter();
        values
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
            .collect()
    }

    pub fn session(&self) -> Option<String> {
        let cookies = self.header("cookie")?;
        let pairs = cookies
            .split(';')
            .filter_map(|pair| pair.trim().split_once('='));
        let mut ours = pairs.filter(|(name, _)| *name == COOKIE);
        ours.next().map(|(_, value)| value.to_owned())
    }

    /// Returns the cookie of a session. An empty one ends it. If the proxy says
    /// that this connection is encrypted, browsers send it over encrypted ones only.
    pub fn cookie(&self, session: &str) -> String {
        let secure = self.header("x-forwarded-proto").as_deref() == Some("https");
        let secure = if secure { "; Secure" } else { "" };
        let age = if session.is_empty() {
            "; Max-Age=0"
        } else {
            ""
        };
        format!("{COOKIE}={session}; Path=/; HttpOnly; SameSite=Lax{secure}{age}")
    }
}
