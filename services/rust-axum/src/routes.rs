//! Every path that the service answers, and what the contracts share.

use axum::Router;
use axum::handler::Handler;
use axum::http::StatusCode;
use axum::routing::{self, MethodRouter};

use crate::{compute, hello, http};

pub fn all() -> Router {
    Router::new()
        .merge(hello::routes())
        .merge(http::routes())
        .merge(compute::routes())
        .route("/health", get(ok))
        .route("/ready", get(ok))
        .fallback(not_found)
        .method_not_allowed_fallback(not_found)
}

/// A route for GET alone: axum's own `get` would answer HEAD as well, the contract does not.
pub fn get<H, T, S>(handler: H) -> MethodRouter<S>
where
    H: Handler<T, S>,
    T: 'static,
    S: Clone + Send + Sync + 'static,
{
    routing::get(handler).head(not_found)
}

pub async fn ok() -> StatusCode {
    StatusCode::OK
}

async fn not_found() -> StatusCode {
    StatusCode::NOT_FOUND
}

/// Whether the text is one to `most` decimal digits; `parse` alone would let a sign through.
pub fn is_digits(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}
