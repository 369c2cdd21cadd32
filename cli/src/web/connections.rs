//! The connections of visitors: how many there may be, and how long each of them may
//! take. A visitor who sends half a request, or reads half an answer, must not keep
//! others out.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{service_fn, Service};
use hyper::Request;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// Maximum number of connections. Others wait until one of them ends. With those to the
/// server of the queues they are less than 128 descriptors.
const MOST: usize = 100;

/// Time for the head of a request, from the end of the request before it. So it is also
/// the time for which a connection may be idle. The form of a request has it once more.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Time after which a connection ends with the answer that it waits for, so that others
/// have their turn where all connections are in use.
const TURN: Duration = Duration::from_secs(60);

/// Time for that last answer. A visitor who has not read it by then does not get the rest.
const LAST: Duration = Duration::from_secs(120);

/// Serves all connections, until the program ends.
pub async fn serve(listener: TcpListener, router: Router) {
    let places = Arc::new(Semaphore::new(MOST));
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, address)) => {
                let router = router.clone();
                tokio::spawn(async move {
                    converse(stream, address, router).await;
                    drop(place);
                });
            }
            // The visitor has gone again, or there is no descriptor left. That passes.
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn converse(stream: TcpStream, address: SocketAddr, router: Router) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(address));
        router.call(request.map(Body::new))
    });
    let mut connection = pin!(http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(stream), service));
    // A connection that fails was ended by the visitor, or by the time above. No error
    // can be reported to it.
    if timeout(TURN, connection.as_mut()).await.is_err() {
        connection.as_mut().graceful_shutdown();
        let _ = timeout(LAST, connection).await;
    }
}
