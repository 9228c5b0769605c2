package trial

import (
	"testing"

	"prony.example/record"
)

// TestBytesPerRequest divides the telemetry of a trial by all requests that ended: those of its
// warm-up and those of its loads, also if they failed. Lead-ins, which are not counted, have as
// many requests as the same time of the window: here a quarter of it, 75 requests.
func TestBytesPerRequest(t *testing.T) {
	load := func(done, failed int64) record.Load {
		return record.Load{Done: done, Errors: record.Errors{Status: failed}, WindowNs: 4e9,
			LeadInNs: 1e9}
	}
	f := &life{lab: &Lab{}, rec: &record.Record{Warmup: record.Warmup{Requests: 100},
		Loads: []record.Load{load(200, 0), load(60, 40)},
		Telemetry: &record.Telemetry{Signals: []record.Signal{{Name: record.Spans, Bytes: 3000},
			{Name: record.Logs, Bytes: 1000}}}}}
	found := false
	for _, s := range f.whole(1) {
		if s.Name == "prony_trial_bytes_per_request" {
			found = true
			if s.Values[0] != 4000/475. {
				t.Errorf("%v bytes per request, want 4,000 by 475", s.Values)
			}
		}
	}
	if !found {
		t.Error("there is no such series")
	}
}
