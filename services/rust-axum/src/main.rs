//! Keeps the contracts hello, http and compute with axum on Tokio's multi-thread runtime.

mod compute;
#[cfg(feature = "otel")]
mod discard;
mod health;
mod hello;
mod http;
#[cfg_attr(feature = "protocols", path = "protocol_all.rs")]
#[cfg_attr(not(feature = "protocols"), path = "protocol_bare.rs")]
mod protocol;
mod routes;
#[cfg_attr(feature = "otel", path = "telemetry_otel.rs")]
#[cfg_attr(not(feature = "otel"), path = "telemetry_bare.rs")]
mod telemetry;

use std::env;
use std::error::Error;
use std::num::NonZeroUsize;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::serve::ListenerExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream, lookup_host};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

use telemetry::Telemetry;

type Failure = Box<dyn Error + Send + Sync>;

/// Tokio's 128 would turn connections away in a burst.
const BACKLOG: u32 = 1024;

/// Requests still running when this has passed after SIGTERM are cut off.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);

fn main() -> Result<(), Failure> {
    if env::args_os().nth(1).is_some_and(|word| word == "health") {
        return health::check();
    }
    let workers = variable("CPUS", NonZeroUsize::MIN)?;
    let runtime = runtime(workers)?;
    let telemetry = {
        let _within = runtime.enter();
        Telemetry::start()?
    };
    // Spawned, as the future given to `block_on` would run on a thread beyond the workers.
    let served = runtime.block_on(async { tokio::spawn(serve()).await? });
    telemetry.stop();
    served
}

fn runtime(workers: NonZeroUsize) -> std::io::Result<Runtime> {
    let started = AtomicUsize::new(0);
    Builder::new_multi_thread()
        .worker_threads(workers.get())
        .thread_name_fn(move || format!("tokio-worker-{}", started.fetch_add(1, Ordering::Relaxed)))
        .enable_all()
        .build()
}

async fn serve() -> Result<(), Failure> {
    let host = variable("HOST", "127.0.0.1".to_owned())?;
    let port = variable("PORT", 8080)?;
    let protocol = variable("PROTOCOL", "http".to_owned())?;
    let mut asked_to_stop = signal(SignalKind::terminate())?;
    let mut out_of_patience = signal(SignalKind::terminate())?;

    let routes = telemetry::instrument(routes::all());
    let listener = listen(&host, port).await?;
    if protocol != "http" {
        return protocol::serve(&protocol, listener, routes, SHUTDOWN_GRACE).await;
    }
    let listener = listener.tap_io(send_at_once);
    let server = axum::serve(listener, routes).with_graceful_shutdown(async move {
        asked_to_stop.recv().await;
    });
    tokio::select! {
        ended = server => Ok(ended?),
        () = async {
            out_of_patience.recv().await;
            tokio::time::sleep(SHUTDOWN_GRACE).await;
        } => Ok(()),
    }
}

/// Does what `TcpListener::bind` does, with another backlog.
async fn listen(host: &str, port: u16) -> Result<TcpListener, Failure> {
    let mut addresses = lookup_host((host, port)).await?;
    let address = addresses.next().ok_or("HOST has no address")?;
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket.listen(BACKLOG)?)
}

/// Sets `TCP_NODELAY`. Where that fails the connection is slower, not broken, so it is served.
fn send_at_once(stream: &mut TcpStream) {
    let _ = stream.set_nodelay(true);
}

fn variable<T>(name: &str, fallback: T) -> Result<T, Failure>
where
    T: FromStr<Err: Error>,
{
    match env::var(name) {
        Ok(text) => text
            .parse()
            .map_err(|error| format!("{name}={text:?}: {error}").into()),
        Err(env::VarError::NotPresent) => Ok(fallback),
        Err(error) => Err(format!("{name}: {error}").into()),
    }
}
