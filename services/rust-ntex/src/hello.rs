//! The contract `hello`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ntex::http::StatusCode;
use ntex::time::sleep;
use ntex::web::error::QueryPayloadError;
use ntex::web::types::{Query, State};
use ntex::web::{self, HttpResponse, ServiceConfig};
use serde::de::{Deserialize, Deserializer, Error};

use crate::routes::{at, empty, is_digits};

const ENTRIES: u32 = 50_000;
const MAX_SLEEP: Duration = Duration::from_secs(60);

/// Filled before the server listens and never written again, so it needs no lock.
type Cache = Arc<HashMap<String, String>>;

#[derive(serde::Deserialize)]
struct Parameters {
    #[serde(default = "first_key")]
    key: String,
    #[serde(default, deserialize_with = "seconds")]
    sleep: Duration,
    #[serde(default)]
    log: bool,
}

pub fn routes(config: &mut ServiceConfig) {
    config.service(at("/hello/reactive", web::get().to(hello)));
}

async fn hello(
    cache: State<Cache>,
    query: Result<Query<Parameters>, QueryPayloadError>,
) -> HttpResponse {
    let Ok(Query(parameters)) = query else {
        return empty(StatusCode::BAD_REQUEST);
    };
    if parameters.log {
        let thread = std::thread::current();
        println!(
            "hello mode=reactive key={} thread={}",
            parameters.key,
            thread.name().unwrap_or("unnamed")
        );
    }
    // Even a sleep of nothing would send the task through the timer.
    if !parameters.sleep.is_zero() {
        sleep(parameters.sleep).await;
    }
    let Some(value) = cache.get(&parameters.key) else {
        return empty(StatusCode::NOT_FOUND);
    };
    HttpResponse::Ok()
        .content_type("text/plain; charset=utf-8")
        .body(format!("Hello from REST {value}"))
}

pub fn cache() -> Cache {
    let entry = |number: u32| (number.to_string(), format!("value-{number}"));
    Arc::new((1..=ENTRIES).map(entry).collect())
}

fn first_key() -> String {
    "1".to_owned()
}

fn seconds<'de, D: Deserializer<'de>>(source: D) -> Result<Duration, D::Error> {
    let text = Cow::<str>::deserialize(source)?;
    parse_seconds(&text).ok_or_else(|| D::Error::custom("not a number of seconds"))
}

fn parse_seconds(text: &str) -> Option<Duration> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if !is_digits(whole, 2) || !is_digits(fraction, 3) {
        return None;
    }
    let sleep = Duration::try_from_secs_f64(text.parse().ok()?).ok()?;
    (sleep <= MAX_SLEEP).then_some(sleep)
}
