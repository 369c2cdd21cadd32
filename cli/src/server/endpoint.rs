//! The address of the server, the user of the connection, and the way in which it is made.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::cluster::ClusterClientBuilder;
use redis::{
    Client, ClientTlsConfig, Connection, ConnectionAddr, ConnectionInfo, IntoConnectionInfo,
    ProtocolVersion, TlsCertificates,
};

use super::node::Node;
use super::{sentinel, Server};
use crate::failure::Failure;
use crate::secret;

/// Maximum time to connect, and to wait for a reply.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// The address if none is given.
const DEFAULT: &str = "redis://127.0.0.1:6379";

/// The address of the server, and the user of the connection.
///
/// The variables are read here and not by clap, which would name the options in each usage
/// as if they had been given.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Connection")]
pub struct Endpoint {
    /// redis://[user:password@]host[:port][/db], rediss://... for TLS, or redis+unix:///path. For
    /// a Redis Cluster, any node. redis+sentinel://[user:password@]host:port[,host:port]/name[/db]
    /// asks the Sentinels for the primary of that name. In the variable DQ_URL the password is hidden from `ps`
    /// [default: DQ_URL, or redis://127.0.0.1:6379]
    #[arg(long, global = true)]
    url: Option<String>,
    /// A file with the password, which is then in no URL: its first line [default: DQ_AUTH_FILE]
    #[arg(long, global = true, value_name = "FILE")]
    auth_file: Option<PathBuf>,
    /// With rediss: trust the certificates signed by these (PEM), instead of the system's
    #[arg(long, global = true, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// With rediss: our own certificate (PEM), where the server wants one
    #[arg(long, global = true, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// With rediss: the key of our certificate (PEM)
    #[arg(long, global = true, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// The option that gave the URL, if that was not --url.
    #[arg(skip)]
    option: Option<&'static str>,
    /// The database, if it is not that of the URL.
    #[arg(skip)]
    db: Option<i64>,
    /// The primaries that a Redis Cluster had the last time, for the case that the node
    /// of the URL is gone when a connection is made anew.
    #[arg(skip)]
    known: Arc<Mutex<Vec<Node>>>,
}

impl Endpoint {
    /// Connects, signs in and selects the database. If the server is a node of a
    /// cluster, the connection goes to the whole cluster.
    pub fn connect(&self) -> Result<Server, Failure> {
        let info = self.info()?;
        let certificates = self.certificates(&info)?;
        let mut result = open(&info, certificates.clone());
        for node in self.known() {
            if !matches!(result, Err(Failure::Lost(_))) {
                break;
            }
            let info = info.clone().set_addr(node.addr(info.addr()));
            result = open(&info, certificates.clone());
        }
        let server = result.map_err(|failure| self.explained(&info, failure))?;
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = server.nodes().to_vec();
        Ok(server)
    }

    /// Returns the host, port and database of the URL, for the name of a file.
    pub fn title(&self) -> Result<String, Failure> {
        let info = self.info()?;
        Ok(format!("{}-{}", info.addr(), info.redis_settings().db()))
    }

    /// Returns the endpoint of a server on this machine, of which nothing else is known.
    pub fn local(port: u16) -> Endpoint {
        Endpoint {
            url: Some(format!("redis://127.0.0.1:{port}")),
            auth_file: None,
            cacert: None,
            cert: None,
            key: None,
            option: None,
            db: None,
            known: Arc::default(),
        }
    }

    /// Returns the same server with another database.
    pub fn with_db(&self, db: i64) -> Endpoint {
        Endpoint {
            db: Some(db),
            ..self.clone()
        }
    }

    /// Returns another server, which the URL of an option names, with the same certificates if that is one with TLS.
    pub fn at(&self, url: &str, option: &'static str) -> Endpoint {
        let mut other = Endpoint {
            url: Some(url.to_owned()),
            option: Some(option),
            known: Arc::default(),
            ..self.clone()
        };
        if !url.starts_with("rediss") {
            (other.cacert, other.cert, other.key) = (None, None, None);
        }
        other
    }

