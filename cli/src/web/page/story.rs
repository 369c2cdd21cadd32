//! The history of a message, and the events that are still to come.

use maud::{html, Markup};
use redis::Value;

use super::parts::{name, time, to_form};
use super::payload::lines;
use crate::model::attempts;
use crate::model::error_text::summary;
use crate::model::record::Record;
use crate::text::{cut, plural, printable};
use crate::time_text::{stamp, Millis};
use crate::web::answer::Ask;
use crate::web::query::Query;

/// Maximum length of an error in a line of the story.
const LONG: usize = 200;

/// Returns the past and coming events of a message, in the order of time.
fn events(message: &Record, now: Millis) -> Vec<(Millis, String)> {
    let at = |field: &str| message.number(field);
    let state = message.text("state");
    let attempt = message.count("attempt");
    let consumer = match message.text("consumer") {
        name if name.is_empty() => String::new(),
        name => format!(" to {name}"),
    };
    let mut events = Vec::new();
    let mut add = |at: Option<Millis>, words: String| events.extend(at.map(|at| (at, words)));
    if at("first-sent-at") != at("sent-at") {
        add(
            at("first-sent-at"),
            "the first of the messages that it replaced was sent".to_owned(),
        );
    }
    add(at("sent-at"), "sent".to_owned());
    if at("due-at") != at("sent-at") {
        let due = at("due-at").is_some_and(|due| due > now);
        add(
            at("due-at"),
            (if due { "will be due" } else { "was due" }).to_owned(),
        );
    }
    if at("first-started-at") != at("started-at") {
        add(at("first-started-at"), "first delivered".to_owned());
    }
    add(
        at("started-at"),
        format!("delivered{consumer}, attempt {attempt}"),
    );
    add(
        at("lease-until"),
        "its lease ends, unless it is renewed".to_owned(),
    );
    for failed in attempts::of(message) {
        let error = printable(summary(&failed.error));
        let why = if error.is_empty() {
            "no error was given"
        } else {
            &error
        };
        let by = match failed.consumer.is_empty() {
            true => String::new(),
            false => format!(" at {}", printable(&failed.consumer)),
        };
        add(
            Some(failed.at),
            format!("attempt {} failed{by}: {}", failed.number, cut(why, LONG)),
        );
    }
    add(
        at("finished-at"),
        match state.as_str() {
            "dead" => format!("died: {}", message.text("reason")),
            state => state.to_owned(),
        },
    );
    // The sort is stable: events of one millisecond stay in this order.
    events.sort_by_key(|(at, _)| *at);
    events
}

/// Returns the story of a message, one event in a line.
pub fn story(message: &Record, now: Millis) -> Markup {
    let failures = message.count("failures");
    let timeouts = message.count("timeouts");
    let has_ended = message.number("finished-at").is_some();
    html! {
        ol.story {
            @for (at, words) in events(message, now) {
                li class=[(at > now).then_some("later")] {
                    time { (stamp(at)) } " " span { (words) } " " span.note { "(" (time(Some(at), now)) ")" }
                }
            }
        }
        @if failures > 0 {
            p.note {
                (plural(failures, "failure"))
                @if timeouts > 0 { ", of which " (timeouts) " by the end of a lease" }
                @if !has_ended {
                    @match message.get("retries-left") {
                        Value::Int(-1) => "; it is retried without end",
                        Value::Int(left) => { "; " (left) " more are forgiven" },
                        _ => {},
                    }
                }
            }
        }
    }
}

/// Returns the errors of failed attempts with all their lines, the newest first. `kept` is how
/// many the queue keeps of each message, if the module can do that.
pub fn failed(ask: &Ask, message: &Record, kept: Option<u64>, queue: &Query) -> Markup {
    let attempts = attempts::of(message);
    html! {
        // A refresh replaces only changed parts. Nothing in this list changes with time, so an
        // attempt that the reader has opened stays open.
        section #attempts data-live {
            @if !attempts.is_empty() {
                h2 { "Failed attempts" }
                @for failed in attempts.iter().rev() {
                    details {
                        summary {
                            "attempt " (failed.number) ", " (stamp(failed.at))
                            @if !failed.consumer.is_empty() { ", at " (name(&failed.consumer)) }
                            @if !failed.error.is_empty() {
                                ": " (cut(&printable(summary(&failed.error)), LONG))
                            }
                        }
                        pre.text.bad { (lines(&failed.error)) }
                    }
                }
            } @else if kept == Some(0) && message.count("failures") > 1 {
                p.note {
                    "The errors of earlier attempts are not kept: ERRORS of the queue is 0. "
                    (to_form(ask, "Change settings", "", "settings", queue))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::record::record;

    #[test]
    fn the_story_is_in_the_order_of_time() {
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let message = record(&[
            ("state", text("dead")),
            ("reason", text("retries")),
            ("attempt", Value::Int(2)),
            ("consumer", text("w1")),
            ("sent-at", Value::Int(10)),
            ("due-at", Value::Int(30)),
            ("first-started-at", Value::Int(20)),
            ("started-at", Value::Int(31)),
            ("finished-at", Value::Int(40)),
            (
                "errors",
                Value::Array(vec![Value::Array(vec![
                    Value::Int(2),
                    Value::Int(40),
                    text("w1"),
                    text("Traceback:\n  line 1\nKeyError: x"),
                ])]),
            ),
        ]);
        let words: Vec<_> = events(&message, 50)
            .into_iter()
            .map(|(_, words)| words)
            .collect();
        assert_eq!(
            words,
            [
                "sent",
                "first delivered",
                "was due",
                "delivered to w1, attempt 2",
                "attempt 2 failed at w1: KeyError: x",
                "died: retries"
            ]
        );
    }
}
