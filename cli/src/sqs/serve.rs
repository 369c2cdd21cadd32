//! The connections of clients: it reads their requests, has them checked and done, and
//! writes the answers.

use std::convert::Infallible;
use std::future::pending;
use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{to_bytes, Body, Bytes};
use axum::http::{header, Response, StatusCode};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::Request;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{join, AsyncReadExt, AsyncWriteExt, Chain, Join};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::select;
use tokio::sync::{mpsc, Mutex, Semaphore};
use tokio::time::{sleep, timeout};

use super::fault::{Fault, Kind};
use super::gateway::Gateway;
use super::keys::{Key, Keys};
use super::params::Params;
use super::receive::{self, Received};
use super::request::{Call, Incoming, Protocol};
use super::{signature, store, xml};

/// Maximum size of a request: a batch of the greatest size, with each byte written as `%xx`
/// and as much around it.
const BODY: usize = 8 << 20;

/// Time for the head of a request. So it is also the time for which a connection may be idle.
const IDLE: Duration = Duration::from_secs(120);

/// Time for the body of a request.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many connections are served at once until their first answer, and how long others wait for
/// that. The buffers of a crowd that comes at once would take much more memory than its requests.
static CROWD: Semaphore = Semaphore::const_new(64);
const CROWDED: Duration = Duration::from_secs(3);

