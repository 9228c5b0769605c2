// A service as main.go: each request takes UNITS equal units of CPU time beside the cost of Node's
// own HTTP server.
'use strict';
const http = require('node:http');

const units = Number(process.env.UNITS || 0);
let kept = 0; // keeps the compiler from removing the work

function work(n) {
  let x = (n + 88675123) | 0;
  for (let i = 0; i < n * 100; i++) {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
  }
  kept = x;
}

http.createServer((request, response) => {
  work(units);
  response.end('hello');
}).listen(Number(process.env.PORT), '127.0.0.1');
