//! Answers are packed by gzip for browsers that take that, which are all.

use std::io::Write;

use axum::http::{header, HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use flate2::write::GzEncoder;
use flate2::Compression;

/// A shorter answer is not worth packing.
const SHORT: usize = 500;

/// Returns whether the browser takes gzip.
pub fn is_wanted(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT_ENCODING);
    let accepted = accepted.and_then(|value| value.to_str().ok()).unwrap_or("");
    accepted.split(',').any(|coding| {
        let mut words = coding.split(';').map(str::trim);
        words.next() == Some("gzip") && words.next() != Some("q=0")
    })
}

/// Returns the packed bytes.
pub fn pack(text: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::new(6));
    // Writing to memory does not fail.
    let _ = packed.write_all(text);
    packed.finish().unwrap_or_default()
}

/// Creates an answer of a text. It is compressed if the browser accepts that and the text is not short.
pub fn answer(status: StatusCode, kind: &'static str, text: String, gzip: bool) -> Response {
    let packed = gzip && text.len() >= SHORT;
    let body = match packed {
        true => pack(text.as_bytes()),
        false => text.into_bytes(),
    };
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::VARY, "accept-encoding"),
    ];
    let mut response = (status, headers, body).into_response();
    if packed {
        let gzip = HeaderValue::from_static("gzip");
        response
            .headers_mut()
            .insert(header::CONTENT_ENCODING, gzip);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_used_where_it_is_taken() {
        for (accepted, expected) in [
            ("gzip, deflate, br", true),
            ("br;q=1.0, gzip;q=0.5", true),
            ("gzip;q=0", false),
            ("identity", false),
        ] {
            let headers = HeaderMap::from_iter([(
                header::ACCEPT_ENCODING,
                HeaderValue::from_static(accepted),
            )]);
            assert_eq!(is_wanted(&headers), expected, "{accepted}");
        }
        assert!(!is_wanted(&HeaderMap::new()));
        assert!(pack(&[b'x'; 10_000]).len() < 200);
    }
}
