//! Brings requests to pages: it checks the visitor and the origin of forms, and sets the
//! headers of every answer.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::{to_bytes, Body};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{header, HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::Router;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::access::{Access, Gate, Refusal};
use super::answer::{Answer, Ask, HttpError};
use super::api;
use super::connections::PATIENCE;
use super::incoming::Incoming;
use super::origin;
use super::packing;
use super::page;
use super::query::{link, Query};
use super::site::Site;
use super::visitor::Visitor;

/// Maximum number of requests that are answered at once. Others wait.
const AT_ONCE: usize = 8;

/// Maximum size of a form: a test message with its payload.
const FORM: usize = 2 << 20;

/// Maximum size of the form of name, password and page to go to, which visitors send before
/// they are known. It has room for the longest ones with every byte as `%xx`.
const SIGN_IN: usize = 8192;

/// Maximum size of the address that is kept while a visitor signs in.
const NEXT: usize = 1024;

/// Nothing is loaded from elsewhere, no script runs but ours, and nobody frames a page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

#[derive(Clone)]
struct Shared {
    site: Arc<Site>,
    permits: Arc<Semaphore>,
}

/// Returns all routes.
pub fn router(site: Arc<Site>) -> Router {
    let mut router = Router::new();
    for (path, kind, text) in [
        ("/style.css", "text/css", include_str!("assets/style.css")),
        ("/dq.js", "text/javascript", include_str!("assets/dq.js")),
        (
            "/icon.svg",
            "image/svg+xml",
            include_str!("assets/icon.svg"),
        ),
    ] {
        let kind = format!("{kind}; charset=utf-8");
        let packed: Arc<[u8]> = packing::pack(text.as_bytes()).into();
        let file = move |wanted: HeaderMap| async move {
            let headers = [
                (header::CONTENT_TYPE, kind),
                (header::CACHE_CONTROL, "max-age=60".to_owned()),
                (header::VARY, "accept-encoding".to_owned()),
            ];
            match packing::is_wanted(&wanted) {
                true => {
                    let gzip = [(header::CONTENT_ENCODING, "gzip")];
                    (headers, gzip, packed.to_vec()).into_response()
                }
                false => (headers, text).into_response(),
            }
        };
        router = router.route(path, get(file));
    }
    let shared = Shared {
        site,
        permits: Arc::new(Semaphore::new(AT_ONCE)),
    };
    router
        .fallback(answer)
        .layer(axum::middleware::map_response(guarded))
        .with_state(shared)
}

