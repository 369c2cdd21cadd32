//! The request of a visitor, and the answer.

use std::sync::Arc;

use maud::Markup;

use super::jobs::Job;
use super::query::Query;
use super::rights::Role;
use super::site::Site;
use super::visitor::Visitor;
use crate::failure::Failure;
use crate::model::family;
use crate::model::watch::{Board, Entry};
use crate::server::Server;

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
    /// Returns whether the visitor may do this, by its word in addresses, and something can be
    /// changed at all.
    pub fn may(&self, act: &str) -> bool {
        !self.site.read_only && self.visitor.rights.role >= Role::for_act(act)
    }

    /// Fails if the visitor may not do what a form asks for.
    pub fn check_rights(&self) -> Result<(), HttpError> {
        let act = match self.path.as_str() {
            "do" | "confirm" => self.query.text("act"),
            // A program may give the fields in either way.
            "api/do" if self.query.has("act") => self.query.text("act"),
            "api/do" => self.form.text("act"),
            path => path,
        };
        if self.site.read_only {
            let why = "Nothing can be changed here: dq web runs with --read-only.";
            return Err(HttpError::forbidden(why));
        }
        match self.may(act) {
            true => Ok(()),
            false => Err(HttpError::forbidden(&format!(
                "You are {} here, and this is for {}.",
                self.visitor.rights.role.word(),
                Role::for_act(act).word()
            ))),
        }
    }

    /// Returns the action whose number is in a field of the address. Visitors who may not see all
    /// queues see their own actions only.
    pub fn job(&self, field: &str) -> Result<Arc<Job>, HttpError> {
        let id = self.query.text(field).parse().unwrap_or(0);
        let job = self.site.jobs.get(id);
        let is_seen = |job: &Arc<Job>| !self.is_limited() || job.user == self.visitor.user;
        let job = job.filter(is_seen);
        job.ok_or_else(|| HttpError::missing("This action is not remembered any more."))
    }

    /// Returns whether the visitor can change nothing.
    pub fn only_reads(&self) -> bool {
        self.site.read_only || self.visitor.rights.role == Role::Viewer
    }

    /// Returns whether the visitor may see a queue.
    pub fn sees(&self, queue: &[u8]) -> bool {
        self.visitor.rights.scope.sees(queue)
    }

    /// Returns whether the visitor may see the queues of a family.
    pub fn sees_family(&self, family: &[u8]) -> bool {
        self.sees(&family::shown(family))
    }

    /// Returns whether there are queues that the visitor may not see.
    pub fn is_limited(&self) -> bool {
        self.visitor.rights.scope.is_limited()
    }

    /// Returns the queues that the visitor may see.
    pub fn entries<'a>(&'a self, board: &'a Board) -> impl Iterator<Item = &'a Entry> {
        board.entries().filter(|entry| self.sees(&entry.queue.name))
    }

    /// Returns the names of the queues that are known and that the visitor may see.
    pub fn queue_names(&self) -> Vec<Vec<u8>> {
        let live = self.site.live();
        let names = self.entries(&live.board);
        names.map(|entry| entry.queue.name.clone()).collect()
    }

    /// Reads from the server, only what the visitor may see.
    pub fn read<T>(&self, read: impl Fn(&mut Server) -> Result<T, Failure>) -> Result<T, Failure> {
        self.site.read(&self.visitor.rights.scope, read)
    }

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
