//! The form of the conditions that messages must meet.

use maud::{html, Markup};

use crate::model::change::{Target, ALL};
use crate::model::find::Filter;
use crate::text::printable;
use crate::web::query::Query;

/// The conditions, with the meaning of their fields.
const CONDITIONS: [(&str, &str, &str); 12] = [
    ("id", "id", "order-7-*"),
    ("type", "type", ""),
    ("group", "group", ""),
    ("batch", "batch", ""),
    ("parent", "parent's id", ""),
    ("parent-queue", "its queue", "this one"),
    ("error", "error", "HTTP 5*"),
    ("payload", "payload", "*\"user\":7*"),
    ("header", "header", ""),
    ("value", "its value", ""),
    ("since", "since", "2026-11-20T12:00 or 2h"),
    ("until", "until", ""),
];

/// Returns the form. It is open if there are conditions, and where messages are looked for in
/// many queues.
pub fn form(target: &Target, filter: &Filter, query: &Query) -> Markup {
    let (field, name) = match target {
        Target::Queue(name) => ("queue", name),
        Target::Family(name) => ("family", name),
        Target::Matching(pattern) => ("queues", pattern),
        Target::Several(_) => return html! {},
    };
    // A form can send only text. For a name that is not UTF-8 there is no form: its address
    // must be written by hand.
    let Ok(name) = std::str::from_utf8(name) else {
        return html! {};
    };
    let is_find = field == "queues";
    html! {
        details.filter open[is_find || !filter.is_whole_state()] {
            summary { "Conditions" }
            form.bar method="get" action="messages" {
                @if is_find {
                    label { "queues" input name="queues" value=(if name.as_bytes() == ALL { "" } else { name }) placeholder="all, or mails:*"; }
                } @else { input type="hidden" name=(field) value=(name); }
                input type="hidden" name="state" value=(filter.state);
                @for (i, (field, words, example)) in CONDITIONS.into_iter().enumerate() {
                    @let key = (i == 0).then_some("/");
                    label { (words)
                        input name=(field) value=(query.get(field).map(printable).unwrap_or_default()) placeholder=(example) data-key=[key];
                    }
                }
                label.check { input type="checkbox" name="newest" value="1" checked[query.get("newest").is_some()]; "newest first" }
                button { "Find" }
                p.note { "id, error and payload are patterns as of KEYS. Times are those that order the state, in UTC." }
            }
        }
    }
}
