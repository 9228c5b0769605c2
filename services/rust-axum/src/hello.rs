//! The contract `hello`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use serde::de::{Deserialize, Deserializer, Error};

use crate::routes::{get, is_digits};
use crate::telemetry;

const PATH: &str = "/hello/reactive";
const ENTRIES: u32 = 50_000;
const MAX_SLEEP: Duration = Duration::from_secs(60);

/// Filled before the server listens and never written again, so it needs no lock.
pub type Cache = Arc<HashMap<String, String>>;

#[derive(serde::Deserialize)]
struct Parameters {
    #[serde(default = "first_key")]
    key: String,
    #[serde(default, deserialize_with = "seconds")]
    sleep: Duration,
    #[serde(default)]
    log: bool,
}

pub fn routes() -> Router {
    Router::new()
        .route(PATH, get(hello))
        .with_state(cache())
}

async fn hello(
    State(cache): State<Cache>,
    query: Result<Query<Parameters>, QueryRejection>,
) -> Result<String, StatusCode> {
    telemetry::count(PATH);
    let Query(Parameters { key, sleep, log }) = query.map_err(|rejection| rejection.status())?;
    if log {
        let thread = std::thread::current();
        let line = format!(
            "hello mode=reactive key={key} thread={}",
            thread.name().unwrap_or("unnamed")
        );
        println!("{line}");
        telemetry::export_log(&line);
    }
    // Even a sleep of nothing would send the task through the timer.
    if !sleep.is_zero() {
        tokio::time::sleep(sleep).await;
    }
    greeting(&cache, &key).ok_or(StatusCode::NOT_FOUND)
}

pub fn greeting(cache: &Cache, key: &str) -> Option<String> {
    let value = cache.get(key)?;
    Some(format!("Hello from REST {value}"))
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
