// Starts the service: in this process for one core, in one worker process per core for more.

import cluster from 'node:cluster';
import { serve } from './serve.js';
import { settings } from './settings.js';
import { startWorkers } from './workers.js';

if (settings.cpus > 1 && cluster.isPrimary) {
  startWorkers(settings);
} else {
  await serve(settings);
}
