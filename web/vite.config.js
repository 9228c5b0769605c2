// One script and one style sheet, for internal/report/page: what Go embeds. Both must be the same
// bytes wherever they are built, so there are no hashes in names, no source maps, no dates.

import { readFileSync } from "node:fs";
import { defineConfig } from "vite";

const licence = readFileSync(new URL("node_modules/uplot/LICENSE", import.meta.url), "utf8");

// uPlot's licence wants to travel with its code, which a minifier would take it from.
const licences = {
  name: "licences",
  enforce: "post",
  generateBundle(_options, bundle) {
    for (const file of Object.values(bundle)) {
      if (file.type === "chunk") {
        file.code = `/*! uPlot, bundled in this page:\n\n${licence.trim()}\n*/\n${file.code}`;
      }
    }
  },
};

export default defineConfig({
  plugins: [licences],
  logLevel: "warn",
  build: {
    target: "es2020",
    outDir: "../internal/report/page",
    emptyOutDir: true,
    sourcemap: false,
    minify: true,
    reportCompressedSize: false,
    lib: {
      entry: "src/page.ts",
      name: "prony",
      formats: ["iife"],
      fileName: () => "page.js",
      cssFileName: "page",
    },
  },
});
