//! This build speaks HTTP/1.1 in the clear: none of the crates for anything else is linked.

use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;

use crate::Failure;

pub async fn serve(
    protocol: &str,
    _listener: TcpListener,
    _routes: Router,
    _grace: Duration,
) -> Result<(), Failure> {
    Err(format!("PROTOCOL={protocol:?}: this build speaks http").into())
}
