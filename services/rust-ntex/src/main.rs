//! Keeps the contracts hello, http and compute with ntex on neon, its own runtime.

mod compute;
mod health;
mod hello;
mod http;
mod routes;

use std::env;
use std::error::Error;
use std::io;
use std::num::NonZeroUsize;
use std::str::FromStr;

use ntex::SharedCfg;
use ntex::http::HttpServiceConfig;
use ntex::rt::{DefaultRuntime, System};
use ntex::time::Seconds;
use ntex::web::{App, HttpServer};

type Failure = Box<dyn Error + Send + Sync>;

/// Requests still running when this has passed after SIGTERM are cut off.
const SHUTDOWN_GRACE: Seconds = Seconds(1);

/// A connection with nothing to do is closed after this.
const KEEP_ALIVE: Seconds = Seconds(75);

fn main() -> Result<(), Failure> {
    if env::args_os().nth(1).is_some_and(|word| word == "health") {
        return health::check();
    }
    let workers = variable("CPUS", NonZeroUsize::MIN)?;
    let host = variable("HOST", "127.0.0.1".to_owned())?;
    let port = variable("PORT", 8080)?;
    System::new("ntex", DefaultRuntime).block_on(serve(workers, host, port))?;
    Ok(())
}

async fn serve(workers: NonZeroUsize, host: String, port: u16) -> io::Result<()> {
    let cache = hello::cache();
    let text = http::repeated_text();
    let settings = HttpServiceConfig::new().set_keepalive(KEEP_ALIVE);

    // Each worker makes an App of its own; what is large is shared between them.
    HttpServer::new(async move || {
        App::new()
            .state(cache.clone())
            .state(text.clone())
            .configure(routes::all)
    })
    .config(SharedCfg::new("rust-ntex").add(settings))
    .workers(workers.get())
    .shutdown_timeout(SHUTDOWN_GRACE)
    .bind((host, port))?
    .run()
    .await
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
