// The answers to what the contract does not name and to what goes wrong: all of them empty.

import { STATUS_CODES } from 'node:http';
import { empty } from './answers.js';

// What Node's parser complains of, as Fastify's own handler tells it apart; the rest is 400.
const CLIENT_ERRORS = new Map([
  ['ERR_HTTP_REQUEST_TIMEOUT', 408],
  ['HPE_HEADER_OVERFLOW', 431],
]);

/**
 * A plugin that answers 404. In a scope of its own, for its hook is then of unknown requests only:
 * they are answered before their body is read, which could be too large or of no valid type. The
 * handler is what gives the hook to them.
 */
export async function notFound(app) {
  app.addHook('onRequest', answerNotFound);
  app.setNotFoundHandler(answerNotFound);
}

async function answerNotFound(request, reply) {
  empty(reply, 404);
  return reply;
}

/** The error handler. */
export function failed(error, request, reply) {
  const status = statusOf(error);
  if (status >= 500) {
    console.error(error);
  }
  empty(reply, status);
}

function statusOf(error) {
  // A client that left in the middle of its body; nobody will read the answer.
  return error.code === 'ECONNRESET' ? 400 : (error.statusCode ?? 500);
}

/** A path that cannot be decoded is no path of the contract. */
export function refuseUrl(error, request, reply) {
  empty(reply, 404);
}

/** Bytes that are no HTTP request. Fastify would answer the same with a body. */
export function refuseClient(error, socket) {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const status = CLIENT_ERRORS.get(error.code) ?? 400;
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Connection: close',
    'Content-Length: 0',
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n`);
  socket.destroy(error);
}
