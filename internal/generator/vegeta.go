package generator

import (
	"strconv"
	"strings"

	"prony.example/record"
)

// importVegeta parses the output of "vegeta report -type json" (github.com/tsenart/vegeta), which
// has no driver. Its times are nanoseconds.
func importVegeta(text string) (*tally, error) {
	report, err := document(text)
	if err != nil {
		return nil, err
	}
	f := &fields{}
	for _, key := range []string{"latencies", "requests", "duration", "status_codes"} {
		f.need(report, key)
	}
	ns := func(keys ...string) int64 { return f.span(report.Path(keys...), 1) }
	t := &tally{model: record.Open, ratePerS: f.number(report.Field("rate")),
		durationNs: ns("duration") + ns("wait"), bytesIn: f.count(report.Path("bytes_in", "total")),
		bytesOut: f.count(report.Path("bytes_out", "total"))}
	var none, counted int64
	for _, item := range members(report.Field("status_codes")) {
		n := f.count(item)
		counted += n
		status, err := strconv.Atoi(item.Key)
		if err != nil || status == 0 {
			none += n
			continue
		}
		t.answered(status, 0, n)
	}
	// vegeta lists each error text once, without a count; the first one becomes the reason of all
	// failures.
	if none > 0 {
		why := "no answer"
		for _, e := range members(report.Field("errors")) {
			if !strings.HasPrefix(e.Text, "4") && !strings.HasPrefix(e.Text, "5") {
				why = e.Text
				break
			}
		}
		blame(&t.errors, why, none)
		t.note(NoteVegetaOneKind, none)
	}
	requests := f.count(report.Field("requests"))
	if counted != requests {
		t.note(NoteVegetaCounts, requests, counted)
	}
	t.service = record.Dist{Count: requests, MinNs: ns("latencies", "min"),
		MeanNs: float64(ns("latencies", "mean")), MaxNs: ns("latencies", "max"),
		P50Ns: ns("latencies", "50th"), P90Ns: ns("latencies", "90th"),
		P99Ns: ns("latencies", "99th")}
	t.note(NoteVegetaPacer)
	t.note(NoteVegetaRate)
	t.note(NoteVegetaDigest)
	return t, f.err
}
