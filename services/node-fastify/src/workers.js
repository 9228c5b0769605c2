// The primary process of a cluster: it starts the workers and ends them.

import cluster from 'node:cluster';

const HEAP_SHARE = 0.75;

/** Starts one worker per core; Node hands the connections to them in turn. */
export function startWorkers({ cpus, memoryMiB }) {
  if (memoryMiB !== undefined) {
    // The flag of this process is for the whole budget, which the workers divide.
    const heapMiB = Math.floor((memoryMiB * HEAP_SHARE) / cpus);
    cluster.setupPrimary({ execArgv: [`--max-old-space-size=${heapMiB}`] });
  }
  for (let started = 0; started < cpus; started++) {
    cluster.fork();
  }
  superviseWorkers();
}

/** Replaces a worker that crashed, and ends them all on SIGTERM. */
function superviseWorkers() {
  const served = new Set();
  let stopping = false;

  cluster.on('listening', (worker) => served.add(worker.id));
  cluster.on('exit', (worker, code, signal) => {
    if (stopping) {
      return;
    }
    console.error(`worker ${worker.id} ended: ${signal ?? `status ${code}`}`);
    if (!served.has(worker.id)) {
      // It could not even start, on a port in use for one: its successor would fare the same.
      process.exit(1);
    }
    cluster.fork();
  });
  process.on('SIGTERM', () => {
    stopping = true;
    for (const worker of Object.values(cluster.workers)) {
      worker.process.kill('SIGTERM');
    }
  });
}
