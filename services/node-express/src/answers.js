// The answers that all contracts share.

/** Answers with a status and no body, for HEAD with its length too. */
export function empty(res, status) {
  res.status(status).set('Content-Length', '0').end();
}

/** Answers with plain text. */
export function plain(res, text) {
  res.type('text/plain').send(text);
}
