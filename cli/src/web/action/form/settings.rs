//! The forms of settings and of limits with names. The audit log has the old and the new value.

use super::Form;
use crate::failure::Failure;
use crate::model::record::Record;
use crate::model::{keys, limit, option_words, settings};
use crate::server::{verb, Server};
use crate::text::printable;

impl Form {
    /// Returns the settings whose fields have another value than before.
    pub fn changes(&self, server: &mut Server) -> Result<Vec<Change>, Failure> {
        let info = Record::of(server.call(&verb("DQ.INFO", &self.queue))?)?;
        let mut changes = Vec::new();
        for setting in settings::all() {
            let (name, typed) = (setting.name, self.fields.text(setting.name).trim());
            let Some(old) = setting.value(&info) else {
                continue;
            };
            if self.fields.has(name) && typed != old {
                changes.push(Change {
                    words: setting.typed(typed).map_err(Failure::mistake)?,
                    name,
                    old: named(&old).to_owned(),
                    new: named(typed).to_owned(),
                });
            }
        }
        match changes.is_empty() {
            true => Err(Failure::mistake("no field has another value")),
            false => Ok(changes),
        }
    }

    pub(super) fn settings(&self, server: &mut Server) -> Result<String, Failure> {
        let changes = self.changes(server)?;
        let mut cmd = verb("DQ.ALTER", &self.queue);
        for change in &changes {
            cmd.arg(change.name).arg(&change.words);
        }
        server.call(&cmd)?;
        let names: Vec<&str> = changes.iter().map(|change| change.name).collect();
        let values: Vec<String> = changes.iter().map(Change::sentence).collect();
        Ok(format!(
            "Changed: {}. {}.",
            names.join(", "),
            values.join("; ")
        ))
    }

    /// Makes a limit, or changes the one of this name.
    pub(super) fn limit(&self, server: &mut Server) -> Result<String, Failure> {
        keys::must_exist(server, &self.queue)?;
        let name = self.fields.get("limit");
        let name = name.ok_or_else(|| Failure::mistake("give the limit a name"))?;
        let mut words = Vec::new();
        for (option, field, shape) in [
            ("CONCURRENCY", "concurrency", "n"),
            ("RATE", "rate", "n PER time"),
        ] {
            let values = self.fields.text(field).split(',');
            for value in values.filter(|one| !one.trim().is_empty()) {
                let given: Vec<&str> = value.split_whitespace().collect();
                let is_one = match given[..] {
                    [_] => option == "CONCURRENCY",
                    [_, per, _] => option == "RATE" && per.eq_ignore_ascii_case("PER"),
                    _ => false,
                };
                if !is_one {
                    return Err(Failure::mistake(format!("{field}: write {shape}")));
                }
                words.push(option.to_owned());
                words.extend(given.into_iter().map(str::to_owned));
            }
        }
        if words.is_empty() {
            return Err(Failure::mistake("say how many may run, or at what rate"));
        }
        words.extend((self.fields.text("counts") == "costs").then(|| "WEIGHT".to_owned()));
        let old = limit::find(server, &self.queue, name)?;
        let mut cmd = verb("DQ.LIMIT", &self.queue);
        cmd.arg(name)
            .arg(option_words::words(&words).map_err(Failure::mistake)?);
        server.call(&cmd)?;
        let old = old.map(|old| old.words()).unwrap_or_default();
        let (name, new) = (printable(name), words.join(" "));
        Ok(format!(
            "The limit {name} was {} and is {new}.",
            named(&old)
        ))
    }
}

/// Another value of a setting.
pub struct Change {
    /// The setting.
    pub name: &'static str,
    /// Its value before, for people.
    pub old: String,
    /// Its value afterwards, for people.
    pub new: String,
    words: Vec<String>,
}

impl Change {
    fn sentence(&self) -> String {
        format!("{} was {} and is {}", self.name, self.old, self.new)
    }
}

/// Shows the value of a setting in a sentence.
fn named(value: &str) -> &str {
    match value {
        "" => "nothing",
        value => value,
    }
}
