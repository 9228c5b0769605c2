// The contract `compute`. Fastify compiles a serialiser from the schema of each answer.

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const CONCAT_LENGTH = 10_000;
const FIBONACCI_OF = 30;

const products = [
  { id: 'prod3568', name: 'Egg Whisk', price: 3.99, weight: 150 },
  { id: 'prod7340', name: 'Tea Cosy', price: 5.99, weight: 100 },
  { id: 'prod8643', name: 'Spatula', price: 1, weight: 80 },
];

const text = { type: 'string' };
const number = { type: 'number' };
const integer = { type: 'integer' };
const product = object({ id: text, name: text, price: number, weight: integer });

/** The plugin with the contract's routes. */
export async function compute(app) {
  app.get('/data', answering({ data: { type: 'array', items: product } }), data);
  app.get('/concat', answering({ concat: text }), concat);
  app.get('/fibonacci', answering({ fibonacci: integer }), fibonacci);
}

function data(request, reply) {
  reply.send({ data: products });
}

function concat(request, reply) {
  reply.send({ concat: randomText(CONCAT_LENGTH) });
}

function fibonacci(request, reply) {
  reply.send({ fibonacci: fib(FIBONACCI_OF) });
}

/** The options of a route whose answer is an object of these properties. */
function answering(properties) {
  return { schema: { response: { 200: object(properties) } } };
}

function object(properties) {
  return { type: 'object', properties };
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
