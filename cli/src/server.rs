//! The connection to the server.

use std::path::{Path, PathBuf};
use std::time::Duration;

use redis::{
    Client, ClientTlsConfig, Cmd, Connection, ConnectionAddr, IntoConnectionInfo, Pipeline,
    ProtocolVersion, RedisResult, TlsCertificates, Value,
};

use crate::failure::Failure;

/// Maximum time to connect, and to wait for a reply.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where the server is, and as whom we go there.
#[derive(Debug, Clone, clap::Args)]
pub struct Endpoint {
    /// redis://[user:password@]host[:port][/db], rediss://... for TLS, or redis+unix:///path.
    /// In the variable the password is hidden from `ps`
    #[arg(
        long,
        global = true,
        env = "DQ_URL",
        hide_env_values = true,
        default_value = "redis://127.0.0.1:6379"
    )]
    url: String,
    /// With rediss: trust the certificates signed by these (PEM), instead of the system's
    #[arg(long, global = true, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// With rediss: our own certificate (PEM), where the server wants one
    #[arg(long, global = true, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// With rediss: the key of our certificate (PEM)
    #[arg(long, global = true, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
}

impl Endpoint {
    /// Connects, signs in and selects the database.
    pub fn connect(&self) -> Result<Server, Failure> {
        let client = self.client()?;
        let connection = client.get_connection_with_timeout(PATIENCE)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        connection.set_write_timeout(Some(PATIENCE))?;
        let info = client.get_connection_info();
        Ok(Server {
            place: format!("{}/{}", place(info.addr()), info.redis_settings().db()),
            db: info.redis_settings().db(),
            connection,
        })
    }

    fn client(&self) -> Result<Client, Failure> {
        // The URL may hold a password, so no message repeats it.
        let info = self
            .url
            .as_str()
            .into_connection_info()
            .map_err(|_| Failure::mistake("the URL is none of a Redis server"))?;
        // RESP3 has maps and booleans, so the type of a reply needs no guessing.
        let settings = info
            .redis_settings()
            .clone()
            .set_protocol(ProtocolVersion::RESP3);
        let info = info.set_redis_settings(settings);
        let secret = matches!(info.addr(), ConnectionAddr::TcpTls { .. });
        let files = self.cacert.is_some() || self.cert.is_some();
        if !secret {
            if files {
                return Err(Failure::mistake("certificates need a rediss:// URL"));
            }
            return Ok(Client::open(info)?);
        }
        // This fails only if a provider is installed already, when connecting again.
        let _ = rustls::crypto::ring::default_provider().install_default();
        if !files {
            return Ok(Client::open(info)?);
        }
        let client_tls = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => Some(ClientTlsConfig {
                client_cert: read(cert)?,
                client_key: read(key)?,
            }),
            _ => None,
        };
        let root_cert = self.cacert.as_deref().map(read).transpose()?;
        let certificates = TlsCertificates {
            client_tls,
            root_cert,
        };
        Ok(Client::build_with_tls(info, certificates)?)
    }
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

/// A connection that is signed in.
pub struct Server {
    place: String,
    db: i64,
    connection: Connection,
}

impl Server {
    /// Returns host, port and database, for headings.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Returns the number of the selected database.
    pub fn db(&self) -> i64 {
        self.db
    }

    /// Runs one command and returns its reply.
    pub fn call(&mut self, cmd: &Cmd) -> Result<Value, Failure> {
        Ok(cmd.query(&mut self.connection)?)
    }

    /// Runs several commands in one round trip. Returns a reply or an error for each.
    pub fn pipeline(&mut self, cmds: &[Cmd]) -> Result<Vec<Result<Value, Failure>>, Failure> {
        if cmds.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipeline = Pipeline::with_capacity(cmds.len());
        pipeline.ignore_errors();
        for cmd in cmds {
            pipeline.add_command(cmd.clone());
        }
        let replies: Vec<RedisResult<Value>> = pipeline.query(&mut self.connection)?;
        Ok(replies
            .into_iter()
            .map(|reply| reply.map_err(Failure::from))
            .collect())
    }

    /// Subscribes to a channel and gives each message to `receive`, until that fails.
    pub fn subscribe(
        &mut self,
        channel: &[u8],
        mut receive: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        // It is normal that nothing happens in a queue for days.
        self.connection.set_read_timeout(None)?;
        let mut channels = self.connection.as_pubsub();
        channels.subscribe(channel)?;
        loop {
            receive(channels.get_message()?.get_payload_bytes())?;
        }
    }
}

/// Begins a command of the module on a queue. The caller adds more arguments.
pub fn verb(name: &str, queue: &[u8]) -> Cmd {
    let mut cmd = redis::cmd(name);
    cmd.arg(queue);
    cmd
}
