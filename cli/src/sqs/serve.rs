//! The connections of clients: it reads their requests, has them checked and done, and
//! writes the answers.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{to_bytes, Body};
use axum::http::{header, Response, StatusCode};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::Request;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use super::fault::{Fault, Kind};
use super::gateway::Gateway;
use super::keys::{Key, Keys};
use super::params::Params;
use super::request::{Call, Incoming, Protocol};
use super::{signature, store, xml};

/// Maximum size of a request: a batch of the greatest size, with each byte written as `%xx`
/// and as much around it.
const BODY: usize = 8 << 20;

/// Time for the head of a request. So it is also the time for which a connection may be idle.
const IDLE: Duration = Duration::from_secs(120);

/// Time for the body of a request.
const PATIENCE: Duration = Duration::from_secs(30);

/// Everything that a connection needs.
pub struct Door {
    /// The gateway.
    pub gateway: Arc<Gateway>,
    /// The keys that may come in. None: everybody.
    pub keys: Option<Keys>,
    /// The key of everybody.
    pub anyone: Arc<Key>,
}

/// Serves all connections, until the program ends.
pub async fn serve(listener: TcpListener, door: Arc<Door>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(converse(stream, Arc::clone(&door)));
            }
            // The client has gone again, or there is no descriptor left. That passes.
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn converse(stream: TcpStream, door: Arc<Door>) {
    // An answer is one write, and nothing is gained if it waits for more.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        let door = Arc::clone(&door);
        async move { Ok::<_, Infallible>(answer(&door, request.map(Body::new)).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .serve_connection(TokioIo::new(stream), service);
    // A connection that fails was ended by the client, or by the time above. No error can
    // be reported to it.
    let _ = pin!(connection).await;
}

async fn answer(door: &Door, request: Request<Body>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = match timeout(PATIENCE, to_bytes(body, BODY)).await {
        Ok(Ok(body)) => body.to_vec(),
        Ok(Err(_)) => return plain(StatusCode::PAYLOAD_TOO_LARGE, ""),
        Err(_) => return plain(StatusCode::REQUEST_TIMEOUT, ""),
    };
    let request = Incoming {
        method: head.method,
        uri: head.uri,
        headers: head.headers,
        body,
    };
    if request.uri.path() == "/health" {
        return plain(StatusCode::OK, "ok\n");
    }
    let (protocol, id) = (request.protocol(), store::uuid().unwrap_or_default());
    match done(door, request).await {
        Ok(Some((action, result))) => {
            let (kind, text) = match protocol {
                Protocol::Json => (JSON, serde_json::Value::Object(result).to_string()),
                Protocol::Query => (XML, xml::answer(&action, &result, &id)),
                Protocol::QueryJson => {
                    ("application/json", xml::answer_json(&action, &result, &id))
                }
            };
            write(StatusCode::OK, kind, &id, text)
        }
        Ok(None) => plain(StatusCode::NOT_FOUND, "<UnknownOperationException/>"),
        Err(fault) => refuse(&fault, protocol, &id),
    }
}

const JSON: &str = "application/x-amz-json-1.0";
const XML: &str = "text/xml";

/// Does what a request asks for. None if it asks for nothing.
async fn done(door: &Door, request: Incoming) -> Result<Option<(String, Params)>, Fault> {
    let key = match &door.keys {
        None if request.is_of_page(door.gateway.names.public_url.as_deref()) => {
            let message = "Requests of pages in browsers must be signed.";
            return Err(Fault::new(Kind::AccessDenied, message));
        }
        None => Arc::clone(&door.anyone),
        Some(keys) => signature::check(&request, keys)?,
    };
    let Some((action, params)) = request.asks()? else {
        return Ok(None);
    };
    let trace = request.header("x-amzn-trace-id").map(str::to_owned);
    let call = Call {
        action,
        params,
        key,
        base: request.base(),
        trace,
    };
    // Those who wait for messages are many.
    drop(request);
    let result = door.gateway.act(&call).await?;
    Ok(Some((call.action, result)))
}

fn refuse(fault: &Fault, protocol: Protocol, id: &str) -> Response<Body> {
    let (code, name, status) = fault.kind.parts();
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if matches!(fault.kind, Kind::InternalFailure) {
        eprintln!("dq: {}", fault.message);
    }
    let (kind, text) = match protocol {
        Protocol::Json => {
            let error = serde_json::json!({
                "__type": format!("com.amazonaws.sqs#{name}"),
                "message": fault.message,
            });
            (JSON, error.to_string())
        }
        Protocol::Query => (XML, xml::fault(fault, id)),
        Protocol::QueryJson => ("application/json", xml::fault_json(fault, id)),
    };
    let mut response = write(status, kind, id, text);
    let error = format!("{code};{}", fault.kind.blame());
    if let Ok(error) = error.parse() {
        response.headers_mut().insert("x-amzn-query-error", error);
    }
    response
}

fn write(status: StatusCode, kind: &str, id: &str, text: String) -> Response<Body> {
    let response = Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, kind)
        .header("x-amzn-requestid", id)
        .body(Body::from(text));
    response.unwrap_or_default()
}

fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response
}
