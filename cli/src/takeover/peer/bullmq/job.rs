//! A job of BullMQ as the payload, the options and the scheduler of its backend for dq.

use serde_json::value::RawValue;
use serde_json::{json, Map, Value as Json};

use crate::takeover::peer::{words, Names, Words};
use crate::takeover::record::{Bytes, Record};

/// The short names of options in a job's hash.
const SHORT: [(&str, &str); 7] = [
    ("de", "deduplication"),
    ("debounce", "deduplication"),
    ("fpof", "failParentOnFailure"),
    ("cpof", "continueParentOnFailure"),
    ("idof", "ignoreDependencyOnFailure"),
    ("kl", "keepLogs"),
    ("rdof", "removeDependencyOnFailure"),
];

/// Returns when a delayed job is due, Unix ms. The low 12 bits of its score are its order within the ms.
pub fn due(record: &Record) -> u64 {
    (record.score() / 4096.0).floor().max(0.0) as u64
}

/// The parts of a job that are JSON.
pub struct Job {
    opts: Map<String, Json>,
    data: String,
    name: String,
}

impl Job {
    /// Reads a job. Fails with why it stays.
    pub fn read(record: &Record) -> Result<Job, String> {
        let text = |name: &str| match record.field(name) {
            None => Ok(""),
            Some(bytes) => {
                std::str::from_utf8(bytes).map_err(|_| format!("UNKNOWN bytes in {name}"))
            }
        };
        let data = match text("data")? {
            "" => "{}",
            data => data,
        };
        serde_json::from_str::<&RawValue>(data)
            .map_err(|_| "UNKNOWN data that is no JSON".to_owned())?;
        let raw: Json = match text("opts")? {
            "" => Json::Object(Map::new()),
            opts => serde_json::from_str(opts).map_err(|_| "UNKNOWN opts".to_owned())?,
        };
        let Json::Object(raw) = raw else {
            return Err("UNKNOWN opts".to_owned());
        };
        let mut opts = Map::new();
        for (name, value) in raw {
            let long = SHORT.iter().find(|(short, _)| *short == name);
            let name = long.map_or(name.as_str(), |(_, long)| long).to_owned();
            if !(name == "attempts" && value == json!(0)) {
                opts.insert(name, value);
            }
        }
        let priority = record.number_of("priority");
        if priority > 0 {
            opts.insert("priority".to_owned(), json!(priority));
        }
        Ok(Job {
            opts,
            data: data.to_owned(),
            name: text("name")?.to_owned(),
        })
    }

    /// Returns the payload, as the backend writes it.
    pub fn payload(&self, record: &Record, is_dead: bool, stalls: u64) -> String {
        let mut all = Map::new();
        all.insert("name".to_owned(), json!(self.name));
        if !self.opts.is_empty() {
            all.insert("opts".to_owned(), Json::Object(self.opts.clone()));
        }
        all.insert("timestamp".to_owned(), json!(record.number_of("timestamp")));
        if record.field("rjk").is_some() || record.extras("repeat").next().is_some() {
            all.insert("repeatJobKey".to_owned(), json!(scheduler_of(record)));
        }
        if let Some(id) = record.text("deid") {
            all.insert("deduplicationId".to_owned(), json!(id));
        }
        let gathered = gathered(record, is_dead, stalls);
        if gathered.len() > 1 {
            all.insert("gathered".to_owned(), Json::Object(gathered));
        }
        let head = Json::Object(all).to_string();
        let head = head.strip_suffix('}').unwrap_or(&head);
        // The data go as their own text, so that no number in them changes.
        format!("{head},\"data\":{}}}", self.data)
    }

    /// Returns the scheduler whose next job this is, and its definition as the backend keeps it.
    pub fn scheduler(&self, record: &Record) -> Result<Option<(String, Json)>, String> {
        let Some([_, next, hash @ ..]) = record.extras("repeat").next() else {
            return Ok(None);
        };
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        let mut fields: Map<String, Json> = hash
            .chunks_exact(2)
            .filter_map(|pair| Some((text(pair.first()?), json!(text(pair.get(1)?)))))
            .collect();
        if !fields.contains_key("ic") {
            fields = self.repeatable()?;
        }
        let next: u64 = text(next)
            .parse()
            .map_err(|_| "UNKNOWN repeat".to_owned())?;
        let job = String::from_utf8_lossy(&record.id).into_owned();
        let definition = json!({ "fields": fields, "next": next, "job": job });
        Ok(Some((scheduler_of(record), definition)))
    }

