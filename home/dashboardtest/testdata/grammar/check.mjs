// Reads a JSON array of {in, text} and writes one of strings: where the parser of each query's
// language had to guess, or "" where it did not.
import { readFileSync } from "node:fs";
import { parser as logql } from "@grafana/lezer-logql";
import { parser as traceql } from "@grafana/lezer-traceql";

const parsers = { LogQL: logql, TraceQL: traceql };

function problem({ in: language, text }) {
  let found = "";
  parsers[language].parse(text).iterate({
    enter(node) {
      if (node.type.isError && !found) {
        found = `not understood at ${node.from}: ${JSON.stringify(text.slice(node.from))}`;
      }
    },
  });
  return found;
}

const queries = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(queries.map(problem)));
