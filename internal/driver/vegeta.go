package driver

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"prony/internal/result"
)

// vegetaSaid is what "vegeta report -type json" prints. Times are nanoseconds.
type vegetaSaid struct {
	Latencies *struct {
		Mean, Max, Min float64
		P50            float64 `json:"50th"`
		P90            float64 `json:"90th"`
		P99            float64 `json:"99th"`
	}
	BytesIn     struct{ Total float64 } `json:"bytes_in"`
	BytesOut    struct{ Total float64 } `json:"bytes_out"`
	Duration    float64
	Wait        float64
	Requests    float64
	Rate        float64
	StatusCodes map[string]float64 `json:"status_codes"`
	Errors      []string
}

// importVegeta reads a report of vegeta, which has no driver: it is github.com/tsenart/vegeta.
func importVegeta(text string) (*tally, error) {
	s := &vegetaSaid{}
	if err := json.Unmarshal([]byte(text), s); err != nil {
		return nil, fmt.Errorf("its JSON: %w", err)
	}
	if s.Latencies == nil {
		return nil, fmt.Errorf("its JSON has no latencies")
	}
	whole := func(f float64) int64 { return int64(max(min(f, countMax), 0)) }
	ns := func(f float64) int64 { return scaled(f, 1) }
	t := &tally{model: result.Open, ratePerS: s.Rate, durationNs: ns(s.Duration + s.Wait),
		bytesIn: whole(s.BytesIn.Total), bytesOut: whole(s.BytesOut.Total)}
	var none int64
	for code, n := range s.StatusCodes {
		status, err := strconv.Atoi(code)
		if err != nil || status == 0 {
			none += whole(n)
			continue
		}
		t.answered(status, 0, whole(n))
	}
	// Why some had no answer is told once for each text, without a count: the first one stands for
	// all of them.
	if none > 0 {
		why := "no answer"
		for _, e := range s.Errors {
			if !strings.HasPrefix(e, "4") && !strings.HasPrefix(e, "5") {
				why = e
				break
			}
		}
		blame(&t.errors, why, none)
		t.note("of %d requests without an answer the kind is that of the first text", none)
	}
	t.service = result.Dist{Count: whole(s.Requests), MinNs: ns(s.Latencies.Min),
		MeanNs: float64(ns(s.Latencies.Mean)), MaxNs: ns(s.Latencies.Max),
		P50Ns: ns(s.Latencies.P50), P90Ns: ns(s.Latencies.P90), P99Ns: ns(s.Latencies.P99)}
	t.note("its clock starts at the sending: what its pacer was late is in no time, and with " +
		"-max-workers it was a closed load")
	t.note("the rate is the one that it came to; which one was asked for is not in it")
	t.note("its percentiles are those of a t-digest, of all requests, failed ones too")
	return t, nil
}
