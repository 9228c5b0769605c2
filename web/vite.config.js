// Scripts and style sheets that Go embeds: the report's page for internal/report/page, and the web
// app for internal/server/app/app (--mode app). Both must be the same bytes wherever they are
// built, so there are no hashes in names, no source maps, no dates.

import { readFileSync } from "node:fs";
import { defineConfig } from "vite";

// Licences want to travel with the code that is bundled, which a minifier would take them from.
const carried = (...names) => ({
  name: "licences",
  enforce: "post",
  generateBundle(_options, bundle) {
    const texts = names.map(([name, folder]) => {
      const file = new URL(`node_modules/${folder}/LICENSE`, import.meta.url);
      return `/*! ${name}, bundled in this page:\n\n${readFileSync(file, "utf8").trim()}\n*/\n`;
    });
    for (const file of Object.values(bundle)) {
      if (file.type === "chunk") {
        file.code = texts.join("") + file.code;
      }
    }
  },
});

const uplot = ["uPlot", "uplot"];

const bundles = {
  page: {
    to: "../internal/report/page",
    entry: "src/page.ts",
    file: "page",
    licences: [uplot],
  },
  app: {
    to: "../internal/server/app/app",
    entry: "app/main.tsx",
    file: "app",
    licences: [uplot, ["Preact", "preact"]],
  },
};

export default defineConfig(({ mode }) => {
  const bundle = bundles[mode] ?? bundles.page;
  return {
    plugins: [carried(...bundle.licences)],
    logLevel: "warn",
    define: { "process.env.NODE_ENV": '"production"' },
    build: {
      target: "es2020",
      outDir: bundle.to,
      emptyOutDir: true,
      sourcemap: false,
      minify: true,
      reportCompressedSize: false,
      lib: {
        entry: bundle.entry,
        name: "prony",
        formats: ["iife"],
        fileName: () => `${bundle.file}.js`,
        cssFileName: bundle.file,
      },
    },
  };
});
