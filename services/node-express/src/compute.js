// The contract `compute`.

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const CONCAT_LENGTH = 10_000;
const FIBONACCI_OF = 30;

const products = [
  { id: 'prod3568', name: 'Egg Whisk', price: 3.99, weight: 150 },
  { id: 'prod7340', name: 'Tea Cosy', price: 5.99, weight: 100 },
  { id: 'prod8643', name: 'Spatula', price: 1, weight: 80 },
];

/** GET /data */
export function data(req, res) {
  res.json({ data: products });
}

/** GET /concat */
export function concat(req, res) {
  res.json({ concat: randomText(CONCAT_LENGTH) });
}

/** GET /fibonacci */
export function fibonacci(req, res) {
  res.json({ fibonacci: fib(FIBONACCI_OF) });
}

function randomText(length) {
  let text = '';
  for (let drawn = 0; drawn < length; drawn++) {
    text += ALPHABET[Math.floor(Math.random() * ALPHABET.length)];
  }
  return text;
}

function fib(n) {
  return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
