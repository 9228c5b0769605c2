package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/telemetry"
)

// placeMetrics makes a run's folder look as if services had sent metrics: this program checks only
// their existence.
func placeMetrics(t *testing.T, dir string) {
	t.Helper()
	wal := filepath.Join(dir, telemetry.Dir, telemetry.TSDBDir, "wal")
	if err := os.MkdirAll(wal, 0o755); err != nil {
		t.Fatal(err)
	}
}

// Invalid requests, or those for a missing run, are refused without the collector's program; others
// are handed over, with the found run.
func TestHandedOver(t *testing.T) {
	root := checkout(t)
	dir := filepath.Join(root, "results", "2000-01-01T00-00-00Z")
	if _, stderr, exit := say(t, mock{}, "run", "--root", root, "--targets", "go-nethttp",
		"--blocks", "1", "--out", dir); exit != cli.Fine {
		t.Fatal(stderr)
	}
	placeMetrics(t, dir)
	t.Chdir(root)
	name := filepath.Base(dir)
	asked := []string{root, "query", "--at=end", "--trial=", "--step=0s", "--list=false",
		"--serve=", "--format=csv", "--output=a.csv", "--", dir, "up"}
	listed := slices.Clone(asked[:len(asked)-1])
	listed[2], listed[5], listed[7], listed[8] = "--at=", "--list=true", "--format=text",
		"--output="
	told := filepath.Join(dir, telemetry.Dir)
	for _, row := range []struct {
		args []string
		exit int
		says string
		want []string
	}{
		{args: []string{"query", dir, "up", "--at", "end", "-o", "a.csv"}, want: asked},
		{args: []string{"query", name, "up", "--at", "end", "-o", "a.csv"}, want: asked},
		{args: []string{"query", "up", "--at", "end", "-o", "a.csv"}, want: asked,
			says: "using the newest run"},
		{args: []string{"query", "--list"}, want: listed},
		{args: []string{"query", told, "--list"},
			want: append(slices.Clone(listed[:len(listed)-1]), told)},
		{args: []string{"telemetry", "serve", "--dir", "d", "--grpc", "127.0.0.1:0"},
			want: []string{root, "telemetry", "serve", "--dir=d", "--grpc=127.0.0.1:0",
				"--http=127.0.0.1:4318", "--zipkin=127.0.0.1:9411", "--query=127.0.0.1:9090",
				"--forward=", "--forward-only=false", "--memory=512MiB", "--expose=false",
				"--until-stdin-ends=false"}},
		{args: []string{"query"}, exit: cli.Misused, says: "give a query"},
		{args: []string{"query", dir}, exit: cli.Misused, says: "give a query"},
		{args: []string{"query", "gone", "up"}, exit: cli.Failed, says: "no such folder"},
		{args: []string{"query", root, "up"}, exit: cli.Failed, says: "no such folder"},
		{args: []string{"query", "up", "--at", "noon"}, exit: cli.Misused,
			says: "--at noon: use end"},
		{args: []string{"query", "up", "--format", "xml"}, exit: cli.Misused,
			says: "text, json, csv"},
		{args: []string{"query", "up", "--step", "-1s"}, exit: cli.Misused, says: "greater than 0"},
		{args: []string{"query", name, "up", "--list"}, exit: cli.Misused, says: "take no query"},
		{args: []string{"query", "--list", "--serve", "127.0.0.1:0"}, exit: cli.Misused,
			says: "one of"},
		{args: []string{"query", "--serve", "0.0.0.0:1"}, exit: cli.Misused,
			says: "other machines could reach this address"},
		{args: []string{"telemetry", "serve"}, exit: cli.Misused, says: "--dir"},
	} {
		var handed []string
		out, stderr, exit := say(t, mock{handed: &handed}, row.args...)
		if exit != row.exit || !strings.Contains(out+stderr, row.says) ||
			!slices.Equal(handed, row.want) {
			t.Errorf("%q: exit %d, %q\nhanded over %q\nwant        %q", row.args, exit, out+stderr,
				handed, row.want)
		}
	}
}
