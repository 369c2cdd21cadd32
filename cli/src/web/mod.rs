//! `dq web`: the queues as web pages.
//!
//! `access` knows who asks, `serve` brings requests to `page` (one file for each page)
//! and `action` (what can be changed), `site` holds what they share. All bytes that come
//! from a queue go through `text::printable` and the templates of maud, which escape.

mod access;
mod action;
mod address;
mod answer;
mod api;
mod audit;
pub mod connections;
mod history;
mod incoming;
mod jobs;
mod listen;
mod live;
mod origin;
pub mod packing;
mod page;
mod passwords;
mod prometheus;
mod query;
mod random;
mod rights;
mod serve;
mod site;
mod tries;
mod visitor;

use std::io::{BufRead, IsTerminal};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::failure::Failure;
use crate::model::instance;
use crate::model::watch::Watch;
use crate::output::Output;
use crate::server::Endpoint;
use crate::time_text::{parse_interval, Millis};
use access::{Access, Gate, Headers};
use audit::Audit;
use history::HistoryFile;
pub use listen::Listen;
pub use origin::is_ours;
pub use prometheus::label;
use prometheus::{Prometheus, Source};
use site::Site;

/// Options of `dq web`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only these queues are listed, or those that match: 'jobs:*'; without, all of the server
    #[arg(value_name = "QUEUE")]
    queues: Vec<String>,
    /// Only queues are listed whose names match, as of KEYS: 'jobs:*'
    #[arg(long = "match", value_name = "GLOB", conflicts_with = "queues")]
    pattern: Option<String>,
    /// Where to listen: HOST:PORT, or a PORT of this machine only
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8377", value_parser = Listen::parse)]
    listen: Listen,
    /// Show everything, change nothing
    #[arg(long)]
    read_only: bool,
    /// Ask for name and password. The file has a line for each user, as --hash-password or
    /// `htpasswd -nB` prints it, and behind it `:ROLE:GLOBS` for those who may not do everything
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Trust this header of a proxy for the name of the user: X-Forwarded-User
    #[arg(long, value_name = "NAME", conflicts_with = "password_file")]
    user_header: Option<String>,
    /// With --user-header: the header that says viewer, operator or admin; who has none of them is a
    /// viewer
    #[arg(long, value_name = "NAME", requires = "user_header")]
    role_header: Option<String>,
    /// With --user-header: the addresses of the proxies
    #[arg(long, value_name = "ADDRESS", default_values = ["127.0.0.1", "::1"], requires = "user_header")]
    proxy: Vec<IpAddr>,
    /// Let everybody in who reaches the address, though it is not of this machine only
    #[arg(long, conflicts_with_all = ["password_file", "user_header"])]
    no_login: bool,
    /// Without a login: another name under which browsers may ask for the pages
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Append a line for each action to this file, instead of the standard error
    #[arg(long, value_name = "FILE")]
    audit_log: Option<PathBuf>,
    /// Keep the history in this file, over a restart of dq web [default: one for this server in
    /// ~/.local/share/dq/web, or in the directory of the service]
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    /// Keep no history over a restart
    #[arg(long, conflicts_with = "history")]
    no_history: bool,
    /// Take the history from this Prometheus, which asks the exporter:
    /// http://prometheus:9090
    #[arg(long, value_name = "URL", value_parser = Source::parse)]
    prometheus: Option<Source>,
    /// With --prometheus: labels that choose the server of these queues, as of PromQL:
    /// 'instance="shop:9122",db="0"'
    #[arg(
        long,
        value_name = "LABELS",
        requires = "prometheus",
        default_value = "",
        hide_default_value = true
    )]
    prometheus_labels: String,
    /// How often the server is asked
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_interval)]
    interval: Millis,
    /// Read a password from the standard input, print the line of this user for
    /// --password-file, and end
    #[arg(long, value_name = "USER")]
    hash_password: Option<String>,
    /// Print a token for a program, and behind it the line of this program for --password-file, and
    /// end
    #[arg(long, value_name = "PROGRAM", conflicts_with = "hash_password")]
    new_token: Option<String>,
}

/// Serves the pages until the program is ended.
pub fn run(endpoint: &Endpoint, args: &Args, out: &mut Output) -> Result<(), Failure> {
    if let Some(user) = &args.hash_password {
        if std::io::stdin().is_terminal() {
            eprint!("password (it is shown): ");
        }
        let mut password = String::new();
        std::io::stdin().lock().read_line(&mut password)?;
        let password = password.trim_end_matches(['\r', '\n']);
        return out.line(&passwords::line(user, password.as_bytes())?);
    }
    if let Some(program) = &args.new_token {
        let (token, line) = passwords::token(program)?;
        out.line(&token)?;
        return out.line(&line);
    }
    let access = Access::new(gate(args)?)?;
    let audit = Audit::open(args.audit_log.as_deref())?;
    let site = Site::new(endpoint.clone(), access, args.read_only, audit);
    let prometheus = args.prometheus.clone();
    let prometheus = prometheus.map(|source| Prometheus::new(source, &args.prometheus_labels));
    let file = match (&args.history, args.no_history) {
        (Some(path), _) => Some(HistoryFile::open(path.clone())?),
        (None, true) => None,
        (None, false) => {
            let shown = args.pattern.iter().chain(&args.queues);
            HistoryFile::usual(&endpoint.title()?, shown)
        }
    };
    let site = site.with_history(file);
    let site = Arc::new(site.with_prometheus(prometheus));
    instance::first_look(endpoint)?;
    let watch = Watch::of(&args.queues, args.pattern.as_deref())?;
    Arc::clone(&site).watch(watch, Duration::from_millis(args.interval));
    args.listen.serve("dq web", out, |listener| {
        connections::serve(listener, serve::router(site))
    })
}

/// Returns the way in which visitors are known.
fn gate(args: &Args) -> Result<Gate, Failure> {
    if let Some(path) = &args.password_file {
        return Ok(Gate::Passwords(passwords::read(path)?));
    }
    if let Some(header) = &args.user_header {
        return Ok(Gate::Header(Headers {
            user: header.clone(),
            role: args.role_header.clone(),
            proxies: args.proxy.clone(),
        }));
    }
    if !args.listen.address.ip().is_loopback() && !args.no_login {
        return Err(Failure::mistake(
            "this address can be reached from elsewhere: use --password-file or --user-header, \
             or --no-login if everybody there may see and change the queues",
        ));
    }
    let mut hosts = args.host.clone();
    hosts.push("localhost".to_owned());
    hosts.extend(args.listen.name.clone());
    let local = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    for address in local.into_iter().chain([args.listen.address.ip()]) {
        hosts.push(match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        });
    }
    Ok(Gate::Open(hosts))
}
