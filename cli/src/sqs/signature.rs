//! Signature version 4: in a header, or in the query of the address.

use std::sync::Arc;

use axum::http::Method;
use chrono::NaiveDateTime;
use percent_encoding::{percent_decode_str, utf8_percent_encode, AsciiSet, NON_ALPHANUMERIC};
use ring::{digest, hmac};

use super::fault::{Fault, Kind};
use super::keys::{Key, Keys};
use super::receive::now;
use super::request::Incoming;
use crate::text::{hex, unhex};

/// How far the clock of a client may be away, in seconds.
const SKEW: i64 = 900;

/// The bytes that are written as they are.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// The parts of a signature.
struct Signed {
    credential: String,
    headers: String,
    signature: String,
    time: String,
    /// Seconds for which an address is valid.
    expires: Option<i64>,
}

fn incomplete(what: &str) -> Fault {
    Fault::new(Kind::IncompleteSignature, what)
}

/// Returns the key that has signed a request.
pub fn check(request: &Incoming, keys: &Keys) -> Result<Arc<Key>, Fault> {
    let signed = signed(request)?;
    let mut scope = signed.credential.split('/');
    let id = scope.next().unwrap_or_default();
    let scope: Vec<&str> = scope.collect();
    let &[date, region, service, "aws4_request"] = scope.as_slice() else {
        return Err(incomplete(
            "Credential must have the form key/date/region/service/aws4_request.",
        ));
    };
    let key = keys.get(id).ok_or_else(|| {
        Fault::new(
            Kind::InvalidClientTokenId,
            "The security token included in the request is invalid.",
        )
    })?;
    check_time(&signed)?;
    let canonical = canonical(request, &signed)?;
    let text = format!(
        "AWS4-HMAC-SHA256\n{}\n{}\n{}",
        signed.time,
        scope.join("/"),
        hex(digest::digest(&digest::SHA256, canonical.as_bytes()))
    );
    let mut derived = format!("AWS4{}", key.secret).into_bytes();
    for part in [date, region, service, "aws4_request"] {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &derived);
        derived = hmac::sign(&key, part.as_bytes()).as_ref().to_vec();
    }
    let derived = hmac::Key::new(hmac::HMAC_SHA256, &derived);
    let given = unhex(&signed.signature).unwrap_or_default();
    match hmac::verify(&derived, text.as_bytes(), &given) {
        Ok(()) => Ok(Arc::clone(key)),
        Err(_) => Err(Fault::new(
            Kind::SignatureDoesNotMatch,
            "The request signature we calculated does not match the signature you provided. Check \
             your AWS Secret Access Key and signing method. Consult the service documentation for \
             details.",
        )),
    }
}

fn signed(request: &Incoming) -> Result<Signed, Fault> {
    let query = request.uri.query().unwrap_or_default();
    let in_query = |name: &str| {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let mut found = pairs.filter(|(field, _)| *field == name);
        let (_, value) = found.next()?;
        let value = value.replace('+', " ");
        Some(percent_decode_str(&value).decode_utf8_lossy().into_owned())
    };
    if let Some(header) = request.header("authorization") {
        let Some(rest) = header.strip_prefix("AWS4-HMAC-SHA256") else {
            return Err(incomplete("Only AWS4-HMAC-SHA256 is understood here."));
        };
        let part = |name: &str| {
            let parts = rest.split(',').map(str::trim);
            let mut parts = parts.filter_map(|part| part.split_once('='));
            let found = parts.find(|(field, _)| *field == name);
            let lacks = || {
                incomplete(&format!(
                    "Authorization header requires '{name}' parameter."
                ))
            };
            found.map(|(_, value)| value.to_owned()).ok_or_else(lacks)
        };
        let time = request.header("x-amz-date").map(str::to_owned);
        return Ok(Signed {
            credential: part("Credential")?,
            headers: part("SignedHeaders")?,
            signature: part("Signature")?,
            time: time.ok_or_else(|| incomplete("The header X-Amz-Date is missing."))?,
            expires: None,
        });
    }
    let Some(signature) = in_query("X-Amz-Signature") else {
        return Err(Fault::new(
            Kind::MissingAuthenticationToken,
            "Request is missing Authentication Token",
        ));
    };
    let part = |name: &str| {
        let lacks = || incomplete(&format!("The parameter {name} is missing."));
        in_query(name).ok_or_else(lacks)
    };
    Ok(Signed {
        credential: part("X-Amz-Credential")?,
        headers: part("X-Amz-SignedHeaders")?,
        signature,
        time: part("X-Amz-Date")?,
        expires: in_query("X-Amz-Expires").and_then(|text| text.parse().ok()),
    })
}

fn check_time(signed: &Signed) -> Result<(), Fault> {
    let time = NaiveDateTime::parse_from_str(&signed.time, "%Y%m%dT%H%M%SZ");
    let time = time.map_err(|_| incomplete("The time must have the form YYYYMMDDTHHMMSSZ."))?;
    let age = now() / 1000 - time.and_utc().timestamp();
    let most = signed.expires.unwrap_or(SKEW);
    match (-SKEW..=most).contains(&age) {
        true => Ok(()),
        false => Err(Fault::new(
            Kind::SignatureDoesNotMatch,
            format!(
                "Signature expired: {} is too far from the time here.",
                signed.time
            ),
        )),
    }
}

/// Returns the request as it is signed.
fn canonical(request: &Incoming, signed: &Signed) -> Result<String, Fault> {
    let method: &Method = &request.method;
    let path = request.uri.path().split('/');
    let path: Vec<String> = path.map(encoded).collect();
    let query = request.uri.query().unwrap_or_default();
    let mut pairs: Vec<(String, String)> = query
        .split('&')
        .filter(|pair| !pair.is_empty() && !pair.starts_with("X-Amz-Signature="))
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (again(name), again(value)))
        .collect();
    pairs.sort();
    let pairs = pairs.iter().map(|(name, value)| format!("{name}={value}"));
    let query: Vec<String> = pairs.collect();
    let mut headers = String::new();
    for name in signed.headers.split(';') {
        let values = request.headers.get_all(name).iter();
        let values = values.map(|value| String::from_utf8_lossy(value.as_bytes()));
        let values: Vec<String> = values
            .map(|value| value.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        headers.push_str(&format!("{name}:{}\n", values.join(",")));
    }
    let hash = digest::digest(&digest::SHA256, &request.body);
    Ok(format!(
        "{method}\n{}\n{}\n{headers}\n{}\n{}",
        path.join("/"),
        query.join("&"),
        signed.headers,
        hex(hash)
    ))
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

/// Writes a part of a query in the one form that is signed.
fn again(text: &str) -> String {
    let text = text.replace('+', " ");
    let bytes: Vec<u8> = percent_decode_str(&text).collect();
    percent_encoding::percent_encode(&bytes, PLAIN).to_string()
}
