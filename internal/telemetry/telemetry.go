// Package telemetry is Prony's side of its telemetry collector: the collector's addresses, the
// messages about trials and their phases, and the reports on them. The collector itself is
// home/collector, in a process of its own (home/cmd/prony-home), so that receiving telemetry never
// shares a heap with the load generator.
//
//	target ── OTLP, Zipkin, scrape ─► home ─► results/RUN/telemetry/{tsdb,spans,logs}
//	trial  ── begin, mark, end ─────► home ─► record.Telemetry
//
// Non-goals: it does not receive or store telemetry, and losing the collector loses no result.
package telemetry

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"prony.example/record"
)

// Endpoints are the addresses of a collector, each "host:port".
type Endpoints struct {
	GRPC   string `json:"grpc"`   // OTLP over gRPC
	HTTP   string `json:"http"`   // OTLP over HTTP, /v1/traces and so on
	Zipkin string `json:"zipkin"` // Zipkin v2, /api/v2/spans
	Query  string `json:"query"`  // Prometheus' HTTP API below /api/v1/, control below /prony/
}

// Word is the first output of a collector, as a line of JSON.
type Word struct {
	Endpoints
	// Token authorizes control requests below /prony/. Only the parent process receives it.
	Token string `json:"token,omitempty"`
}

// Trial announces a trial to the collector, before its processes are started. A second message has
// its pages, whose addresses are known only after the start.
type Trial struct {
	Run     string         `json:"run"`
	ID      string         `json:"id"`
	Target  string         `json:"target"`
	Variant string         `json:"variant"`
	Block   int            `json:"block"`
	Scrape  []ScrapeTarget `json:"scrape,omitempty"`
}

// ScrapeTarget is a page in Prometheus' text format that the collector reads during the trial.
type ScrapeTarget struct {
	URL     string        `json:"url"`
	Service string        `json:"service"` // becomes the label service_name
	Every   time.Duration `json:"every"`
}

// Kinds of marks.
const (
	Phase = "phase" // of the trial: warmup, a load's name
	Open  = "open"  // a load's window opened
	Close = "close" // a load's window closed
)

// Mark is a moment of a trial.
type Mark struct {
	Trial  string `json:"trial"`
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	WallNs int64  `json:"wallNs"` // Unix time
}

// Over announces the end of a trial: its processes have stopped, or will send no more.
type Over struct {
	Trial string `json:"trial"`
}

// Report is the collector's report on an ended trial.
type Report struct {
	Telemetry record.Telemetry                  `json:"telemetry"`
	Loads     map[string]record.WindowTelemetry `json:"loads"` // by window
}

// Names in a run's folder.
const (
	Dir       = "telemetry"
	TSDBDir   = "tsdb"         // Prometheus' blocks and write-ahead log
	SpansFile = "spans.ndjson" // one stored trace a line
	LogsFile  = "logs.ndjson"  // one stored log record a line
	StatsFile = "stats.json"   // counts of the run, updated continuously
)

// DatabaseIn returns the database in the folder of a run or of telemetry serve; empty: there is
// none.
func DatabaseIn(dir string) string {
	for _, location := range []string{filepath.Join(Dir, TSDBDir), TSDBDir, "."} {
		db := filepath.Join(dir, location)
		if info, err := os.Stat(filepath.Join(db, "wal")); err == nil && info.IsDir() {
			return db
		}
	}
	return ""
}

// Stats counts all telemetry since a collector's folder was created; in StatsFile and at
// /prony/stats.
type Stats struct {
	Version   int              `json:"version"` // StatsVersion
	Telemetry record.Telemetry `json:"telemetry"`
	// Trials are those under way, so that a restarted collector can report on them.
	Trials []Under `json:"trials,omitempty"`
	// Broken is the number of times that a collector of this folder was killed.
	Broken int `json:"broken,omitempty"`
	// Torn is the number of journals whose end was incomplete after a kill.
	Torn      int         `json:"torn,omitempty"`
	Ended     bool        `json:"ended"` // it was closed regularly
	Forwarded []Forwarded `json:"forwarded,omitempty"`
	Odd       Odd         `json:"odd"`
}

// Under is a trial under way.
type Under struct {
	Trial   Trial            `json:"trial"`
	Marks   []Mark           `json:"marks,omitempty"`
	Before  record.Telemetry `json:"before"`  // the folder's counts at the trial's begin
	BeganNs int64            `json:"beganNs"` // the kernel's CLOCK_MONOTONIC
	Partial string           `json:"partial,omitempty"`
}

// StatsVersion is the version of the file's format.
const StatsVersion = 1

// Forwarded counts the items of one signal for another endpoint.
type Forwarded struct {
	Signal  string `json:"signal"`
	Sent    int64  `json:"sent"`
	Failed  int64  `json:"failed"`  // refused by the endpoint, or it could not be reached
	Dropped int64  `json:"dropped"` // the queue was full
}

// Odd counts unusual but harmless items and connections of one collector process.
type Odd struct {
	Ahead int64 `json:"ahead"` // spans and logs dated more than a minute into the future
	Old   int64 `json:"old"`   // spans and logs dated more than an hour into the past
	Stray int64 `json:"stray"` // requests for unknown paths

	// Closed counts connections closed without a valid request: after a wrong token, or because
	// newer ones needed their places.
	Closed int64 `json:"closed"`
}

// Protocol is the version of the interface between prony and prony-home: command lines, messages
// and the files below a run's folder. A change that an older side would misread increments it.
const Protocol = 4

// HomeName is the name of the collector's program.
const HomeName = "prony-home"

// ParquetVerb is the command of prony-home that converts a table of package flat on standard input
// to Parquet.
const ParquetVerb = "parquet"

// Version is a program's version as JSON.
type Version struct {
	Protocol int    `json:"protocol"`
	Version  string `json:"version"`
}

// OwnVersion returns the version of this program: of its module, or the commit it was built from.
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
