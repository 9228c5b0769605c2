// What is spoken: by Node's modules http and https. Express goes with no others: its requests and
// answers are those of HTTP/1.1.

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createSecure } from 'node:https';

/** Makes the server of the protocol that the environment names. */
export function serverOf(app, { PROTOCOL = 'http', TLS_CERT, TLS_KEY }) {
  switch (PROTOCOL) {
    case 'http':
      return createServer(app);
    case 'https':
      return createSecure({ cert: readFileSync(TLS_CERT), key: readFileSync(TLS_KEY) }, app);
    default:
      throw new Error(`PROTOCOL=${PROTOCOL}: this service speaks http and https`);
  }
}
