//! Actions whose details a form has: sending, another due time, another payload, a signal, a
//! schedule, settings.

mod settings;

use redis::Cmd;

use super::copy::sent;
use crate::failure::Failure;
use crate::model::keys;
use crate::model::record::integer;
use crate::server::{verb, Server};
use crate::text::printable;
use crate::time_text::{parse_span, parse_time, stamp, Millis};
use crate::web::address::queue;
use crate::web::answer::HttpError;
use crate::web::query::{link, Query};

pub use settings::Change;

/// The request of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Send a message.
    Send,
    /// Give a message another due time.
    Reschedule,
    /// Give a message another payload.
    Edit,
    /// Send a signal to a message.
    Signal,
    /// Make a schedule.
    Schedule,
    /// Change settings of a queue.
    Settings,
    /// Make or change a limit with a name.
    Limit,
}

impl Kind {
    const ALL: [Kind; 7] = [
        Kind::Send,
        Kind::Reschedule,
        Kind::Edit,
        Kind::Signal,
        Kind::Schedule,
        Kind::Settings,
        Kind::Limit,
    ];

    /// Returns the word in addresses, which is also that of the page with the form.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Send => "send",
            Kind::Reschedule => "reschedule",
            Kind::Edit => "edit",
            Kind::Signal => "signal",
            Kind::Schedule => "schedule",
            Kind::Settings => "settings",
            Kind::Limit => "limit",
        }
    }

    /// Returns whether the form is about one message.
    fn is_about_message(self) -> bool {
        matches!(self, Kind::Reschedule | Kind::Edit | Kind::Signal)
    }
}

/// A form that was filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form {
    /// The action that the form asks for.
    kind: Kind,
    queue: Vec<u8>,
    /// The id of the message, if it is about one.
    id: Option<Vec<u8>>,
    fields: Query,
}

