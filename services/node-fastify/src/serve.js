// Listens, and stops listening.

import { createApp } from './app.js';

// Fastify's 511 would turn connections away in a burst.
const BACKLOG = 1024;

// How long requests under way may take to end after SIGTERM.
const GRACE_MS = 1_000;

/** Serves on host and port until SIGTERM. */
export async function serve({ host, port }) {
  const app = createApp();
  process.on('SIGTERM', async () => {
    setTimeout(() => process.exit(0), GRACE_MS);
    await app.close();
    process.exit(0);
  });
  await app.listen({ host, port, backlog: BACKLOG });
  console.log(`listening on ${host}:${port}`);
}
