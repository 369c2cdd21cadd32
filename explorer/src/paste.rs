//! A path as commands to paste into redis-cli.
//!
//! A command that comes before the timer stands in a transaction with the time that passes before
//! it, since the server does nothing else meanwhile.

use crate::lists::List;
use crate::world::World;

/// The commands of a path, a line each.
pub fn text(list: &List, actions: &[&str]) -> String {
    let mut world = World::new(list.most_events);
    let mut lines = Vec::new();
    let mut slept = 0;
    let all = list.setup.iter().chain(actions);
    for action in all {
        let before = world.clone();
        let verb = action.split(' ').next().unwrap_or_default();
        let words = before.words(action).unwrap_or_default();
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            world.act(action);
        }));
        match verb {
            "CLOCK" | "MS" | "STANDSTILL" => {
                slept += world.ms.saturating_sub(before.ms);
                if verb == "STANDSTILL" {
                    lines.push("# the server stands still meanwhile".to_owned());
                }
            }
            "BACK" => lines.push(format!("# the clock of the server is set back: {action}")),
            "TURN" => lines.push("# a turn of the event loop".to_owned()),
            "CLOSE" => lines.push("# the connection closes that has the leases".to_owned()),
            _ => {
                let line = match verb {
                    "TIMER" => action.replace("TIMER", "DQ.TICK"),
                    "COPY" => format!("{action} REPLACE"),
                    "RENAME" | "DEL" => (*action).to_owned(),
                    _ => format!("DQ.{}", with_receipts(action, &words)),
                };
                push(&mut lines, line, std::mem::take(&mut slept));
            }
        }
        if done.is_err() {
            lines.push("# here the server's assertion fails".to_owned());
        }
    }
    lines.join("\n")
}

fn push(lines: &mut Vec<String>, line: String, slept: u64) {
    if slept == 0 {
        return lines.push(line);
    }
    // A little longer than needed: the queue counts in whole milliseconds.
    let seconds = (slept + 1) as f64 / 1000.0;
    lines.push("MULTI".to_owned());
    lines.push(format!("DEBUG SLEEP {seconds}"));
    lines.push(line);
    lines.push("EXEC".to_owned());
}

/// The action with its receipts named. Another server gives others.
fn with_receipts(action: &str, words: &[Vec<u8>]) -> String {
    let told = action
        .split(' ')
        .zip(words)
        .map(|(word, put)| match word.as_bytes() {
            b"''" => word.to_owned(),
            [b'@', ..] => format!("<receipt {}>", String::from_utf8_lossy(put)),
            _ => String::from_utf8_lossy(put).into_owned(),
        });
    let told: Vec<_> = told.collect();
    match told.is_empty() {
        true => action.to_owned(),
        false => told.join(" "),
    }
}
