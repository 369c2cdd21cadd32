//! A payload for people: as JSON, text or bytes.

use maud::{html, Markup};

use crate::model::coded;
use crate::model::record::Record;
use crate::text::{plural, printable};
use crate::web::query::Query;

/// Maximum number of bytes of a payload that a page shows.
const SHOWN: usize = 64 << 10;

/// Bytes in a line of a hex dump.
const LINE: usize = 16;

/// Returns the payload of a message, with links to its other views.
pub fn payload_of(message: &Record, queue: &[u8], here: &Query, wanted: &str) -> Markup {
    let bytes = match coded::payload(queue, message) {
        Ok(bytes) => bytes,
        Err(words) => {
            return html! {
                h2 { "Payload" }
                p #payload { (words) ". " a href=(here.link("payload")) { "Save what the server has" } }
            }
        }
    };
    let (kind, text) = view(&bytes, wanted);
    html! {
        h2 { "Payload " span.note { (plural(bytes.len() as u64, "byte")) } }
        p.choices {
            @for choice in ["json", "text", "hex"] {
                @let address = here.clone().with("as", choice.as_bytes()).link("message");
                @if choice == kind { b { (choice) } } @else { a href=(address) { (choice) } }
            }
            a href=(here.link("payload")) { "save" }
        }
        pre.payload #payload { (text) }
        @if bytes.len() > SHOWN { p.note { "This is the beginning of it. Save it to see all." } }
    }
}

/// Returns a payload for people: in the requested form, or as JSON or text if it is either.
fn view(payload: &[u8], wanted: &str) -> (&'static str, String) {
    let head = payload.get(..SHOWN).unwrap_or(payload);
    let json = || {
        let whole = Some(payload).filter(|payload| payload.len() <= SHOWN)?;
        let json: serde_json::Value = serde_json::from_slice(whole).ok()?;
        let text = serde_json::to_string_pretty(&json).ok()?;
        // The line breaks are ours; everything else is escaped as in other text.
        Some(lines(text.as_bytes()))
    };
    match wanted {
        "hex" => return ("hex", hex(head)),
        "text" => return ("text", lines(head)),
        _ => {}
    }
    match json() {
        Some(text) => ("json", text),
        None if std::str::from_utf8(payload).is_ok() => ("text", lines(head)),
        None => ("hex", hex(head)),
    }
}

/// Escapes characters that could mislead, line by line.
pub fn lines(text: &[u8]) -> String {
    let lines = text.split(|byte| *byte == b'\n').map(printable);
    lines.collect::<Vec<_>>().join("\n")
}

fn hex(payload: &[u8]) -> String {
    let mut text = String::new();
    for (i, line) in payload.chunks(LINE).enumerate() {
        let digits: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        let shown: String = line
            .iter()
            .map(|byte| match byte {
                b' '..=b'~' => char::from(*byte),
                _ => '.',
            })
            .collect();
        text.push_str(&format!(
            "{:08x}  {:<47}  {shown}\n",
            i * LINE,
            digits.join(" ")
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_shown_as_what_it_is() {
        let json = view(
            b"{\"n\": 1.10, \"big\": 123456789012345678901234567890}",
            "",
        );
        assert_eq!(json.0, "json");
        assert!(
            json.1.contains("\"n\": 1.10,\n") && json.1.contains("123456789012345678901234567890")
        );
        assert_eq!(
            view(b"line 1\nline\x1b 2", ""),
            ("text", "line 1\nline\\x1b 2".to_owned())
        );
        assert_eq!(view(b"{}", "text"), ("text", "{}".to_owned()));
        let (kind, text) = view(b"\xff\x00abc", "");
        assert_eq!(
            (kind, text.trim_end()),
            (
                "hex",
                "00000000  ff 00 61 62 63                                   ..abc"
            )
        );
        assert_eq!(
            view("{\"a\":\"\u{202e}\"}".as_bytes(), "").1,
            "{\n  \"a\": \"\\u{202e}\"\n}"
        );
    }
}
