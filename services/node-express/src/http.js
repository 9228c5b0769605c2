// The contract `http`.

import { readFileSync } from 'node:fs';
import { empty, plain } from './answers.js';

export const MAX_BODY_BYTES = 16 * 1024 * 1024;

const MAX_FILE_BYTES = 16 * 1024 * 1024;
const SIZE = /^[0-9]{1,8}$/;

// The text repeated, made once: an answer is a view of it.
const lorem = Buffer.alloc(MAX_FILE_BYTES, readFileSync(new URL('../lorem.txt', import.meta.url)));

/** GET /hello */
export function helloWorld(req, res) {
  plain(res, 'Hello world');
}

/** GET /file?size=N */
export function file(req, res) {
  const { size = '1048576' } = req.query;
  if (!SIZE.test(size) || Number(size) > MAX_FILE_BYTES) {
    return empty(res, 400);
  }
  res.type('application/octet-stream').send(lorem.subarray(0, Number(size)));
}

/** POST /load; without a body, body-parser leaves none behind. */
export function load(req, res) {
  plain(res, req.body?.toString('base64') ?? '');
}
