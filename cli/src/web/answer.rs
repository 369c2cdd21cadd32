//! The request of a visitor, and the answer.

use std::sync::Arc;

use maud::Markup;

use super::access::Visitor;
use super::query::Query;
use super::site::Site;
use crate::failure::Failure;

/// The request, and who has sent it.
pub struct Ask {
    /// The state that all requests share.
    pub site: Arc<Site>,
    /// The visitor.
    pub visitor: Visitor,
    /// The path of the address, without its first slash.
    pub path: String,
    /// The fields of the address.
    pub query: Query,
    /// The fields of the form.
    pub form: Query,
    /// Whether the form was sent, though it may have no fields.
    pub posted: bool,
}

impl Ask {
    /// Returns the address of this page, to come back to.
    pub fn here(&self) -> String {
        let page = match self.path.as_str() {
            "" => "./",
            path => path,
        };
        self.query.without(&["done", "back"]).link(page)
    }
}

/// The answer to a request of a browser.
pub enum Answer {
    /// A page.
    Page(Markup),
    /// A file to save.
    Bytes(Vec<u8>),
    /// Values for a program, as JSON.
    Json(String),
    /// Another page, by its address.
    To(String),
}

/// The reason why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpError {
    /// The status of HTTP.
    pub status: u16,
    /// The message for the reader: the error, and the expected form.
    pub words: String,
}

impl HttpError {
    /// Creates the answer to an address that makes no sense.
    pub fn mistake(words: &str) -> HttpError {
        HttpError {
            status: 400,
            words: words.to_owned(),
        }
    }

    /// Creates the answer for a page that does not exist.
    pub fn missing(words: &str) -> HttpError {
        HttpError {
            status: 404,
            words: words.to_owned(),
        }
    }

    /// Creates the answer for an action that is not allowed.
    pub fn forbidden(words: &str) -> HttpError {
        HttpError {
            status: 403,
            words: words.to_owned(),
        }
    }
}

impl From<Failure> for HttpError {
    fn from(failure: Failure) -> HttpError {
        let status = match &failure {
            Failure::Lost(_) => 503,
            Failure::Mistake(_) => 400,
            _ if failure.is_about_key() => 404,
            _ if failure.is_forbidden() => 403,
            _ => 502,
        };
        HttpError {
            status,
            words: failure.to_string(),
        }
    }
}
