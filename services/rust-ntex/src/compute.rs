//! The contract `compute`.

use std::hint::black_box;
use std::iter::repeat_with;
use std::sync::LazyLock;

use ntex::web::types::Json;
use ntex::web::{self, ServiceConfig};
use serde::Serialize;
use serde_json::Number;

use crate::routes::at;

const CONCAT_LENGTH: usize = 10_000;
const FIBONACCI_NUMBER: u32 = 30;

#[derive(Serialize)]
struct Product {
    id: &'static str,
    name: &'static str,
    price: Number,
    weight: u32,
}

#[derive(Serialize)]
struct Data {
    data: &'static [Product],
}

#[derive(Serialize)]
struct Concat {
    concat: String,
}

#[derive(Serialize)]
struct Fibonacci {
    fibonacci: u32,
}

static PRODUCTS: LazyLock<[Product; 3]> = LazyLock::new(|| {
    [
        product("prod3568", "Egg Whisk", 3.99, 150),
        product("prod7340", "Tea Cosy", 5.99, 100),
        product("prod8643", "Spatula", 1.0, 80),
    ]
});

pub fn routes(config: &mut ServiceConfig) {
    config
        .service(at("/data", web::get().to(data)))
        .service(at("/concat", web::get().to(concat)))
        .service(at("/fibonacci", web::get().to(fibonacci)));
}

async fn data() -> Json<Data> {
    Json(Data { data: &*PRODUCTS })
}

async fn concat() -> Json<Concat> {
    // fastrand keeps its generator in the thread, so no lock is shared.
    let concat = repeat_with(fastrand::alphanumeric)
        .take(CONCAT_LENGTH)
        .collect();
    Json(Concat { concat })
}

async fn fibonacci() -> Json<Fibonacci> {
    // Hidden from the optimiser, which may otherwise do part of a constant's recursion itself.
    Json(Fibonacci {
        fibonacci: fib(black_box(FIBONACCI_NUMBER)),
    })
}

fn fib(n: u32) -> u32 {
    if n < 2 { n } else { fib(n - 1) + fib(n - 2) }
}

fn product(id: &'static str, name: &'static str, price: f64, weight: u32) -> Product {
    // By way of text, which is `1` for the price that serde_json would write as `1.0`.
    let price = price
        .to_string()
        .parse()
        .expect("a finite price is a JSON number");
    Product {
        id,
        name,
        price,
        weight,
    }
}
