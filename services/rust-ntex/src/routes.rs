//! Every path that the service answers, and what the contracts share.

use ntex::http::StatusCode;
use ntex::web::{self, HttpResponse, Resource, Route, ServiceConfig};

use crate::{compute, hello, http};

pub fn all(config: &mut ServiceConfig) {
    hello::routes(config);
    http::routes(config);
    compute::routes(config);
    config
        .service(at("/health", web::get().to(ok)))
        .service(at("/ready", web::get().to(ok)));
}

/// A path with its one route: for other methods ntex would answer 405, the contract 404.
pub fn at(path: &str, route: Route) -> Resource<web::DefaultError> {
    web::resource(path)
        .route(route)
        .default_service(web::route().to(not_found))
}

pub async fn ok() -> HttpResponse {
    empty(StatusCode::OK)
}

async fn not_found() -> HttpResponse {
    empty(StatusCode::NOT_FOUND)
}

pub fn empty(status: StatusCode) -> HttpResponse {
    HttpResponse::new(status)
}

/// Whether the text is one to `most` decimal digits; `parse` alone would let a sign through.
pub fn is_digits(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}
