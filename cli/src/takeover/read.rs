//! Small questions to a server, in either protocol.

use std::collections::BTreeMap;

use redis::{Cmd, Value};

use super::record::Bytes;
use crate::failure::Failure;
use crate::model::record::unexpected;
use crate::server::Server;

/// Runs a command.
pub fn ask(server: &mut Server, cmd: &Cmd) -> Result<Value, Failure> {
    server.call(cmd)
}

/// Returns the number that a command replies with. Nil is 0.
pub fn number(server: &mut Server, cmd: &Cmd) -> Result<i64, Failure> {
    match server.call(cmd)? {
        Value::Int(n) => Ok(n),
        Value::Nil => Ok(0),
        Value::BulkString(bytes) => Ok(String::from_utf8_lossy(&bytes).parse().unwrap_or(0)),
        _ => Err(unexpected()),
    }
}

/// Returns the texts of a reply.
pub fn texts(reply: Value) -> Vec<Bytes> {
    let items = match reply {
        Value::Array(items) | Value::Set(items) => items,
        _ => Vec::new(),
    };
    items.into_iter().filter_map(text).collect()
}

/// Returns the bytes of a text.
pub fn text(value: Value) -> Option<Bytes> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        Value::SimpleString(text) => Some(text.into_bytes()),
        Value::Int(n) => Some(n.to_string().into_bytes()),
        _ => None,
    }
}

/// Returns the fields of a hash.
pub fn fields(server: &mut Server, cmd: &Cmd) -> Result<BTreeMap<Bytes, Bytes>, Failure> {
    Ok(match server.call(cmd)? {
        Value::Map(pairs) => pairs
            .into_iter()
            .filter_map(|(name, value)| Some((text(name)?, text(value)?)))
            .collect(),
        other => texts(other)
            .chunks_exact(2)
            .filter_map(|pair| Some((pair.first()?.clone(), pair.get(1)?.clone())))
            .collect(),
    })
}

/// Returns the keys of a pattern, of all nodes.
pub fn scan(server: &mut Server, pattern: &str) -> Result<Vec<String>, Failure> {
    let nodes = server.look()?;
    let mut found = Vec::new();
    for node in 0..nodes {
        let mut cursor = "0".to_owned();
        loop {
            let mut cmd = redis::cmd("SCAN");
            cmd.arg(&cursor)
                .arg("MATCH")
                .arg(pattern)
                .arg("COUNT")
                .arg(1000);
            let Value::Array(reply) = server.call_on(node, &cmd)? else {
                return Err(unexpected());
            };
            let [next, keys] = <[Value; 2]>::try_from(reply).map_err(|_| unexpected())?;
            let keys = texts(keys).into_iter();
            found.extend(keys.filter_map(|key| String::from_utf8(key).ok()));
            cursor = text(next).map_or(String::new(), |next| {
                String::from_utf8_lossy(&next).into_owned()
            });
            if cursor == "0" || cursor.is_empty() {
                break;
            }
        }
    }
    Ok(found)
}

/// Returns the clock of a server, Unix ms.
pub fn clock(server: &mut Server) -> Result<u64, Failure> {
    let parts = texts(server.call(&redis::cmd("TIME"))?);
    let part = |at: usize| {
        let text = parts
            .get(at)
            .map(|part| String::from_utf8_lossy(part).into_owned());
        text.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0)
    };
    Ok(part(0) * 1000 + part(1) / 1000)
}

/// Returns a field of INFO, if the server has it.
pub fn info(server: &mut Server, section: &str, field: &str) -> Option<String> {
    let mut cmd = redis::cmd("INFO");
    cmd.arg(section);
    let reply = match server.nodes().is_empty() {
        true => server.call(&cmd),
        false => server.call_on(0, &cmd),
    };
    let words = match reply.ok()? {
        Value::VerbatimString { text, .. } => text,
        other => String::from_utf8_lossy(&text(other)?).into_owned(),
    };
    let line = words.lines().find_map(|line| {
        line.strip_prefix(field)?
            .strip_prefix(':')
            .map(str::to_owned)
    });
    line.map(|value| value.trim().to_owned())
}
