//! The servers: their versions, their settings for persistence, and the dangers of these.

use maud::{html, Markup};

use super::layout::{layout, Trail};
use super::parts::badge;
use crate::model::instance::Instance;
use crate::text::compact;
use crate::time_text::span;
use crate::web::answer::{Answer, Ask, HttpError};

/// Shows the page.
pub fn show(ask: &Ask) -> Result<Answer, HttpError> {
    let (instances, place) = {
        let live = ask.site.live();
        (live.instances.clone(), live.place.clone())
    };
    let known = instances.iter().any(Instance::is_known);
    let content = html! {
        h1 { "Server" }
        div #servers data-live {
            @if !known {
                p.none { "Nothing is known of the server: the user has no right to INFO (+info), or it was not asked yet." }
            }
            @for instance in instances.iter().filter(|instance| instance.is_known()) {
                (one(instance, &place))
            }
        }
    };
    Ok(layout(ask, "server", &Trail::new(), content))
}

fn one(instance: &Instance, place: &str) -> Markup {
    let text = |field: &str| instance.text(field).unwrap_or("-").to_owned();
    let yes = |field: &str| match instance.text(field) {
        Some("1") => "yes".to_owned(),
        Some("0") => "no".to_owned(),
        other => other.unwrap_or("-").to_owned(),
    };
    let time = |field: &str, unit: u64| {
        let value = instance.number(field);
        value.map_or("-".to_owned(), |value| span(value * unit))
    };
    let bytes = |field: &str| instance.number(field).map_or("-".to_owned(), size);
    let limit = match instance.number("maxmemory") {
        Some(0) => "none".to_owned(),
        _ => bytes("maxmemory"),
    };
    let module = match instance.module {
        Some(true) => format!("{} ({})", text("dq_version"), text("dq_revision")),
        Some(false) => "not loaded".to_owned(),
        None => "-".to_owned(),
    };
    let warnings = instance.warnings();
    let sections: [(&str, Vec<(&str, String)>); 4] = [
        (
            "Engine",
            vec![
                (
                    "engine",
                    instance.engine().unwrap_or_else(|| "-".to_owned()),
                ),
                ("dq module", module),
                ("role", text("role")),
                ("up for", time("uptime_in_seconds", 1000)),
                ("process", text("process_id")),
            ],
        ),
        (
            "Memory",
            vec![
                ("used", bytes("used_memory")),
                ("highest", bytes("used_memory_peak")),
                ("resident", bytes("used_memory_rss")),
                ("maxmemory", limit),
                ("maxmemory-policy", text("maxmemory_policy")),
            ],
        ),
        (
            "Persistence and replicas",
            vec![
                ("appendonly", yes("aof_enabled")),
                ("last write of the log", text("aof_last_write_status")),
                ("last snapshot", text("rdb_last_bgsave_status")),
                (
                    "changes since the snapshot",
                    text("rdb_changes_since_last_save"),
                ),
                ("replicas", text("connected_slaves")),
                ("good replicas", text("min_slaves_good_slaves")),
            ],
        ),
        (
            "Timer",
            vec![
                ("slices of work", count(instance, "dq_slices")),
                (
                    "longest slice",
                    instance
                        .number("dq_longest_slice_us")
                        .map_or("-".to_owned(), |us| format!("{} ms", us.div_ceil(1000))),
                ),
                ("late the last time", time("dq_timer_lag_ms", 1)),
                ("late at most", time("dq_timer_lag_max_ms", 1)),
            ],
        ),
    ];
    let place = if instance.place.is_empty() {
        place
    } else {
        &instance.place
    };
    html! {
        h2 { (place) " " @if warnings.is_empty() { (badge("no warnings", "")) } }
        @for warning in &warnings { p.warning { (warning) } }
        div.columns {
            @for (title, rows) in &sections {
                section {
                    h3 { (title) }
                    dl { @for (name, value) in rows { dt { (name) } dd { (value) } } }
                }
            }
        }
    }
}

fn count(instance: &Instance, field: &str) -> String {
    instance.number(field).map_or("-".to_owned(), compact)
}

/// Formats a number of bytes: 512 B, 1.5 MiB.
fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            return match unit {
                "B" => format!("{bytes} B"),
                unit => format!("{value:.1} {unit}"),
            };
        }
        value /= 1024.0;
    }
    format!("{value:.1} TiB")
}
