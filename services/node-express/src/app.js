// The application: its settings, its routes and its two kinds of error.

import express from 'express';
import { empty } from './answers.js';
import { concat, data, fibonacci } from './compute.js';
import { hello } from './hello.js';
import { file, helloWorld, load, MAX_BODY_BYTES } from './http.js';

/** Makes the application; its cache is filled by then. */
export function createApp() {
  const app = express();
  app.disable('x-powered-by');
  // The contract's paths are exact: /Hello and /hello/ are not /hello.
  app.enable('case sensitive routing');
  app.enable('strict routing');

  const readBody = express.raw({ type: () => true, limit: MAX_BODY_BYTES });
  const ok = (req, res) => empty(res, 200);

  app.use(refuseHead);
  app.get('/hello/reactive', hello);
  app.get('/', readBody, ok);
  app.get('/no-read', ok);
  app.get('/hello', helloWorld);
  app.get('/file', file);
  app.post('/load', readBody, load);
  app.get('/data', data);
  app.get('/concat', concat);
  app.get('/fibonacci', fibonacci);
  app.get('/health', ok);
  app.use(notFound);
  app.use(failed);
  return app;
}

function notFound(req, res) {
  empty(res, 404);
}

/** Express answers HEAD wherever it answers GET; the contract names GET alone. */
function refuseHead(req, res, next) {
  if (req.method === 'HEAD') {
    notFound(req, res);
  } else {
    next();
  }
}

/** Express knows an error handler by its four parameters. */
function failed(error, req, res, next) {
  const status = error.status ?? 500;
  if (status >= 500) {
    console.error(error);
  }
  if (res.headersSent) {
    next(error);
  } else {
    empty(res, status);
  }
}
