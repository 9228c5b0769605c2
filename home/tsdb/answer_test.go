package tsdb

import (
	"testing"
	"time"
)

// Times are read in every form in which Prometheus writes them: seconds with milliseconds, and
// RFC 3339.
func TestParseTime(t *testing.T) {
	at := time.Date(2026, 11, 22, 9, 0, 1, 250e6, time.UTC)
	for _, text := range []string{"1795338001.25", "2026-11-22T09:00:01.25Z",
		"2026-11-22T10:00:01.25+01:00"} {
		if got, err := parseTime(text); err != nil || !got.Equal(at) {
			t.Errorf("%s is read as %v, %v; want %v", text, got, err, at)
		}
	}
	for _, want := range []time.Time{minTime, maxTime} {
		text := want.Format(time.RFC3339Nano)
		if got, err := parseTime(text); err != nil || !got.Equal(want) {
			t.Errorf("%s is read as %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "yesterday", "2026-11-22"} {
		if got, err := parseTime(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}
