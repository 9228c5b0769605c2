// The contract `hello`, in the mode reactive: the event loop runs the handler and waits by a timer.

import cluster from 'node:cluster';
import { setTimeout as timer } from 'node:timers/promises';
import { empty, plain } from './answers.js';

const ENTRIES = 50_000;
const MAX_SLEEP_SECONDS = 60;
const SECONDS = /^[0-9]{1,2}(\.[0-9]{1,3})?$/;

const cache = filledCache();

// Node's loop has no name of its own: a worker's is told from the others by the worker's number.
const loop = cluster.isWorker ? `event-loop-${cluster.worker.id}` : 'event-loop';

/** The plugin with the contract's route. */
export async function hello(app) {
  app.get('/hello/reactive', greet);
}

async function greet(request, reply) {
  const { key = '1', sleep = '0', log = 'false' } = request.query;
  const seconds = parseSleep(sleep);
  if (seconds === undefined || (log !== 'true' && log !== 'false')) {
    empty(reply, 400);
    return reply;
  }
  if (log === 'true') {
    console.log(`hello mode=reactive key=${key} thread=${loop}`);
  }
  if (seconds > 0) {
    await pause(seconds);
  }
  const value = cache.get(key);
  if (value === undefined) {
    empty(reply, 404);
  } else {
    plain(reply, `Hello from REST ${value}`);
  }
  return reply;
}

function filledCache() {
  const entries = new Map();
  for (let number = 1; number <= ENTRIES; number++) {
    entries.set(String(number), `value-${number}`);
  }
  return entries;
}

/** The seconds to wait, or undefined where the parameter is not in its form or over its bound. */
function parseSleep(sleep) {
  const seconds = SECONDS.test(sleep) ? Number(sleep) : NaN;
  return seconds <= MAX_SLEEP_SECONDS ? seconds : undefined;
}

/**
 * Waits at least so long. Node's timers count the whole milliseconds of a clock that is cut, not
 * rounded, and so fire up to one too early: hence the one more.
 */
function pause(seconds) {
  return timer(Math.round(seconds * 1000) + 1);
}