    /// Returns the definition of a repeatable job, which versions before the schedulers keep in the options of its next job.
    fn repeatable(&self) -> Result<Map<String, Json>, String> {
        let Some(Json::Object(repeat)) = self.opts.get("repeat") else {
            return Err("UNKNOWN repeat".to_owned());
        };
        let mut fields = Map::new();
        fields.insert("name".to_owned(), json!(self.name));
        // Bull has another word for the pattern.
        if let Some(cron) = repeat.get("cron").and_then(Json::as_str) {
            fields.insert("pattern".to_owned(), json!(cron));
        }
        for name in [
            "tz",
            "limit",
            "pattern",
            "startDate",
            "endDate",
            "every",
            "offset",
        ] {
            let value = match repeat.get(name) {
                Some(Json::String(text)) => text.clone(),
                Some(Json::Null) | None => continue,
                Some(other) => other.to_string(),
            };
            fields.insert(name.to_owned(), json!(value));
        }
        if !fields.contains_key("pattern") && !fields.contains_key("every") {
            return Err("UNKNOWN repeat".to_owned());
        }
        fields.entry("offset").or_insert_with(|| json!("0"));
        let own = [
            "repeat",
            "prevMillis",
            "timestamp",
            "jobId",
            "delay",
            "repeatJobKey",
        ];
        let template: Map<String, Json> = self
            .opts
            .iter()
            .filter(|(name, _)| !own.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        if !template.is_empty() {
            fields.insert("opts".to_owned(), json!(Json::Object(template).to_string()));
        }
        if self.data != "{}" {
            fields.insert("data".to_owned(), json!(self.data));
        }
        fields.insert("ic".to_owned(), json!("1"));
        Ok(fields)
    }

    /// Returns the options of DQ.SEND, as the backend gives them.
    pub fn send_words(
        &self,
        record: &Record,
        names: &Names,
        is_dead: bool,
        is_bull: bool,
    ) -> Words {
        let mut all = Words::new();
        let priority = self
            .opts
            .get("priority")
            .and_then(Json::as_i64)
            .unwrap_or(0);
        let is_lifo = self.opts.get("lifo") == Some(&Json::Bool(true));
        if is_dead || is_bull && matches!(record.place.as_str(), "wait" | "paused") {
            // The group of a dead message is its own; and Bull's list has those with a priority in their order.
        } else if priority > 0 {
            let score = priority.to_string();
            all.extend(words([
                b"GROUP",
                b":priority",
                b"PRIORITY",
                b"1",
                b"SCORE",
                score.as_bytes(),
            ]));
        } else if is_lifo && record.place == "delayed" {
            let score = format!(
                "-{}",
                names
                    .now
                    .saturating_mul(1000)
                    .saturating_add(record.number % 1000)
            );
            all.extend(words([
                b"GROUP",
                b":lifo",
                b"PRIORITY",
                b"-1",
                b"SCORE",
                score.as_bytes(),
            ]));
        }
        if let Some(retain) = retain(self.opts.get("removeOnComplete")) {
            all.extend(words([b"RETAIN", retain.to_string().as_bytes()]));
        }
        if record.place == "delayed" {
            all.extend(words([b"AT", due(record).to_string().as_bytes()]));
        }
        all
    }
}

/// Returns the id of the scheduler of a job. Older versions name it by a text with the rule in it, and a hash of that
/// is in the id of the job.
fn scheduler_of(record: &Record) -> String {
    let key = record.text("rjk");
    let id = String::from_utf8_lossy(&record.id);
    let hash = id
        .strip_prefix("repeat:")
        .and_then(|rest| rest.rsplit_once(':'));
    match hash {
        Some((hash, _)) if key.is_none_or(|key| key.matches(':').count() >= 4) => hash.to_owned(),
        _ => key.unwrap_or_default().to_owned(),
    }
}

/// Returns what a job has gathered in its attempts.
fn gathered(record: &Record, is_dead: bool, stalls: u64) -> Map<String, Json> {
    let mut all = Map::new();
    all.insert("v".to_owned(), json!(0));
    if let Some(progress) = record
        .text("progress")
        .filter(|text| !matches!(*text, "0" | ""))
    {
        let value = serde_json::from_str(progress).unwrap_or_else(|_| json!(progress));
        all.insert("progress".to_owned(), value);
    }
    if let Some(trace) = record
        .text("stacktrace")
        .filter(|text| !matches!(*text, "[]" | "null" | ""))
    {
        all.insert("stacktrace".to_owned(), json!(trace));
    }
    let made = record
        .number_of("atm")
        .max(record.number_of("attemptsMade"));
    let started = record.number_of("ats").max(made);
    // The delivery that makes it dead is counted by the server.
    let counted = i64::from(is_dead);
    let count = |n: i64| (n > counted).then(|| json!(n - counted));
    for (name, value) in [
        ("made", count(made)),
        ("started", count(started)),
        ("stalled", (stalls > 0).then(|| json!(stalls))),
        (
            "delay",
            (made > 0 && record.place == "delayed").then(|| json!(record.number_of("delay"))),
        ),
    ] {
        if let Some(value) = value {
            all.insert(name.to_owned(), value);
        }
    }
    all
}

/// Returns how often the workers have lost a job.
pub fn stalled(record: &Record) -> u64 {
    let count = record
        .number_of("stc")
        .max(record.number_of("stalledCounter"));
    count.unsigned_abs()
}

/// Returns how long the record of a job is kept, ms, if its `removeOnComplete` says so.
fn retain(keep: Option<&Json>) -> Option<i64> {
    match keep? {
        Json::Bool(true) => Some(0),
        Json::Number(count) if count.as_i64() == Some(0) => Some(0),
        Json::Object(keep) if keep.get("count").and_then(Json::as_i64) == Some(0) => Some(0),
        Json::Object(keep) => Some((keep.get("age")?.as_f64()? * 1000.0).round() as i64),
        _ => None,
    }
}
