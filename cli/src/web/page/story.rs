//! What has happened to a message, and what will.

use maud::{html, Markup};
use redis::Value;

use super::parts::time;
use crate::model::record::Record;
use crate::text::plural;
use crate::time_text::{stamp, Millis};

/// Returns what has happened to a message, and what will, in the order of time.
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
    add(
        at("finished-at"),
        match state.as_str() {
            "dead" => format!("died: {}", message.text("reason")),
            state => state.to_owned(),
        },
    );
    // The sort is stable: what happened in one millisecond stays in this order.
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
                "died: retries"
            ]
        );
    }
}
