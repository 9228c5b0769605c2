// What is spoken: by Node's modules http, https and http2, which Fastify chooses by its options.

import { readFileSync } from 'node:fs';

/** Fastify's options for the protocol that the environment names. */
export function spoken({ PROTOCOL = 'http', TLS_CERT, TLS_KEY }) {
  switch (PROTOCOL) {
    case 'http':
      return {};
    case 'https':
      return { https: pair(TLS_CERT, TLS_KEY) };
    case 'h2':
      return { http2: true, https: pair(TLS_CERT, TLS_KEY) };
    case 'h2c':
      return { http2: true };
    default:
      throw new Error(`PROTOCOL=${PROTOCOL}: this service speaks http, https, h2 and h2c`);
  }
}

function pair(cert, key) {
  return { cert: readFileSync(cert), key: readFileSync(key) };
}
