// The smallest HTTP server of Node, which counts its requests. GET /count answers the number of other
// requests. With SHORT=1, connections end after 10 requests or 1 s without any.
import {readFileSync} from 'node:fs';
import http from 'node:http';
import http2 from 'node:http2';
import https from 'node:https';

const [dir, plain, tls, h2c] = process.argv.slice(2);
const short = process.env.SHORT === '1';
let count = 0;

function answer(request, response) {
  const body = request.url === '/count' ? String(count) : 'ok';
  count += request.url === '/count' ? 0 : 1;
  response.setHeader('content-length', body.length);
  response.end(body);
}

function shorten(server) {
  if (!short) return;
  server.maxRequestsPerSocket = 10;
  server.keepAliveTimeout = 1000;
  server.on('session', (session) => {
    let streams = 0;
    session.on('stream', () => { if (++streams === 10) session.close(); });
    session.setTimeout(1000, () => session.close());
  });
}

const pair = {cert: readFileSync(`${dir}/cert.pem`), key: readFileSync(`${dir}/key.pem`)};
for (const [server, address] of [
  [http.createServer(answer), plain],
  [process.env.SECURE === 'h2' ? http2.createSecureServer(pair, answer) :
    https.createServer(pair, answer), tls],
  [http2.createServer(answer), h2c],
]) {
  shorten(server);
  server.listen(address.split(':')[1], '127.0.0.1');
}
