// Listens, and stops listening.

import { createApp } from './app.js';
import { serverOf } from './protocol.js';

// Node's 511 would turn connections away in a burst.
const BACKLOG = 1024;

// Longer than clients and proxies keep an idle connection (60 to 90 s), so that it is they who
// close it: a server that closes first resets the request that is just on its way.
const KEEP_ALIVE_MS = 120_000;

// How long requests under way may take to end after SIGTERM.
const GRACE_MS = 1_000;

/** Serves on host and port until SIGTERM. */
export function serve({ host, port }) {
  const server = serverOf(createApp(), process.env);
  server.listen({ port, host, backlog: BACKLOG }, () => {
    console.log(`listening on ${host}:${port}`);
  });
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.once('close', () => process.exit(0));
  process.on('SIGTERM', () => {
    server.close();
    setTimeout(() => process.exit(0), GRACE_MS);
  });
}
