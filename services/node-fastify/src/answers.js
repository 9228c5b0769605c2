// The answers that all contracts share.

/** Answers with a status and no body, for HEAD with its length too. */
export function empty(reply, status) {
  reply.code(status).header('content-length', '0').send();
}

/** Answers with plain text. */
export function plain(reply, text) {
  reply.type('text/plain').send(text);
}
