// Package telemetry is what the lab knows of its home for telemetry: where it listens, how it is
// told of trials and their phases, and what it answers about them. The home itself is
// home/collector, a process of its own (home/cmd/prony-home), so that taking in what a
// service tells about itself never shares a heap with the generator that measures it.
//
//	target ── OTLP, Zipkin, scrape ─► home ─► results/RUN/telemetry/{tsdb,spans,logs}
//	trial  ── begin, mark, end ─────► home ─► record.Telemetry
//
// Non-goals: nothing here stores or receives anything, and losing the home loses no result.
package telemetry

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"prony.example/record"
)

// Endpoints are where a home listens, each "host:port".
type Endpoints struct {
	GRPC   string `json:"grpc"`   // OTLP over gRPC
	HTTP   string `json:"http"`   // OTLP over HTTP, /v1/traces and so on
	Zipkin string `json:"zipkin"` // Zipkin v2, /api/v2/spans
	Query  string `json:"query"`  // Prometheus' HTTP API below /api/v1/, control below /prony/
}

// Word is what a home says first, in a line of JSON.
type Word struct {
	Endpoints
	// Token is what its orders below /prony/ take; only the lab whose child it is is told it.
	Token string `json:"token,omitempty"`
}

// Trial is what the home is told when one begins, before its processes are started, and once more
// with its pages when they are: only then is it known where these are.
type Trial struct {
	Run     string         `json:"run"`
	ID      string         `json:"id"`
	Target  string         `json:"target"`
	Variant string         `json:"variant"`
	Block   int            `json:"block"`
	Scrape  []ScrapeTarget `json:"scrape,omitempty"`
}

// ScrapeTarget is a page in Prometheus' text format that the home reads during the trial.
type ScrapeTarget struct {
	URL     string        `json:"url"`
	Service string        `json:"service"` // becomes the label service_name
	Every   time.Duration `json:"every"`
}

// Kinds of marks.
const (
	Phase = "phase" // of the trial: warmup, a load's name
	Open  = "open"  // a load's window opened
	Close = "close" // it closed
)

// Mark is a moment of a trial.
type Mark struct {
	Trial  string `json:"trial"`
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	WallNs int64  `json:"wallNs"` // Unix time
}

// Over tells that a trial has ended: its processes are stopped, or will send nothing more.
type Over struct {
	Trial string `json:"trial"`
}

// Report is what a home says of a trial that has ended.
type Report struct {
	Telemetry record.Telemetry                  `json:"telemetry"`
	Loads     map[string]record.WindowTelemetry `json:"loads"` // by window
}

// Files below a run's folder.
const (
	Dir       = "telemetry"
	TSDBDir   = "tsdb"         // Prometheus' blocks and write-ahead log
	SpansFile = "spans.ndjson" // a kept trace a line
	LogsFile  = "logs.ndjson"  // a kept log record a line
	StatsFile = "stats.json"   // counts of the whole run, written as it goes
)

// DatabaseIn is the database of a run's folder, or of the folder of a home that served alone;
// empty: there is none.
func DatabaseIn(dir string) string {
	for _, location := range []string{filepath.Join(Dir, TSDBDir), TSDBDir, "."} {
		db := filepath.Join(dir, location)
		if info, err := os.Stat(filepath.Join(db, "wal")); err == nil && info.IsDir() {
			return db
		}
	}
	return ""
}

// Stats is what a home has taken in since its folder began, in StatsFile and at /prony/stats.
type Stats struct {
	Version   int              `json:"version"` // StatsVersion
	Telemetry record.Telemetry `json:"telemetry"`
	// Trials are those under way, so that a home that was killed and started again in the middle
	// can still tell what they sent.
	Trials []Under `json:"trials,omitempty"`
	// Broken says how often a home ended on this folder without saying goodbye.
	Broken    int         `json:"broken,omitempty"`
	Ended     bool        `json:"ended"` // it was closed as it should be
	Forwarded []Forwarded `json:"forwarded,omitempty"`
	Odd       Odd         `json:"odd"`
}

// Under is a trial under way.
type Under struct {
	Trial   Trial            `json:"trial"`
	Marks   []Mark           `json:"marks,omitempty"`
	Before  record.Telemetry `json:"before"`  // the counts of the folder when it began
	BeganNs int64            `json:"beganNs"` // the kernel's CLOCK_MONOTONIC
	Partial string           `json:"partial,omitempty"`
}

// StatsVersion is that of the file's form.
const StatsVersion = 1

// Forwarded counts the items of one signal that were to be sent to another endpoint.
type Forwarded struct {
	Signal  string `json:"signal"`
	Sent    int64  `json:"sent"`
	Failed  int64  `json:"failed"`  // the other end would not have them, or was not there
	Dropped int64  `json:"dropped"` // the queue was full
}

// Odd counts what was strange but did no harm.
type Odd struct {
	Ahead int64 `json:"ahead"` // spans and logs dated more than a minute into the future
	Old   int64 `json:"old"`   // spans and logs dated more than an hour into the past
	Stray int64 `json:"stray"` // requests for what is not here
}

// Protocol is the number of the boundary between the lab and its home: what Launch starts, what
// Client says, and the files below a run's folder. A change that an older side would misread makes
// it one more.
const Protocol = 4

// HomeName is the name of the home's program.
const HomeName = "prony-home"

// ParquetVerb is the home's verb that stores what it reads, a table of package flat, as Parquet.
const ParquetVerb = "parquet"

// Version is what a program says of itself when it is asked for its version as JSON.
type Version struct {
	Protocol int    `json:"protocol"`
	Version  string `json:"version"`
}

// OwnVersion is that of this program: of the module, or of the commit it was built from.
func OwnVersion() Version { return Version{Protocol, versionOf(debug.ReadBuildInfo())} }

func versionOf(info *debug.BuildInfo, ok bool) string {
	if !ok {
		return "unknown"
	}
	out := strings.Trim(info.Main.Version, "()")
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 && !strings.Contains(out, s.Value[:12]) {
			out += " " + s.Value[:12]
		}
	}
	return out
}
