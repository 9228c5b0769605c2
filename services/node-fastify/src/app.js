// The application: its settings and its routes.

import fastify from 'fastify';
import { empty } from './answers.js';
import { compute } from './compute.js';
import { failed, notFound, refuseClient, refuseUrl } from './errors.js';
import { hello } from './hello.js';
import { http } from './http.js';
import { spoken } from './protocol.js';

// Longer than clients and proxies keep an idle connection (60 to 90 s), so that it is they who
// close it: a server that closes first resets the request that is just on its way.
const KEEP_ALIVE_MS = 120_000;

// How long a client may take to send a request; Fastify's default is without end.
const REQUEST_MS = 120_000;

/** Makes the application; its cache is filled by then. */
export function createApp() {
  const app = fastify({
    ...spoken(process.env),
    logger: false,
    keepAliveTimeout: KEEP_ALIVE_MS,
    requestTimeout: REQUEST_MS,
    // The contract names GET alone; Fastify would answer HEAD wherever it answers GET.
    exposeHeadRoutes: false,
    // What still arrives while the process stops is answered: Fastify's own 503 has a body.
    return503OnClosing: false,
    frameworkErrors: refuseUrl,
    clientErrorHandler: refuseClient,
  });
  app.setErrorHandler(failed);
  app.register(notFound);
  app.register(hello);
  app.register(http);
  app.register(compute);
  app.get('/health', (request, reply) => empty(reply, 200));
  return app;
}
