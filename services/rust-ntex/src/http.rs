//! The contract `http`.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ntex::http::StatusCode;
use ntex::util::Bytes;
use ntex::web::error::{PayloadError, QueryPayloadError};
use ntex::web::types::{Payload, PayloadConfig, Query, State};
use ntex::web::{self, HttpResponse, ServiceConfig};
use serde::de::{Deserialize, Deserializer, Error};

use crate::routes::{at, empty, is_digits, ok};

const LOREM: &[u8] = include_bytes!("../lorem.txt");
const MAX_FILE: usize = 16 << 20;
const MAX_BODY: usize = 16 << 20;

#[derive(serde::Deserialize)]
struct Parameters {
    #[serde(default = "default_size", deserialize_with = "size")]
    size: usize,
}

pub fn routes(config: &mut ServiceConfig) {
    config
        .service(at("/", web::get().to(root)))
        .service(at("/no-read", web::get().to(ok)))
        .service(at("/hello", web::get().to(hello_world)))
        .service(at("/file", web::get().to(file)))
        .service(at("/load", web::post().to(load)).state(PayloadConfig::new(MAX_BODY)));
}

async fn root(mut body: Payload) -> HttpResponse {
    while let Some(chunk) = body.recv().await {
        if chunk.is_err() {
            return empty(StatusCode::BAD_REQUEST);
        }
    }
    empty(StatusCode::OK)
}

async fn hello_world() -> &'static str {
    "Hello world"
}

async fn file(
    text: State<Bytes>,
    query: Result<Query<Parameters>, QueryPayloadError>,
) -> HttpResponse {
    let Ok(Query(Parameters { size })) = query else {
        return empty(StatusCode::BAD_REQUEST);
    };
    HttpResponse::Ok()
        .content_type("application/octet-stream")
        .body(text.slice(..size))
}

async fn load(body: Result<Bytes, PayloadError>) -> HttpResponse {
    match body {
        Ok(body) => HttpResponse::Ok()
            .content_type("text/plain; charset=utf-8")
            .body(STANDARD.encode(body)),
        Err(PayloadError::Payload(ntex::http::error::PayloadError::Overflow)) => {
            empty(StatusCode::PAYLOAD_TOO_LARGE)
        }
        Err(_) => empty(StatusCode::BAD_REQUEST),
    }
}

/// The text at its greatest length; every answer is a slice of it.
pub fn repeated_text() -> Bytes {
    let text: Vec<u8> = LOREM.iter().copied().cycle().take(MAX_FILE).collect();
    Bytes::from(text)
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
