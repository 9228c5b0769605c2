//! What is spoken beside HTTP/1.1 in the clear: TLS by rustls, HTTP/2 by hyper, gRPC by tonic.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tonic::server::{Grpc, UnaryService};
use tonic::{Code, Status};
use tonic_prost::ProstCodec;

use crate::hello::{self, Cache};
use crate::{Failure, send_at_once, variable};

/// Serves connections until SIGTERM, then those that are open for as long as the grace lasts.
pub async fn serve(
    protocol: &str,
    listener: TcpListener,
    routes: Router,
    grace: Duration,
) -> Result<(), Failure> {
    let mut stop = signal(SignalKind::terminate())?;
    let (secure, calls) = match protocol {
        "https" | "h2" => (true, false),
        "h2c" => (false, false),
        "grpc" => (false, true),
        "grpcs" => (true, true),
        _ => return Err(format!("PROTOCOL={protocol:?} is not spoken").into()),
    };
    let old = protocol == "https";
    let builder = Builder::new(TokioExecutor::new());
    let builder = if old {
        builder.http1_only()
    } else {
        builder.http2_only()
    };
    let tls = secure
        .then(|| acceptor(if old { b"http/1.1" } else { b"h2" }))
        .transpose()?;
    let routes = if calls { call_routes() } else { routes };
    let open = GracefulShutdown::new();
    loop {
        let mut stream = tokio::select! {
            // An accept that failed says nothing of the next one.
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(_) => continue,
            },
            _ = stop.recv() => break,
        };
        send_at_once(&mut stream);
        let (builder, routes, watcher) = (builder.clone(), routes.clone(), open.watcher());
        tokio::spawn(connection(stream, tls.clone(), builder, routes, watcher));
    }
    let _ = tokio::time::timeout(grace, open.shutdown()).await;
    Ok(())
}

async fn connection(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    builder: Builder<TokioExecutor>,
    routes: Router,
    watcher: Watcher,
) {
    match tls {
        None => exchange(stream, builder, routes, watcher).await,
        // Who shakes hands wrongly has no connection, and nobody else is the worse for it.
        Some(tls) => {
            if let Ok(stream) = tls.accept(stream).await {
                exchange(stream, builder, routes, watcher).await;
            }
        }
    }
}

async fn exchange<T>(stream: T, builder: Builder<TokioExecutor>, routes: Router, watcher: Watcher)
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let routes = TowerToHyperService::new(routes);
    let connection = builder.serve_connection(TokioIo::new(stream), routes);
    // An error here is the client's, which has gone away or breaks the protocol.
    let _ = watcher.watch(connection).await;
}

fn acceptor(protocol: &[u8]) -> Result<TlsAcceptor, Failure> {
    let certificate = variable("TLS_CERT", String::new())?;
    let key = variable("TLS_KEY", String::new())?;
    let chain = CertificateDer::pem_file_iter(certificate)?.collect::<Result<Vec<_>, _>>()?;
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_file(key)?)?;
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(Arc::new(config).into())
}

/// What protoc would make of contract/grpc/hello.proto, and of gRPC's own health checking.
fn call_routes() -> Router {
    Router::new()
        .route("/prony.Hello/Say", post(say))
        .with_state(hello::cache())
        .route("/grpc.health.v1.Health/Check", post(check))
}

#[derive(Clone, PartialEq, prost::Message)]
struct Ask {
    #[prost(string, tag = "1")]
    key: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Answer {
    #[prost(string, tag = "1")]
    text: String,
}

struct Say(Cache);

impl UnaryService<Ask> for Say {
    type Response = Answer;
    type Future = Ready<Result<tonic::Response<Answer>, Status>>;

    fn call(&mut self, request: tonic::Request<Ask>) -> Self::Future {
        let key = &request.get_ref().key;
        let key = if key.is_empty() { "1" } else { key };
        let greeting = hello::greeting(&self.0, key);
        ready(match greeting {
            Some(text) => Ok(tonic::Response::new(Answer { text })),
            None => Err(Status::new(Code::NotFound, "")),
        })
    }
}

async fn say(State(cache): State<Cache>, request: Request) -> Response {
    let mut call = Grpc::new(ProstCodec::<Answer, Ask>::default());
    call.unary(Say(cache), request).await.into_response()
}

#[derive(Clone, PartialEq, prost::Message)]
struct Health {
    /// 1: SERVING.
    #[prost(int32, tag = "1")]
    status: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Nothing {}

struct Check;

impl UnaryService<Nothing> for Check {
    type Response = Health;
    type Future = Ready<Result<tonic::Response<Health>, Status>>;

    fn call(&mut self, _: tonic::Request<Nothing>) -> Self::Future {
        ready(Ok(tonic::Response::new(Health { status: 1 })))
    }
}

async fn check(request: Request) -> Response {
    let mut call = Grpc::new(ProstCodec::<Health, Nothing>::default());
    call.unary(Check, request).await.into_response()
}