    /// Connects to a server of another system, which may be as old as Redis 5.
    pub fn connect_peer(&self) -> Result<Server, Failure> {
        match self.connect() {
            Err(Failure::Refused(words) | Failure::Lost(words))
                if !words.contains("NOAUTH")
                    && (words.contains("HELLO") || words.contains("unknown command")) =>
            {
                let info = self.info()?;
                let settings = info
                    .redis_settings()
                    .clone()
                    .set_protocol(ProtocolVersion::RESP2);
                let info = info.set_redis_settings(settings);
                let certificates = self.certificates(&info)?;
                open_old(&info, certificates).map_err(|failure| self.explained(&info, failure))
            }
            other => other,
        }
    }

    /// Returns the URL, and from where we have it.
    fn url(&self) -> (String, &'static str) {
        match (&self.url, std::env::var("DQ_URL")) {
            (Some(url), _) => (url.clone(), self.option.unwrap_or("--url")),
            (None, Ok(url)) if !url.is_empty() => (url, "DQ_URL"),
            _ => (DEFAULT.to_owned(), "the default, as there is no DQ_URL"),
        }
    }

    /// Puts the address into a failure to connect, and a possible reason.
    fn explained(&self, info: &ConnectionInfo, failure: Failure) -> Failure {
        let (place, (_, source)) = (place(info.addr()), self.url());
        let is_tls = matches!(info.addr(), ConnectionAddr::TcpTls { .. });
        let at = format!("{place} ({source})");
        match failure {
            Failure::Lost(words) => {
                let hint = hint(&words, is_tls).map(|hint| format!(": {hint}"));
                let words = words.split(" (os error").next().unwrap_or_default();
                Failure::Lost(format!("{at}: {words}{}", hint.unwrap_or_default()))
            }
            Failure::Refused(words) if words.starts_with("NOAUTH") => Failure::Refused(format!(
                "{at} wants a password, in a URL as redis://:PASSWORD@HOST or a file \
                 (--auth-file): {words}"
            )),
            Failure::Refused(words) => Failure::Refused(format!("{at}: {words}")),
            other => other,
        }
    }

    fn known(&self) -> Vec<Node> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.clone()
    }

    /// Reads the URL. RESP3 has maps and booleans, so the type of a reply needs no
    /// guessing.
    pub(super) fn info(&self) -> Result<ConnectionInfo, Failure> {
        // The URL may hold a password, so no message repeats it.
        let (url, source) = self.url();
        let wrong = || Failure::mistake(format!("the URL ({source}) is none of a Redis server"));
        let connect = |url: &str, signs_in| {
            let mut info = url.into_connection_info().map_err(|_| wrong())?;
            if signs_in {
                info = self.signed(info)?;
            }
            link(&info, self.certificates(&info)?)
        };
        let url = sentinel::resolved(&url, connect)?;
        let info = url.as_ref().into_connection_info().map_err(|_| wrong())?;
        let settings = info.redis_settings().clone();
        let db = self.db.unwrap_or(settings.db());
        let settings = settings.set_protocol(ProtocolVersion::RESP3).set_db(db);
        self.signed(info.set_redis_settings(settings))
    }

    /// Adds the password that is in a file.
    fn signed(&self, info: ConnectionInfo) -> Result<ConnectionInfo, Failure> {
        let mut settings = info.redis_settings().clone();
        let file = std::env::var_os("DQ_AUTH_FILE").filter(|path| !path.is_empty());
        if let Some(path) = self.auth_file.clone().or(file.map(PathBuf::from)) {
            settings = settings.set_password(secret::password(&path)?);
        }
        Ok(info.set_redis_settings(settings))
    }

    /// Reads the certificates that the command line names, if any.
    pub(super) fn certificates(
        &self,
        info: &ConnectionInfo,
    ) -> Result<Option<TlsCertificates>, Failure> {
        let named = self.cacert.is_some() || self.cert.is_some();
        if !matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
            return match named {
                true => Err(Failure::mistake("certificates need a rediss:// URL")),
                false => Ok(None),
            };
        }
        // This fails only if a provider is installed already, when connecting again.
        let _ = rustls::crypto::ring::default_provider().install_default();
        if !named {
            return Ok(None);
        }
        let client_tls = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => Some(ClientTlsConfig {
                client_cert: read(cert)?,
                client_key: secret::read(key)?,
            }),
            _ => None,
        };
        Ok(Some(TlsCertificates {
            client_tls,
            root_cert: self.cacert.as_deref().map(read).transpose()?,
        }))
    }
}

