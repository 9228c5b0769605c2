// What prony gives to k6: one scenario, described by spec.json beside this file. Counters tell the
// classes of failures apart, which k6's own report does not.
import http from 'k6/http';
import { sleep } from 'k6';
import { Counter } from 'k6/metrics';

const spec = JSON.parse(open('./spec.json'));
export const options = Object.assign({}, spec.options, {
  summaryTrendStats: ['count', 'min', 'avg', 'med', 'p(90)', 'p(99)', 'p(99.9)', 'max'],
  // A threshold that always holds makes k6 report the good answers apart.
  thresholds: { 'http_req_duration{expected_response:true}': ['max>=0'] },
});

const failures = {};
for (const name of ['connect', 'write', 'read', 'timeout', 'status', 'body']) {
  failures[name] = new Counter('prony_' + name);
}

const fill = (cut, key) => cut.join(key);
const total = spec.requests.reduce((sum, r) => sum + r.weight, 0);

function pick() {
  let at = Math.random() * total;
  for (const r of spec.requests) {
    at -= r.weight;
    if (at < 0) return r;
  }
  return spec.requests[0];
}

const params = spec.requests.map((r) => ({
  timeout: spec.timeoutMs,
  redirects: 0,
  responseType: r.hasWant ? 'text' : 'none',
  responseCallback: http.expectedStatuses(r.status),
}));

// The codes are those of k6's documentation of error codes: 105x timeouts, 11xx names, 12xx TCP.
function classify(code) {
  if (code === 1050) return 'timeout';
  if (code >= 1100 && code < 1200 || code >= 1210 && code < 1220) return 'connect';
  if (code === 1201) return 'write';
  return 'read';
}

function think() {
  const t = spec.think;
  if (!t) return;
  let s = t.lo;
  if (t.kind === 'uniform') s = t.lo + Math.random() * (t.hi - t.lo);
  if (t.kind === 'exponential') s = -t.lo * Math.log(1 - Math.random());
  sleep(s);
}

export default function () {
  const r = spec.requests.length === 1 ? spec.requests[0] : pick();
  const span = spec.keyHi - spec.keyLo + 1;
  const key = String(spec.keyLo + Math.floor(Math.random() * span));
  const p = Object.assign({ headers: {} }, params[r.index]);
  for (const h of r.headers) p.headers[h.name] = fill(h.value, key);
  const body = fill(r.body, key);
  const got = http.request(r.method, spec.base + fill(r.path, key), body === '' ? null : body, p);
  if (got.status === 0) failures[classify(got.error_code)].add(1);
  else if (got.status !== r.status) failures.status.add(1);
  else if (r.hasWant && got.body !== fill(r.want, key)) failures.body.add(1);
  think();
}

export function handleSummary(data) {
  return { 'summary.json': JSON.stringify(data) };
}
