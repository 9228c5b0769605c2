//! The contract `http`.

use std::borrow::Cow;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::StatusCode;
use axum::routing::post;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http_body_util::BodyExt;
use serde::de::{Deserialize, Deserializer, Error};

use crate::routes::{get, is_digits, ok};

const LOREM: &[u8] = include_bytes!("../lorem.txt");
const MAX_FILE: usize = 16 << 20;
const MAX_BODY: usize = 16 << 20;

#[derive(serde::Deserialize)]
struct Parameters {
    #[serde(default = "default_size", deserialize_with = "size")]
    size: usize,
}

pub fn routes() -> Router {
    Router::new()
        .route("/", get(root))
        .route("/no-read", get(ok))
        .route("/hello", get(hello_world))
        .route("/file", get(file))
        .route("/load", post(load).layer(DefaultBodyLimit::max(MAX_BODY)))
        .with_state(repeated_text())
}

async fn root(mut body: Body) -> StatusCode {
    while let Some(frame) = body.frame().await {
        if frame.is_err() {
            return StatusCode::BAD_REQUEST;
        }
    }
    StatusCode::OK
}

async fn hello_world() -> &'static str {
    "Hello world"
}

async fn file(
    State(text): State<Bytes>,
    query: Result<Query<Parameters>, QueryRejection>,
) -> Result<Bytes, StatusCode> {
    let Query(Parameters { size }) = query.map_err(|rejection| rejection.status())?;
    Ok(text.slice(..size))
}

async fn load(body: Result<Bytes, BytesRejection>) -> Result<String, StatusCode> {
    let body = body.map_err(|rejection| rejection.status())?;
    Ok(STANDARD.encode(body))
}

/// The text at its greatest length; every answer is a slice of it.
fn repeated_text() -> Bytes {
    LOREM.iter().copied().cycle().take(MAX_FILE).collect()
}

fn default_size() -> usize {
    1 << 20
}

fn size<'de, D: Deserializer<'de>>(source: D) -> Result<usize, D::Error> {
    let text = Cow::<str>::deserialize(source)?;
    parse_size(&text).ok_or_else(|| D::Error::custom("not a size"))
}

fn parse_size(text: &str) -> Option<usize> {
    let size = text.parse().ok()?;
    (is_digits(text, 8) && size <= MAX_FILE).then_some(size)
}