impl Form {
    /// Reads the form of an address. `None` if the action of the address has no form.
    pub fn parse(query: &Query) -> Result<Option<Form>, HttpError> {
        let word = query.text("act");
        let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.name() == word) else {
            return Ok(None);
        };
        let id = query.get("id").filter(|_| kind.is_about_message());
        if kind.is_about_message() && id.is_none() {
            return Err(HttpError::mistake("the address names no message"));
        }
        Form::of(kind, query, query).map(Some)
    }

    /// Creates the form of a page. Its target is in the address, and the entered values are
    /// in the form.
    pub fn of(kind: Kind, address: &Query, fields: &Query) -> Result<Form, HttpError> {
        let id = address.get("id").filter(|_| kind.is_about_message());
        Ok(Form {
            kind,
            queue: queue(address)?,
            id: id.map(<[u8]>::to_vec),
            fields: fields.clone(),
        })
    }

    /// Returns the word for the audit log and the button.
    pub fn word(&self) -> &'static str {
        match self.kind {
            Kind::Send => "send",
            Kind::Reschedule => "reschedule",
            Kind::Edit => "edit payload",
            Kind::Signal => "send signal",
            Kind::Schedule => "schedule",
            Kind::Settings => "change settings",
            Kind::Limit => "limit",
        }
    }

    /// Returns the target of the form, in words.
    pub fn what(&self) -> String {
        let queue = printable(&self.queue);
        let named = |field: &str| self.fields.get(field).map(printable);
        match (self.kind, &self.id) {
            (_, Some(id)) => format!("message {} of {queue}", printable(id)),
            (Kind::Send, None) => {
                let id = named("id").map(|id| format!(", id {id}"));
                format!("a message to {queue}{}", id.unwrap_or_default())
            }
            (Kind::Schedule, None) => {
                format!("{} of {queue}", named("name").unwrap_or_default())
            }
            (Kind::Limit, None) => format!("{} of {queue}", named("limit").unwrap_or_default()),
            _ => queue,
        }
    }

    /// Returns the page of the message or the queue.
    pub fn back(&self) -> String {
        match &self.id {
            Some(id) => Query::default()
                .with("queue", &self.queue)
                .with("id", id)
                .link("message"),
            None => link("queue", "queue", &self.queue),
        }
    }

    /// Executes the action of the form. Returns a sentence about the result.
    pub fn execute(&self, server: &mut Server) -> Result<String, Failure> {
        match self.kind {
            Kind::Send => self.send(server),
            Kind::Reschedule => {
                let mut cmd = self.about_message("DQ.RESCHEDULE");
                self.add_due(&mut cmd, true)?;
                one(server, &cmd, "It has another due time.")
            }
            Kind::Edit => {
                let mut cmd = self.about_message("DQ.UPDATE");
                cmd.arg(self.typed("payload"));
                one(server, &cmd, "It has another payload.")
            }
            Kind::Signal => {
                let mut cmd = self.about_message("DQ.SIGNAL");
                cmd.arg("DATA").arg(self.typed("data"));
                match integer(&server.call(&cmd)?)? {
                    0 => Err(Failure::mistake("it has ended or is gone")),
                    _ => Ok("It has got the signal.".to_owned()),
                }
            }
            Kind::Schedule => self.schedule(server),
            Kind::Settings => self.settings(server),
            Kind::Limit => self.limit(server),
        }
    }

    fn about_message(&self, name: &str) -> Cmd {
        let mut cmd = verb(name, &self.queue);
        cmd.arg(self.id.as_deref());
        cmd
    }

    /// Returns the text that was typed. Browsers send a line break as two bytes.
    fn typed(&self, field: &str) -> Vec<u8> {
        let typed = self.fields.get(field).unwrap_or_default();
        let mut text = Vec::with_capacity(typed.len());
        for (i, byte) in typed.iter().enumerate() {
            if *byte != b'\r' || typed.get(i + 1) != Some(&b'\n') {
                text.push(*byte);
            }
        }
        text
    }

    /// Adds the due time of the form: a span from now, or a time.
    fn add_due(&self, cmd: &mut Cmd, needed: bool) -> Result<(), Failure> {
        let (delay, at) = (
            self.fields.text("delay").trim(),
            self.fields.text("at").trim(),
        );
        let mistake = |field: &str, why: String| Failure::mistake(format!("{field}: {why}"));
        match (delay, at) {
            ("", "") if needed => return Err(Failure::mistake("say when it is to be due")),
            ("", "") => {}
            (delay, "") => {
                let delay = parse_span(delay).map_err(|why| mistake("delay", why))?;
                cmd.arg("DELAY").arg(delay);
            }
            ("", at) => {
                cmd.arg("AT")
                    .arg(parse_time(at).map_err(|why| mistake("at", why))?);
            }
            _ => return Err(Failure::mistake("give a delay or a time, not both")),
        }
        Ok(())
    }

    fn add_texts(&self, cmd: &mut Cmd, options: &[(&str, &str)]) {
        for (option, field) in options {
            if let Some(value) = self.fields.get(field) {
                cmd.arg(*option).arg(value);
            }
        }
    }

    /// Adds the option of a field with a time, if it was filled in.
    fn add_time(
        &self,
        cmd: &mut Cmd,
        field: &str,
        parse: fn(&str) -> Result<Millis, String>,
    ) -> Result<(), Failure> {
        let typed = self.fields.text(field).trim();
        if !typed.is_empty() {
            let value = parse(typed).map_err(|why| Failure::mistake(format!("{field}: {why}")))?;
            cmd.arg(field.to_uppercase()).arg(value);
        }
        Ok(())
    }

    fn send(&self, server: &mut Server) -> Result<String, Failure> {
        keys::must_exist(server, &self.queue)?;
        let mut cmd = verb("DQ.SEND", &self.queue);
        cmd.arg(self.typed("payload"));
        let options = [
            ("ID", "id"),
            ("TYPE", "type"),
            ("GROUP", "group"),
            ("SCORE", "score"),
            ("PRIORITY", "priority"),
        ];
        self.add_texts(&mut cmd, &options);
        self.add_due(&mut cmd, false)?;
        let mut headers = Vec::new();
        for line in self.fields.text("headers").lines() {
            if line.trim().is_empty() {
                continue;
            }
            let pair = line.split_once([':', '=']);
            let (field, value) = pair
                .ok_or_else(|| Failure::mistake("headers: write each in a line as field: value"))?;
            headers.extend([field.trim(), value.trim()]);
        }
        if !headers.is_empty() {
            cmd.arg("HEADERS").arg(headers.len() / 2).arg(headers);
        }
        sent(&server.call(&cmd)?)
    }

    fn schedule(&self, server: &mut Server) -> Result<String, Failure> {
        keys::must_exist(server, &self.queue)?;
        let name = self.fields.get("name");
        let name = name.ok_or_else(|| Failure::mistake("give the schedule a name"))?;
        let mut cmd = verb("DQ.SCHEDULE", &self.queue);
        cmd.arg(name);
        match (
            self.fields.text("cron").trim(),
            self.fields.text("every").trim(),
        ) {
            (rule, "") if !rule.is_empty() => cmd.arg("CRON").arg(rule),
            ("", every) if !every.is_empty() => {
                let every = parse_span(every);
                cmd.arg("EVERY")
                    .arg(every.map_err(|why| Failure::mistake(format!("every: {why}")))?)
            }
            _ => return Err(Failure::mistake("give a cron rule or an interval")),
        };
        self.add_texts(&mut cmd, &[("TZ", "tz")]);
        cmd.arg("PAYLOAD").arg(self.typed("payload"));
        self.add_time(&mut cmd, "until", parse_time)?;
        self.add_time(&mut cmd, "jitter", parse_span)?;
        let options = [
            ("TIMES", "times"),
            ("TYPE", "type"),
            ("GROUP", "group"),
            ("PRIORITY", "priority"),
            ("MISSED", "missed"),
            ("OVERLAP", "overlap"),
        ];
        self.add_texts(&mut cmd, &options);
        let next = integer(&server.call(&cmd)?)?;
        let name = printable(name);
        Ok(format!(
            "The schedule {name} sends first at {}.",
            stamp(next)
        ))
    }
}

fn one(server: &mut Server, cmd: &Cmd, done: &str) -> Result<String, Failure> {
    match integer(&server.call(cmd)?)? {
        0 => Err(Failure::mistake("it is running, has ended or is gone")),
        _ => Ok(done.to_owned()),
    }
}