/// Connects to one node.
fn link(
    info: &ConnectionInfo,
    certificates: Option<TlsCertificates>,
) -> Result<Connection, Failure> {
    let client = match certificates {
        Some(certificates) => Client::build_with_tls(info.clone(), certificates)?,
        None => Client::open(info.clone())?,
    };
    let connection = client.get_connection_with_timeout(PATIENCE)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    Ok(connection)
}

/// Connects to a server that does not know HELLO, and so is asked in no other way whether it is one of a cluster.
fn open_old(
    info: &ConnectionInfo,
    certificates: Option<TlsCertificates>,
) -> Result<Server, Failure> {
    let connection = link(info, certificates)?;
    let db = info.redis_settings().db();
    Ok(Server::of_one(
        format!("{}/{db}", place(info.addr())),
        db,
        connection,
    ))
}

/// Connects to one node, and if it is one of a cluster, to the cluster.
fn open(info: &ConnectionInfo, certificates: Option<TlsCertificates>) -> Result<Server, Failure> {
    let mut connection = link(info, certificates.clone())?;
    let hello = redis::cmd("HELLO").query(&mut connection)?;
    let db = info.redis_settings().db();
    let place = format!("{}/{db}", place(info.addr()));
    if !super::node::is_of_cluster(&hello) {
        return Ok(Server::of_one(place, db, connection));
    }
    let mut builder = ClusterClientBuilder::new([info.clone()])
        .use_protocol(ProtocolVersion::RESP3)
        .connection_timeout(PATIENCE)
        .response_timeout(PATIENCE)
        // A moved slot needs one retry. More retries would only wait for a node that is gone.
        .retries(2);
    if let Some(certificates) = certificates {
        builder = builder.certs(certificates);
    }
    let connection = builder.build()?.get_connection()?;
    Server::of_cluster(place, host(info.addr()), connection)
}

/// Returns a possible reason of a failure to connect.
fn hint(words: &str, is_tls: bool) -> Option<&'static str> {
    let has = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
    if is_tls
        && has(&[
            "(os error 11)",
            "timed out",
            "corrupt message",
            "unexpected EOF",
            "closed",
        ])
    {
        return Some("does it speak TLS there? redis:// is without");
    }
    if !is_tls && has(&["Parse error", "parse", "Incompatible", "Unexpected"]) {
        return Some("this is no Redis server");
    }
    if !is_tls
        && has(&[
            "(os error 11)",
            "timed out",
            "unexpected end of file",
            "Connection reset",
        ])
    {
        return Some("is it a Redis server? With TLS the URL begins with rediss://");
    }
    None
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::mistake(format!("{}: {error}", path.display())))
}

/// Returns the address of a server, without user and password.
fn place(addr: &ConnectionAddr) -> String {
    match addr {
        ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
            format!("{host}:{port}")
        }
        ConnectionAddr::Unix(path) => path.display().to_string(),
        _ => "server".to_owned(),
    }
}

fn host(addr: &ConnectionAddr) -> &str {
    match addr {
        ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. } => host,
        _ => "",
    }
}
