//! The pages with forms: a test message or a copy, another due time, another payload, a
//! signal, a schedule, settings. A form that is refused keeps what was typed.

use maud::{html, Markup};
use redis::Value;

use super::back;
use super::job::back_from;
use super::layout::{layout, token, trail, Trail};
use super::message::{get, gone, named};
use super::parts::{action, capital};
use crate::model::coded;
use crate::model::limit;
use crate::model::record::{shown, Record};
use crate::model::settings::{self, Setting};
use crate::server::verb;
use crate::text::printable;
use crate::time_text::exact;
use crate::web::action::{Action, Form, FormKind, SettingChange};
use crate::web::address::queue;
use crate::web::answer::{Answer, Ask, HttpError};
use crate::web::query::{link, Query};

/// A field of a form.
struct Field {
    name: String,
    label: String,
    example: &'static str,
    /// The value that the field shows at first.
    value: String,
    kind: FieldKind,
    /// The line below the field.
    help: String,
    /// Whether the value is another one than usual.
    is_changed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum FieldKind {
    Line,
    Text,
    Choice(Vec<&'static str>),
}

fn line(name: &str, label: &str, example: &'static str) -> Field {
    Field {
        name: name.to_owned(),
        label: label.to_owned(),
        example,
        value: String::new(),
        kind: FieldKind::Line,
        help: String::new(),
        is_changed: false,
    }
}

fn text(name: &str, label: &str, value: String) -> Field {
    Field {
        value,
        kind: FieldKind::Text,
        ..line(name, label, "")
    }
}

fn choice(name: &str, label: &str, choices: &'static [&'static str]) -> Field {
    Field {
        kind: FieldKind::Choice(choices.to_vec()),
        ..line(name, label, "")
    }
}

/// Shows the form of this kind. If it was sent, does what it asks for, and shows it again if
/// that was refused.
pub fn page(ask: &Ask, kind: FormKind) -> Result<Answer, HttpError> {
    let form = Form::of(kind, &ask.query, &ask.form)?;
    let mut refused = None;
    if ask.posted && kind == FormKind::Settings && !ask.form.has("sure") {
        match ask.read(|server| form.changes(server)) {
            Ok(changes) => return Ok(question(ask, &form, &changes)),
            Err(failure) => refused = Some(format!("Not done: {failure}")),
        }
    } else if ask.posted {
        let job = Action::Form(form.clone()).begin(&ask.site, &ask.visitor);
        match job.outcome() {
            Some(Err(_)) => refused = Some(job.progress()),
            _ => return Ok(Answer::To(back_from(ask, &job))),
        }
    }
    let key = queue(&ask.query)?;
    let (title, fields) = match kind {
        FormKind::Send => send(ask, &key)?,
        FormKind::Reschedule => (
            "Another due time for".to_owned() + " " + &form.what(),
            vec![
                line("delay", "From now", "10s, 5m, 2h, 1d"),
                line("at", "Or at a time (UTC)", "2026-11-20T12:00"),
            ],
        ),
        FormKind::Edit => {
            let (queue, id) = named(&ask.query)?;
            let message = ask.read(|server| get(server, &queue, &id))?;
            let message = message.ok_or_else(gone)?;
            if coded::is_coded(&message) {
                return Err(HttpError::mistake(
                    "a client has encrypted or compressed the payload, or keeps it elsewhere, so only a client can change it",
                ));
            }
            let payload = message.bytes("payload").unwrap_or_default().to_vec();
            let payload = String::from_utf8(payload).map_err(|_| {
                HttpError::mistake("the payload is not text, so a form cannot hold it")
            })?;
            let title = format!("Another payload for {}", form.what());
            (title, vec![text("payload", "Payload", payload)])
        }
        FormKind::Signal => (
            format!("A signal to {}", form.what()),
            vec![text(
                "data",
                "The text that its next delivery gets",
                String::new(),
            )],
        ),
        FormKind::Schedule => (
            format!("A schedule of {}", printable(&key)),
            vec![
                line("name", "Name", "nightly"),
                line("cron", "Cron rule", "0 3 * * *, or @daily"),
                line("tz", "Its time zone", "UTC"),
                line("every", "Or an interval", "30s, 5m, 1d"),
                line("until", "Until a time (UTC)", "2026-12-31; empty: for ever"),
                line("times", "How many times it sends", "empty: no limit"),
                line(
                    "jitter",
                    "Up to how much later, at random",
                    "30s; empty: on time",
                ),
                text("payload", "Payload", String::new()),
                line("type", "Type", ""),
                line("group", "Group", ""),
                line("priority", "Priority", "0; lower goes first"),
                choice(
                    "missed",
                    "Times that passed while the server was down",
                    &["", "SKIP", "ONCE", "ALL"],
                ),
                choice(
                    "overlap",
                    "While its last message has not ended",
                    &["", "QUEUE", "SKIP"],
                ),
            ],
        ),
        FormKind::Settings => settings(ask, &key)?,
        FormKind::Limit => limit(ask, &key)?,
    };
    let back = back(ask).unwrap_or_else(|| form.back());
    let content = html! {
        h1 { (title) }
        @if let Some(refused) = &refused { p.alarm role="alert" { (refused) } }
        form.stack method="post" action=(ask.query.link(kind.name())) {
            (token(ask))
            @for (i, field) in fields.iter().enumerate() { (input(ask, field, i == 0)) }
            p.actions {
                button.main #yes { (capital(form.word())) }
                a.button href=(back) data-key="u" { "Back" }
                @if kind == FormKind::Limit && ask.query.has("limit") {
                    (action(ask, "Remove", "", &ask.query.without(&["back"]).with("act", b"unlimit")))
                }
            }
        }
    };
    let mut steps = trail(&key);
    if let Some(id) = ask.query.get("id") {
        let message = Query::default()
            .with("queue", &key)
            .with("id", id)
            .link("message");
        steps.push((printable(id), message));
    }
    steps.push((kind.name().to_owned(), ask.here()));
    Ok(layout(ask, &title, &steps, content))
}

/// Asks whether settings are to be changed, with their values before and afterwards.
fn question(ask: &Ask, form: &Form, changes: &[SettingChange]) -> Answer {
    let content = html! {
        h1 { "Change settings?" }
        p.what { (form.what()) }
        table {
            thead { tr { th { "setting" } th { "now" } th { "then" } } }
            tbody {
                @for change in changes {
                    tr { td.first { (change.name) } td data-label="now" { (change.old) } td data-label="then" { b { (change.new) } } }
                }
            }
        }
        form method="post" action=(ask.query.link("settings")) {
            (token(ask))
            @for change in changes { input type="hidden" name=(change.name) value=(ask.form.text(change.name)); }
            p.actions {
                button.main #yes name="sure" value="1" autofocus { (capital(form.word())) }
                a.button href=(back(ask).unwrap_or_else(|| form.back())) data-key="u" { "No, go back" }
            }
        }
    };
    layout(ask, "change settings", &Trail::new(), content)
}

fn input(ask: &Ask, field: &Field, first: bool) -> Markup {
    let typed = ask
        .form
        .has(&field.name)
        .then(|| ask.form.text(&field.name).to_owned());
    let value = typed.unwrap_or_else(|| field.value.clone());
    html! {
        label.changed[field.is_changed] { (field.label)
            @match &field.kind {
                FieldKind::Line => input name=(field.name) value=(value) placeholder=(field.example) autofocus[first] {},
                // A line break at the beginning of the element does not belong to the text.
                FieldKind::Text => textarea name=(field.name) rows="8" autofocus[first] { "\n" (value) },
                FieldKind::Choice(choices) => select name=(field.name) {
                    @for choice in choices {
                        option value=(choice) selected[*choice == value] {
                            (if choice.is_empty() { "as usual" } else { choice })
                        }
                    }
                },
            }
            @if !field.help.is_empty() { span.note { (field.help) } }
        }
    }
}

/// Returns the form of a message: an empty one, or one with the fields of another message.
fn send(ask: &Ask, key: &[u8]) -> Result<(String, Vec<Field>), HttpError> {
    let copied = match ask.query.get("id") {
        None => None,
        Some(id) => {
            let message = ask.read(|server| get(server, key, id))?;
            Some(message.ok_or_else(gone)?)
        }
    };
    let of = |field: &str| match &copied {
        None => String::new(),
        Some(message) => {
            let bytes = message.bytes(field).unwrap_or_default();
            match message.get(field) {
                Value::Int(0) => String::new(),
                Value::Int(number) => number.to_string(),
                _ => String::from_utf8_lossy(bytes).into_owned(),
            }
        }
    };
    let with = |field: Field| Field {
        value: of(&field.name),
        ..field
    };
    let payload = of("payload");
    let headers = copied.as_ref().map(headers).unwrap_or_default();
    let id = match copied {
        // The id of the original is taken.
        Some(_) => line("id", "Id", "a new one"),
        None => with(line("id", "Id", "a new one")),
    };
    let fields = vec![
        text("payload", "Payload", payload),
        id,
        with(line("type", "Type", "")),
        with(line("group", "Group", "")),
        with(line("priority", "Priority", "0; lower goes first")),
        text(
            "headers",
            "Headers, one in each line as field: value",
            headers,
        ),
        line("delay", "Delay", "10s, 5m, 2h"),
        line("at", "Or a time (UTC)", "2026-11-20T12:00"),
    ];
    let title = match ask.query.get("id") {
        Some(id) => format!("A copy of {} to {}", printable(id), printable(key)),
        None => format!("Send a test message to {}", printable(key)),
    };
    Ok((title, fields))
}

fn headers(message: &Record) -> String {
    let Value::Map(pairs) = message.get("headers") else {
        return String::new();
    };
    let lines = pairs
        .iter()
        .map(|(field, value)| format!("{}: {}", shown(field), shown(value)));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the fields of settings. What one is for stands below it, and what differs from the
/// usual value is marked: an example in a field would look like its value.
fn settings(ask: &Ask, key: &[u8]) -> Result<(String, Vec<Field>), HttpError> {
    let info = ask.read(|server| Record::of(server.call(&verb("DQ.INFO", key))?))?;
    let field = |setting: Setting| {
        let value = setting.value(&info)?;
        let usual = match setting.usual {
            "" => "usually empty".to_owned(),
            usual => format!("usually {usual}"),
        };
        let kind = match setting.choices() {
            Some(choices) => FieldKind::Choice(choices.collect()),
            None => FieldKind::Line,
        };
        let form = match kind {
            FieldKind::Choice(_) => String::new(),
            _ => format!(" Write {}.", setting.form().replace("text", "a name")),
        };
        Some(Field {
            help: format!("{}; {usual}.{form}", capital(setting.help)),
            is_changed: !setting.is_usual(&value),
            value,
            kind,
            ..line(setting.name, setting.name, "")
        })
    };
    let fields = settings::all().filter_map(field).collect();
    Ok((format!("Settings of {}", printable(key)), fields))
}

/// Returns the fields of a limit: of the one that the address names, or empty ones.
fn limit(ask: &Ask, key: &[u8]) -> Result<(String, Vec<Field>), HttpError> {
    let name = ask.query.get("limit").unwrap_or_default();
    let known = ask.read(|server| limit::find(server, key, name))?;
    let known = known.unwrap_or_default();
    let rates: Vec<String> = known
        .rates
        .iter()
        .map(|rate| format!("{} PER {}", rate.limit, exact(rate.per)))
        .collect();
    let with = |field: Field, value: String, help: &str| Field {
        value,
        help: help.to_owned(),
        ..field
    };
    let running = known.concurrency.map(|most| most.to_string());
    let counts = if known.weighted { "costs" } else { "messages" };
    let fields = vec![
        with(
            line("limit", "Name", ""),
            printable(name),
            "As messages name it. With * it is a pattern, and each name has counters of its own.",
        ),
        with(
            line("concurrency", "How many may run at once", ""),
            running.unwrap_or_default(),
            "Empty: no limit.",
        ),
        with(
            line("rate", "How many may begin within a time", ""),
            rates.join(", "),
            "Such as 100 PER 1m. Up to four, with a comma between. Empty: no limit.",
        ),
        with(
            choice("counts", "What is counted", &["messages", "costs"]),
            counts.to_owned(),
            "Costs are what messages say with COST.",
        ),
    ];
    Ok((format!("A limit of {}", printable(key)), fields))
}

/// Returns the address of the form of a queue.
pub fn address(kind: FormKind, key: &[u8]) -> String {
    link(kind.name(), "queue", key)
}
