//! A connection that many requests share: each is sent at once, behind those before it.

use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redis::io::tcp::TcpSettings;
use redis::{AsyncConnectionConfig, Client, Cmd, Pipeline, ProtocolVersion, Value};

use super::endpoint::PATIENCE;
use super::{node, Endpoint};
use crate::failure::Failure;

/// A shared connection to a server, or to the primaries of a cluster.
#[derive(Clone)]
pub enum Line {
    /// To one server.
    One(MultiplexedConnection),
    /// To a cluster.
    Cluster(ClusterConnection),
}

impl Line {
    /// Connects. A reply may take `patience`. With None it may take any time, for commands
    /// that wait.
    pub async fn open(endpoint: &Endpoint, patience: Option<Duration>) -> Result<Line, Failure> {
        // A request is one write, and nothing is gained if it waits for the reply to another.
        let settings = TcpSettings::default().set_nodelay(true);
        let info = endpoint.info()?.set_tcp_settings(settings.clone());
        let certificates = endpoint.certificates(&info)?;
        let client = match certificates.clone() {
            Some(certificates) => Client::build_with_tls(info.clone(), certificates)?,
            None => Client::open(info.clone())?,
        };
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(patience);
        let mut connection = client
            .get_multiplexed_async_connection_with_config(&config)
            .await?;
        let hello = redis::cmd("HELLO").query_async(&mut connection).await?;
        if !node::is_of_cluster(&hello) {
            return Ok(Line::One(connection));
        }
        let mut builder = ClusterClientBuilder::new([info])
            .use_protocol(ProtocolVersion::RESP3)
            .tcp_settings(settings)
            .connection_timeout(PATIENCE)
            .response_timeout(patience.unwrap_or(Duration::MAX))
            .retries(2);
        if let Some(certificates) = certificates {
            builder = builder.certs(certificates);
        }
        let connection = builder.build()?.get_async_connection().await?;
        Ok(Line::Cluster(connection))
    }

    /// Runs one command, whose first argument is its key, and returns its reply.
    pub async fn call(&mut self, cmd: &Cmd) -> Result<Value, Failure> {
        let reply = match self {
            Line::One(connection) => connection.req_packed_command(cmd).await?,
            Line::Cluster(connection) => connection.req_packed_command(cmd).await?,
        };
        Ok(reply.extract_error()?)
    }

    /// Runs commands in their order, in one round trip except in a cluster. Returns a reply
    /// or an error for each.
    pub async fn pipeline(
        &mut self,
        cmds: Vec<Cmd>,
    ) -> Result<Vec<Result<Value, Failure>>, Failure> {
        let mut replies = Vec::with_capacity(cmds.len());
        match self {
            Line::One(connection) => {
                let (mut pipeline, count) = (Pipeline::with_capacity(cmds.len()), cmds.len());
                for cmd in cmds {
                    pipeline.add_command(cmd);
                }
                let got = connection.req_packed_commands(&pipeline, 0, count).await?;
                replies.extend(got.into_iter().map(|reply| Ok(reply.extract_error()?)));
            }
            Line::Cluster(_) => {
                for cmd in &cmds {
                    match self.call(cmd).await {
                        Err(failure @ Failure::Lost(_)) => return Err(failure),
                        reply => replies.push(reply),
                    }
                }
            }
        }
        Ok(replies)
    }
}
