//! A line of an export as the commands that send its message again.

use serde_json::Value as Json;

use crate::bounds;
use crate::takeover::args::DeadJobs;
use crate::takeover::export::bytes_of;
use crate::takeover::peer::{words, Words};

/// Returns the commands of a message, or why it stays. Fails if it is none.
pub fn message(
    value: &Json,
    key: &[u8],
    dead: DeadJobs,
) -> Result<Result<Vec<Words>, String>, String> {
    let field = |name: &str| bytes_of(&value[name]).map_err(|why| format!("{name}: {why}"));
    let id = field("id")?.ok_or("it has no id")?;
    let payload = field("payload")?.ok_or("it has no payload")?;
    let state = value["state"].as_str().unwrap_or_default();
    let mut all = match state {
        "ready" | "blocked" | "delayed" | "retry" => words([b"DQ.SEND", key, &payload]),
        "dead" if dead == DeadJobs::Leave => return Ok(Err("--dead leave".to_owned())),
        "dead" => {
            let error = field("error")?.or(field("reason")?).unwrap_or_default();
            words([
                b"DEAD",
                &payload,
                &[b":dead:", id.as_slice()].concat(),
                &error,
            ])
        }
        state => return Ok(Err(state.to_ascii_uppercase())),
    };
    all.extend(words([b"ID", &id]));
    if matches!(state, "delayed" | "retry") {
        all.extend(words([b"AT", &field("due-at")?.ok_or("it has no due-at")?]));
    }
    let mut names = vec![
        ("PRIORITY", "priority"),
        ("TYPE", "type"),
        ("BATCH", "batch"),
        ("COST", "cost"),
    ];
    if state != "dead" {
        names.push(("GROUP", "group"));
        // Without a group there is no score.
        if !value["group"].is_null() {
            names.push(("SCORE", "score"));
        }
    }
    for (option, name) in names {
        if let Some(word) = field(name)? {
            all.extend(words([option.as_bytes(), &word]));
        }
    }
    if let Some(left) = bounds::RETRIES_LEFT.json(&value["retries-left"]) {
        // The end that makes it dead counts as a failure.
        let failure = i64::from(state == "dead" && left >= 0);
        all.extend(words([b"RETRIES", (left + failure).to_string().as_bytes()]));
    }
    let headers = pairs(&value["headers"])?;
    if !headers.is_empty() {
        all.extend(words([
            b"HEADERS",
            (headers.len() / 2).to_string().as_bytes(),
        ]));
        all.extend(headers);
    }
    let limits = value["limits"].as_array().cloned().unwrap_or_default();
    if !limits.is_empty() {
        all.extend(words([b"LIMITS", limits.len().to_string().as_bytes()]));
        for limit in &limits {
            all.push(bytes_of(limit)?.unwrap_or_default());
        }
    }
    Ok(Ok(vec![all]))
}

fn pairs(headers: &Json) -> Result<Vec<Vec<u8>>, String> {
    let mut all = Vec::new();
    match headers {
        Json::Object(fields) => {
            for (name, value) in fields {
                all.push(name.clone().into_bytes());
                all.push(bytes_of(value)?.unwrap_or_default());
            }
        }
        Json::Array(pairs) => {
            for pair in pairs {
                all.push(bytes_of(&pair[0])?.unwrap_or_default());
                all.push(bytes_of(&pair[1])?.unwrap_or_default());
            }
        }
        _ => {}
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sent(value: Json) -> String {
        let commands = message(&value, b"q", DeadJobs::Take).unwrap().unwrap();
        let text: Vec<_> = commands
            .concat()
            .iter()
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect();
        text.join(" ")
    }

    #[test]
    fn a_message_becomes_what_it_was() {
        let all = json!({
            "id": "a", "state": "retry", "payload": {"base64": "/w=="}, "due-at": 1_800_000_000_000_u64, "priority": -3,
            "retries-left": 2, "group": "g", "score": 7, "type": "t", "headers": {"h": "v"}, "batch": "b", "limits": ["l"],
            "cost": 3,
        });
        assert_eq!(
            sent(all),
            "DQ.SEND q \u{fffd} ID a AT 1800000000000 PRIORITY -3 TYPE t BATCH b COST 3 GROUP g SCORE 7 RETRIES 2 HEADERS 1 h v \
             LIMITS 1 l"
        );
        assert_eq!(
            sent(json!({"id": "a", "state": "ready", "payload": ""})),
            "DQ.SEND q  ID a"
        );
        let dead = json!({"id": "a", "state": "dead", "payload": "p", "error": "no", "group": "g"});
        assert_eq!(sent(dead), "DEAD p :dead:a no ID a");
    }

    #[test]
    fn what_runs_or_is_held_stays() {
        for state in ["running", "held", "finished"] {
            let value = json!({"id": "a", "state": state, "payload": "p"});
            assert_eq!(
                message(&value, b"q", DeadJobs::Take).unwrap(),
                Err(state.to_ascii_uppercase())
            );
        }
        assert!(message(
            &json!({"state": "ready", "payload": "p"}),
            b"q",
            DeadJobs::Take
        )
        .is_err());
    }
}
