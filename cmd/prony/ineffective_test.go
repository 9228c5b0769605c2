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
