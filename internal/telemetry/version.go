package telemetry

import (
	"runtime/debug"
	"strings"
)

// Protocol is the number of the boundary between the lab and its home: what Launch starts, what
// Client says, and the files below a run's folder. A change that an older side would misread makes
// it one more.
const Protocol = 3

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