/// Adds the headers that every answer has.
async fn guarded(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

async fn answer(
    State(shared): State<Shared>,
    ConnectInfo(address): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    let (head, body) = request.into_parts();
    let (method, uri, headers) = (head.method, head.uri, head.headers);
    let path = uri.path().trim_start_matches('/').to_owned();
    let most = if path == "login" { SIGN_IN } else { FORM };
    let form = match timeout(PATIENCE, to_bytes(body, most)).await {
        Ok(Ok(form)) => form,
        Ok(Err(_)) => return StatusCode::PAYLOAD_TOO_LARGE.into_response(),
        // The rest of the form is not read.
        Err(_) => {
            let end = [(header::CONNECTION, "close")];
            return (StatusCode::REQUEST_TIMEOUT, end).into_response();
        }
    };
    let Ok(_permit) = shared.permits.acquire().await else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let site = shared.site;
    // A page waits for the server of the queues, which must not hold up other requests.
    let answer = tokio::task::spawn_blocking(move || {
        let request = Incoming {
            address,
            path,
            posted: method == Method::POST,
            query: Query::parse(uri.query().unwrap_or_default().as_bytes()),
            form: Query::parse(&form),
            headers,
        };
        match method {
            Method::GET | Method::HEAD | Method::POST => respond(&site, request),
            _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        }
    });
    answer
        .await
        .unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

fn respond(site: &Arc<Site>, request: Incoming) -> Response {
    if request.path == "health" {
        let status = match site.live().lost {
            None => StatusCode::OK,
            Some(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        return status.into_response();
    }
    // The headers of the browser tell which page has sent a form.
    if request.posted && !origin::is_ours(|name| request.header(name)) {
        return refuse(Refusal::OtherOrigin, &request.path);
    }
    if request.path == "login" {
        return login(site, &request);
    }
    let session = request.session();
    let found = site
        .access
        .visitor(request.address.ip(), session.as_deref(), |name| {
            request.headers(name)
        });
    let visitor = match found {
        Ok(visitor) => visitor,
        Err(Refusal::SignIn) if !request.path.starts_with("api/") => {
            // The session has ended: after the sign-in, the page of the form asks again for the same action.
            let page = match request.path.as_str() {
                "do" => "confirm",
                path => path,
            };
            let next = request.query.link(page);
            return to(&link("login", "next", known_page(&next).as_bytes()), None);
        }
        Err(refusal) => return refuse(refusal, &request.path),
    };
    let ask = Ask {
        site: Arc::clone(site),
        visitor,
        path: request.path.clone(),
        query: request.query.clone(),
        form: request.form.clone(),
        posted: request.posted,
    };
    let wire = Wire {
        gzip: packing::is_wanted(&request.headers),
        since: request.header("dq-seen").and_then(|v| v.parse().ok()),
    };
    if request.posted {
        let token = ask.form.get("csrf").unwrap_or_default();
        if !ask.visitor.is_program() && !ask.visitor.accepts(token) {
            let why = "This form is not from a page of yours. Go back, reload the page, try again.";
            return finish(&ask, Err(HttpError::forbidden(why)), &wire);
        }
        if request.path == "logout" {
            site.access.sign_out(session.as_deref().unwrap_or_default());
            site.audit.write(&ask.visitor, "sign out", "", "done");
            return to("login", Some(request.cookie("")));
        }
    }
    // A token opens no page. All that a program may do is behind api/.
    if ask.visitor.is_program() && !ask.path.starts_with("api/") {
        return finish(
            &ask,
            Err(HttpError::missing("A token is for addresses behind api/.")),
            &wire,
        );
    }
    let allowed = if ask.posted {
        ask.check_rights()
    } else {
        Ok(())
    };
    let answer = allowed.and_then(|()| match request.path.strip_prefix("api/") {
        Some(what) => api::route(&ask, what),
        None => page::route(&ask, &request.path, request.posted),
    });
    finish(&ask, answer, &wire)
}

/// The form in which an answer is to be sent.
struct Wire {
    /// Whether the answer may be compressed.
    gzip: bool,
    /// The version of the page that the browser has, if it wants only changes.
    since: Option<u64>,
}

fn finish(ask: &Ask, answer: Result<Answer, HttpError>, wire: &Wire) -> Response {
    match answer {
        Ok(Answer::Page(markup)) => page(ask, markup.into_string(), wire),
        Ok(Answer::Json(text)) => {
            packing::answer(StatusCode::OK, "application/json", text, wire.gzip)
        }
        Ok(Answer::Bytes(bytes)) => {
            let headers = [
                (header::CONTENT_TYPE, "application/octet-stream"),
                (
                    header::CONTENT_DISPOSITION,
                    "attachment; filename=\"payload\"",
                ),
            ];
            (headers, bytes).into_response()
        }
        Ok(Answer::To(address)) => to(&address, None),
        Err(error) => {
            let status = StatusCode::from_u16(error.status);
            let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            if ask.path.starts_with("api/") {
                return self::error(status, &error.words);
            }
            html(status, page::error(ask, &error).into_string())
        }
    }
}

/// Returns a page, or its changes since the browser got it.
fn page(ask: &Ask, text: String, wire: &Wire) -> Response {
    let versions = &ask.site.versions;
    if let Some(since) = wire.since {
        let changes = versions.changes(&text, since).to_string();
        return packing::answer(StatusCode::OK, "application/json", changes, wire.gzip);
    }
    let version = versions.remember(&text);
    let text = text.replacen("<body>", &format!("<body data-version=\"{version}\">"), 1);
    packing::answer(StatusCode::OK, HTML, text, wire.gzip)
}

/// The type of a page.
const HTML: &str = "text/html; charset=utf-8";

fn html(status: StatusCode, text: String) -> Response {
    packing::answer(status, HTML, text, false)
}

/// Sends the browser to another page. Addresses are relative, so that a proxy can serve
/// all pages below a path of its own.
fn to(address: &str, cookie: Option<String>) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let headers = [
        (header::LOCATION, Some(address.to_owned())),
        (header::SET_COOKIE, cookie),
    ];
    for (name, value) in headers {
        if let Some(Ok(value)) = value.map(HeaderValue::try_from) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

fn refuse(refusal: Refusal, path: &str) -> Response {
    let words = match refusal {
        Refusal::SignIn => "Sign in first.",
        Refusal::NoToken => "No program has this token.",
        Refusal::NoProxy => {
            "This page is only for those whom the proxy knows: the request did not come through \
             it, or without the name of a user."
        }
        Refusal::TwoUsers => {
            "The request names more than one user: the proxy must remove the header that came \
             from the visitor."
        }
        Refusal::OtherOrigin => {
            "This form is not from a page of ours. If a proxy is between, it must pass on Host or \
             X-Forwarded-Host as it was asked."
        }
        Refusal::OtherHost => {
            "This page is not served under this name: start dq web with --host NAME to allow it."
        }
    };
    let status = match refusal {
        Refusal::TwoUsers => StatusCode::BAD_REQUEST,
        Refusal::NoToken => StatusCode::UNAUTHORIZED,
        _ => StatusCode::FORBIDDEN,
    };
    match path.starts_with("api/") {
        true => error(status, words),
        false => html(status, page::refusal(words).into_string()),
    }
}

/// Returns an error for a program.
fn error(status: StatusCode, words: &str) -> Response {
    let why = serde_json::json!({ "error": words }).to_string();
    packing::answer(status, "application/json", why, false)
}

/// Returns the address of one of these pages, written anew, so that nobody's link leads elsewhere from
/// here. Empty for the first page, and for what is no page or too long.
fn known_page(address: &str) -> String {
    let (path, fields) = address.split_once('?').unwrap_or((address, ""));
    let is_page = path.bytes().all(|byte| byte.is_ascii_lowercase());
    let written = Query::parse(fields.as_bytes()).link(path);
    match is_page && written.len() <= NEXT && !matches!(path, "login" | "logout") {
        true => written,
        false => String::new(),
    }
}

/// Shows the form for name and password, and signs in.
fn login(site: &Site, request: &Incoming) -> Response {
    if !matches!(site.access.gate, Gate::Passwords(_)) {
        return to("./", None);
    }
    if !request.posted {
        let next = known_page(request.query.text("next"));
        return html(StatusCode::OK, page::login(None, "", &next).into_string());
    }
    let next = known_page(request.form.text("next"));
    let user = request.form.text("user");
    let password = request.form.get("password").unwrap_or_default();
    let plausible = Access::is_plausible(user, password);
    let visitor = Visitor {
        user: if plausible { user } else { "" }.to_owned(),
        address: request.address.ip().to_string(),
        ..Visitor::default()
    };
    let (status, words) = match site.access.sign_in(user, password) {
        Ok(Some(session)) => {
            site.audit.write(&visitor, "sign in", "", "done");
            let page = if next.is_empty() { "./" } else { &next };
            return to(page, Some(request.cookie(&session)));
        }
        Ok(None) => (StatusCode::FORBIDDEN, "Wrong name or password.".to_owned()),
        Err(failure) => (StatusCode::TOO_MANY_REQUESTS, failure.to_string()),
    };
    let what = match plausible {
        true => "",
        false => "the name or the password is too long",
    };
    site.audit.write(&visitor, "sign in", what, &words);
    let form = page::login(Some(&words), &visitor.user, &next);
    html(status, form.into_string())
}
