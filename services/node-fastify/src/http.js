// The contract `http`.

import { readFileSync } from 'node:fs';
import { empty, plain } from './answers.js';

const MAX_BODY_BYTES = 16 * 1024 * 1024;
const MAX_FILE_BYTES = 16 * 1024 * 1024;
const SIZE = /^[0-9]{1,8}$/;

// The text repeated, made once: an answer is a view of it.
const lorem = Buffer.alloc(MAX_FILE_BYTES, readFileSync(new URL('../lorem.txt', import.meta.url)));

/** The plugin with the contract's routes. A body of any type is taken as it is. */
export async function http(app) {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, async (request, body) => body);

  app.get('/', root);
  app.get('/no-read', (request, reply) => empty(reply, 200));
  app.get('/hello', (request, reply) => plain(reply, 'Hello world'));
  app.get('/file', file);
  app.post('/load', { bodyLimit: MAX_BODY_BYTES }, load);
}

/** Fastify reads no body of a GET, so it is read here. */
async function root(request, reply) {
  if (hasBody(request.headers)) {
    for await (const chunk of request.raw) {
      // Read, and not needed.
    }
  }
  empty(reply, 200);
  return reply;
}

function hasBody(headers) {
  const length = headers['content-length'] ?? '0';
  return length !== '0' || headers['transfer-encoding'] !== undefined;
}

function file(request, reply) {
  const { size = '1048576' } = request.query;
  if (!SIZE.test(size) || Number(size) > MAX_FILE_BYTES) {
    return empty(reply, 400);
  }
  reply.type('application/octet-stream').send(lorem.subarray(0, Number(size)));
}

/** Without a body, Fastify leaves none behind. */
function load(request, reply) {
  plain(reply, request.body?.toString('base64') ?? '');
}
