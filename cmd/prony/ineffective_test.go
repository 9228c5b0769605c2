//go:build linux && !portable

package main

import (
	"os"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
)

// Flags without an effect are refused before anything is read or started.
func TestComparisonFlagsWithoutEffect(t *testing.T) {
	ownFolder(t)
	for name, text := range map[string]string{"a": "#!/bin/sh\n", "prony.yaml": "targets: {a: " +
		"{command: ./a}, b: {command: ./a x}}\nrequests: [{request: GET /}]\n"} {
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const versus = "versus ./a --get / "
	const load = "load http://127.0.0.1:1 "
	const sweep = "capacity http://127.0.0.1:1 --concurrency 1..4 "
	for line, want := range map[string]string{
		"plan --from D":                            "--from needs --detect",
		"plan --remote example.com":                "--remote needs a target with a url",
		"plan --interleave blocks --slices 1s":     "--slices needs slices",
		"run --interleave blocks --freeze off":     "--freeze needs slices",
		"report D --section x":                     "--section needs --update",
		"report D --fold":                          "--fold needs --format markdown or --update",
		"report D --columns essential -o x.csv":    "--columns needs --format markdown",
		"report D --table series":                  "--table needs --format parquet",
		versus + "--body x":                        "--body needs a request with a body",
		"versus ./a --request /x --type a/b":       "--type needs a request with a body",
		"versus ./a --request POST_/ --type a/b":   "--type needs --body",
		versus + "--launcher docker":               "--launcher needs --image",
		versus + "--measure 0s":                    "--measure must be greater than 0, got 0s",
		versus + "--cpus 0":                        "--cpus must be greater than 0, got 0",
		versus + "--for 1m --blocks 3":             "--for and --blocks exclude each other",
		versus + "--interleave blocks --slices 1s": "--slices needs slices",
		versus + "-H A:1 -H A:2":                   "-H A is given twice",
		"run --for -5s":                            "--for must be greater than 0, got -5s",
		versus + "--measure -1s":                   "--measure must be greater than 0, got -1s",
		"run --label =x":                           "is not a name",
		"run --telemetry=otlp=ftp://a:1":           "http, https, grpc or grpcs",
		"run lgtm":                                 "write --telemetry=lgtm, with an equals sign",
		"plan otlp=http://a:1":                     "write --telemetry=otlp=http://a:1",
		"report D --update R.md -o x.html":         "--output needs a report of its own",
		"report D --update R.md --why":             "--why needs a report of its own",
		"report D --update R.md --format csv":      "--format needs a report of its own",
		"traces D --services --errors":             "--errors needs single traces",
		"traces D --services --slowest 3":          "--slowest needs single traces",
		"traces D --services --limit 3":            "--limit needs single traces",
		"init --url http://127.0.0.1 --as har":     "--as needs --from",
		"init --url http://127.0.0.1 --writes":     "--writes needs --from",
		"truth fixed -d -5s":                       "--duration must not be negative, got -5s",
		"truth fixed -d 1s --times no/such.csv":    "--times: open no/such.csv",
		"stack check --wait 500ms":                 "--wait must be at least 1s, got 500ms",
		"build --jobs -1":                          "--jobs must be at least 0, got -1",
		load + "--json -o csv":                     "--json and --output csv exclude each other",
		sweep + "--confidence 0.5":                 "--confidence needs --slo",
		sweep + "--budget 1m":                      "--budget needs --slo",
		sweep + "--replicates 3":                   "--replicates needs --curve",
	} {
		args := strings.Fields(line)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "_", " ")
		}
		if _, said, exit := say(t, mock{}, args...); exit != cli.Misused ||
			!strings.Contains(said, want) {
			t.Errorf("%s: exit %d, %q, want %q", line, exit, said, want)
		}
	}
}