/// Everything that a connection needs.
pub struct Door {
    /// The gateway.
    pub gateway: Arc<Gateway>,
    /// The keys that may come in. None: everybody.
    pub keys: Option<Keys>,
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

/// A connection of which some bytes were read before.
type Stream = Join<Chain<Cursor<Bytes>, OwnedReadHalf>, OwnedWriteHalf>;

/// A request that waits for messages.
struct Waiting {
    poll: receive::Poll,
    form: Form,
    /// Whether the connection ends with the answer.
    closes: bool,
}

/// How a request is answered.
struct Form {
    protocol: Protocol,
    id: String,
    action: String,
}

/// Serves a connection. The buffers of hyper are many times larger than a request that waits for
/// messages, so hyper does not have the connection while it waits.
async fn converse(stream: TcpStream, door: Arc<Door>) {
    // An answer is one write, and nothing is gained if it waits for more.
    let _ = stream.set_nodelay(true);
    let (mut reader, mut writer) = stream.into_split();
    let mut before = Bytes::new();
    while !before.is_empty() || timeout(IDLE, reader.readable()).await.is_ok() {
        let stream = join(Cursor::new(before).chain(reader), writer);
        let Some((waiting, stream, read)) = converse_until_one_waits(stream, &door).await else {
            return;
        };
        let (chain, unwritten) = stream.into_inner();
        let (unread, here) = chain.into_inner();
        (reader, writer) = (here, unwritten);
        let rest = unread.get_ref().iter().skip(unread.position() as usize);
        before = read.iter().chain(rest).copied().collect();
        drop((read, unread));
        let result = select! {
            result = waiting.poll.wait(&door.gateway) => result,
            () = closed(&mut reader) => return,
        };
        let answer = waiting.form.answer(result);
        let sent = writer.write_all(&written(answer, waiting.closes)).await;
        if sent.is_err() || waiting.closes {
            return;
        }
    }
}

/// Answers requests until one waits for messages. Returns it with the connection and what was
/// read behind it, or None if the connection has ended.
async fn converse_until_one_waits(stream: Stream, door: &Door) -> Option<(Waiting, Stream, Bytes)> {
    let crowd = &Mutex::new(timeout(CROWDED, CROWD.acquire()).await.ok());
    let (give, mut take) = mpsc::channel(1);
    let give = &give;
    let service = service_fn(move |request: Request<hyper::body::Incoming>| async move {
        let answer = answer(door, request.map(Body::new)).await;
        *crowd.lock().await = None;
        match answer {
            Ok(response) => Ok::<_, Infallible>(response.map(Body::from)),
            Err(waiting) => {
                let _ = give.send(waiting).await;
                pending().await
            }
        }
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .serve_connection(TokioIo::new(stream), service);
    let waiting = select! {
        // A connection that fails was ended by the client, or by the time above. No error can
        // be reported to it.
        _ = &mut connection => return None,
        waiting = take.recv() => waiting?,
    };
    let parts = connection.into_parts();
    Some((waiting, parts.io.into_inner(), parts.read_buf))
}

/// Returns when the client has closed the connection.
async fn closed(reader: &mut OwnedReadHalf) {
    // Something else that comes is the next request, which waits for this one.
    if let Ok(1..) = reader.peek(&mut [0]).await {
        pending().await
    }
}

/// Returns an answer as hyper would write it.
fn written(answer: Response<String>, closes: bool) -> Vec<u8> {
    let (head, body) = answer.into_parts();
    let now = chrono::DateTime::from_timestamp_millis(receive::now()).unwrap_or_default();
    let now = now.format("%a, %d %b %Y %H:%M:%S GMT");
    let mut bytes = format!("HTTP/1.1 {}\r\ndate: {now}\r\n", head.status).into_bytes();
    for (name, value) in &head.headers {
        bytes.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    let connection = if closes { "connection: close\r\n" } else { "" };
    let length = body.len();
    bytes.extend(format!("{connection}content-length: {length}\r\n\r\n{body}").bytes());
    bytes
}

async fn answer(door: &Door, request: Request<Body>) -> Result<Response<String>, Waiting> {
    let (head, body) = request.into_parts();
    let body = match timeout(PATIENCE, to_bytes(body, BODY)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => return Ok(plain(StatusCode::PAYLOAD_TOO_LARGE, "")),
        Err(_) => return Ok(plain(StatusCode::REQUEST_TIMEOUT, "")),
    };
    let request = Incoming {
        method: head.method,
        uri: head.uri,
        version: head.version,
        headers: head.headers,
        body,
    };
    if request.uri.path() == "/health" {
        return Ok(plain(StatusCode::OK, "ok\n"));
    }
    let form = |action| Form {
        protocol: request.protocol(),
        id: store::uuid(),
        action,
    };
    Ok(match done(door, &request).await {
        Ok(Some((action, Received::Now(result)))) => form(action).answer(Ok(result)),
        Ok(Some((action, Received::Later(poll)))) => {
            return Err(Waiting {
                poll,
                form: form(action),
                closes: request.closes(),
            })
        }
        Ok(None) => plain(StatusCode::NOT_FOUND, "<UnknownOperationException/>"),
        Err(fault) => form(String::new()).answer(Err(fault)),
    })
}

const JSON: &str = "application/x-amz-json-1.0";
const XML: &str = "text/xml";

impl Form {
    /// Returns the answer.
    fn answer(&self, result: Result<Params, Fault>) -> Response<String> {
        let (action, id) = (&self.action, &self.id);
        let result = match result {
            Ok(result) => result,
            Err(fault) => return refuse(&fault, self.protocol, id),
        };
        let (kind, text) = match self.protocol {
            Protocol::Json => (JSON, serde_json::Value::Object(result).to_string()),
            Protocol::Query => (XML, xml::answer(action, &result, id)),
            Protocol::QueryJson => ("application/json", xml::answer_json(action, &result, id)),
        };
        write(StatusCode::OK, kind, id, text)
    }
}

/// Does what a request asks for. None if it asks for nothing.
async fn done(door: &Door, request: &Incoming) -> Result<Option<(String, Received)>, Fault> {
    let key = match &door.keys {
        None if request.is_of_page(door.gateway.names.public_url.as_deref()) => {
            let message = "Requests of pages in browsers must be signed.";
            return Err(Fault::new(Kind::AccessDenied, message));
        }
        None => Arc::new(Key::anyone()),
        Some(keys) => signature::check(request, keys)?,
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
    let received = door.gateway.act(&call).await?;
    Ok(Some((call.action, received)))
}

fn refuse(fault: &Fault, protocol: Protocol, id: &str) -> Response<String> {
    let (kind, status) = (fault.kind, StatusCode::from_u16(fault.kind.status()));
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let error = format!("{};{}", kind.code(), kind.blame());
    if kind == Kind::InternalFailure {
        eprintln!("dq: {}", fault.message);
    }
    let (kind, text) = match protocol {
        Protocol::Json => {
            let name = format!("com.amazonaws.sqs#{}", kind.name());
            let error = serde_json::json!({ "__type": name, "message": fault.message });
            (JSON, error.to_string())
        }
        Protocol::Query => (XML, xml::fault(fault, id)),
        Protocol::QueryJson => ("application/json", xml::fault_json(fault, id)),
    };
    let mut response = write(status, kind, id, text);
    if let Ok(error) = error.parse() {
        response.headers_mut().insert("x-amzn-query-error", error);
    }
    response
}

fn write(status: StatusCode, kind: &str, id: &str, text: String) -> Response<String> {
    let response = Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, kind)
        .header("x-amzn-requestid", id)
        .body(text);
    response.unwrap_or_default()
}

fn plain(status: StatusCode, text: &str) -> Response<String> {
    let mut response = Response::new(text.to_owned());
    *response.status_mut() = status;
    response
}
