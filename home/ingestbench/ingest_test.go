package ingestbench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"
	"text/tabwriter"
	"time"

	"gonum.org/v1/gonum/stat"

	"prony.example/bench"
	"prony.example/home/collector"
	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/observe/host"
	"prony.example/record"
)

// ingestPerS is the fixed rate, in items a second.
const ingestPerS = 20_000

// BenchmarkIngest compares Prony's collector with an OpenTelemetry Collector that stores nothing
// (exporter nop) and one that writes everything (exporter file), with the same stream of OTLP over
// gRPC, each signal separately, in alternating runs, with the receiver on a core of its own.
// Prony's collector has a trial with an open window, so that it assembles, judges and stores as in
// a run.
//
// It needs a collector of the version in go.mod, which collector.yaml builds:
//
//	go run go.opentelemetry.io/collector/cmd/builder@v0.162.0 \
//	  --config home/ingestbench/collector.yaml --skip-get-modules --skip-compilation
//	(cd /tmp/collector && go build -mod=mod -o collector .)
//	PRONY_COLLECTOR=/tmp/collector/collector \
//	  go -C home test ./ingestbench -run '^$' -bench '^BenchmarkIngest$' \
//	  -benchtime 1x -timeout 1h -v
//
// One iteration is a whole comparison: PRONY_BENCH_ROUNDS rounds, 5 unless it is set, of
// PRONY_BENCH_SECONDS at the rate and as many at saturation, 2 unless it is set. PRONY_HOME may
// name programs, separated as in PATH, to be compared instead of the one that is built here.
func BenchmarkIngest(b *testing.B) {
	collector := os.Getenv("PRONY_COLLECTOR")
	if collector == "" {
		b.Skip("skipped: PRONY_COLLECTOR names no collector; collector.yaml builds one")
	}
	if _, err := exec.LookPath(collector); err != nil {
		b.Fatal(err)
	}
	rounds := bench.Setting(b, "PRONY_BENCH_ROUNDS", 5)
	seconds := bench.Setting(b, "PRONY_BENCH_SECONDS", 2)
	all := takers(homeProgram(b), collector)
	core := senderAlone(b)
	phases := ingestPhases{warm: 1500 * time.Millisecond,
		fixed: time.Duration(seconds) * time.Second, full: time.Duration(seconds) * time.Second}
	var out bytes.Buffer
	for range b.N {
		for _, signal := range []string{record.Spans, record.Points, record.Logs} {
			ingestContest(b, &out, all, signal, core, rounds, phases)
		}
	}
	b.ReportMetric(0, "ns/op") // the time of a comparison is meaningless
	b.Log("\n" + out.String())
}

// senderAlone confines this process to one core for the test, and returns another core.
func senderAlone(tb testing.TB) (receiver int) {
	tb.Helper()
	receiver, sender := bench.TwoCores(tb)
	cores, err := host.Cores()
	if err != nil {
		tb.Fatal(err)
	}
	if err := host.Confine([]int{sender}); err != nil {
		tb.Fatal(err)
	}
	threads := runtime.GOMAXPROCS(1)
	tb.Cleanup(func() {
		runtime.GOMAXPROCS(threads)
		if err := host.Confine(cores); err != nil {
			tb.Error(err)
		}
	})
	return receiver
}

// ingestContest runs all receivers in every round. The first of a round is the last of the next.
func ingestContest(tb testing.TB, out *bytes.Buffer, all []taker, signal string, core, rounds int,
	phases ingestPhases) {
	tb.Helper()
	runs := map[string][]ingested{}
	for round := range rounds {
		order := slices.Clone(all)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, by := range order {
			r := ingest(tb, by, signal, core, ingestPerS, phases)
			tb.Logf("%s, round %d, %s: %+v", signal, round+1, by.name, r)
			runs[by.name] = append(runs[by.name], r)
		}
	}
	fmt.Fprintf(out, "%s, %d a request, %d rounds of %v; CPU at %d/s; ratios are the row's to the "+
		"home's, median (quartiles)\n", signal, perPayload[signal], rounds, phases.full, ingestPerS)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "receiver\titems/s\tratio\tcores\tCPU µs/item\tratio\tCPU µs/item, full\t"+
		"ratio\tpeak MiB\tratio\trefused\t")
	first := runs[all[0].name]
	for _, by := range all {
		ingestRow(w, by.name, runs[by.name], first)
	}
	w.Flush()
	fmt.Fprintln(out)
}

func ingestRow(w *tabwriter.Writer, name string, runs, to []ingested) {
	column := func(format string, of func(ingested) float64) string {
		var values, ratios []float64
		for i := range runs {
			values = append(values, of(runs[i]))
			ratios = append(ratios, of(runs[i])/of(to[i]))
		}
		return fmt.Sprintf(format+"\t%.2f (%.2f–%.2f)", quartile(values, 2), quartile(ratios, 2),
			quartile(ratios, 1), quartile(ratios, 3))
	}
	var refused int64
	var busy []float64
	for _, r := range runs {
		refused += r.Refused
		busy = append(busy, r.Busy)
	}
	fmt.Fprintf(w, "%s\t%s\t%.2f\t%s\t%s\t%s\t%d\t\n", name,
		column("%.0f", func(r ingested) float64 { return r.PerS }), quartile(busy, 2),
		column("%.2f", func(r ingested) float64 { return r.RateNs / 1e3 }),
		column("%.2f", func(r ingested) float64 { return r.FullNs / 1e3 }),
		column("%.0f", func(r ingested) float64 { return float64(r.PeakBytes) / (1 << 20) }),
		refused)
}

// quartile returns the n-th quartile, interpolated between the two values next to it.
func quartile(values []float64, n int) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return stat.Quantile(float64(n)/4, stat.LinInterp, sorted, nil)
}

// BenchmarkIngestHome sends to a collector in this process, an item an iteration, for a profile:
//
//	go -C home test ./ingestbench -run '^$' -bench IngestHome/spans -cpuprofile home.pprof
func BenchmarkIngestHome(b *testing.B) {
	for _, signal := range []string{record.Spans, record.Points, record.Logs} {
		b.Run(signal, func(b *testing.B) {
			h := homeHere(b)
			s := newSending(b, h.Endpoints().GRPC, signal)
			if t := s.run(time.Second, 0); t.why != nil {
				b.Fatal(t.why)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range (b.N + int(s.items) - 1) / int(s.items) {
				if err := s.once(i % senders); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// homeHere starts a collector in this process, in a trial.
func homeHere(tb testing.TB) *collector.Home {
	tb.Helper()
	const free = "127.0.0.1:0"
	h, err := collector.Start(context.Background(), collector.Config{Token: "t",
		Dir: tb.TempDir(), GRPC: free, HTTP: free, Zipkin: free, Query: free})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	beginTrial(tb, h.Endpoints().Query, "t")
	return h
}

// The collector counts what the sender counts, and each payload differs.
func TestIngestInSmall(t *testing.T) {
	testsets.Measured(t)
	h := homeHere(t)
	for signal, items := range perPayload {
		s := newSending(t, h.Endpoints().GRPC, signal)
		got := s.run(100*time.Millisecond, 0)
		if got.refused > 0 || got.why != nil || got.accepted < int64(items) {
			t.Errorf("%s: %+v", signal, got)
		}
		// Two payloads of each of the four senders are due: at 0, 1, … 7 eighths of the time.
		rated := s.run(100*time.Millisecond, float64(items)*80)
		if want := int64(8 * items); rated.accepted != want {
			t.Errorf("%s: %d were sent at a rate, want %d", signal, rated.accepted, want)
		}
		sum := got.accepted + rated.accepted
		if n := receivedBy(t, h.Endpoints().Query, signal); n != sum {
			t.Errorf("%s: the home has %d, the sender %d", signal, n, sum)
		}
	}
}

// A stamped payload has all times shifted and all ids changed, and keeps its length.
func TestPayload(t *testing.T) {
	for signal, want := range map[string]struct{ times, ids int }{
		record.Spans:  {2 * 512, 512}, // start and end; the trace's id
		record.Points: {200, 0},
		record.Logs:   {2 * 100, 50}, // written and observed; every other one is in a trace
	} {
		text, err := encoders[signal](1)
		if err != nil {
			t.Fatal(err)
		}
		p := newPayload(bytes.Clone(text))
		if len(p.times) != want.times || len(p.ids) != want.ids {
			t.Errorf("%s: %d times and %d ids, want %+v", signal, len(p.times), len(p.ids), want)
		}
		p.stamp(clock.Wall().UnixNano(), 7)
		again := newPayload(p.bytes)
		if len(p.bytes) != len(text) || len(again.times) > 0 || bytes.Equal(p.bytes, text) {
			t.Errorf("%s: %d of %d bytes, %d times left", signal, len(p.bytes), len(text),
				len(again.times))
		}
		for i, n := range again.of {
			if n != 7<<16+p.of[i] {
				t.Errorf("%s: id %d is %#x, want %#x", signal, i, n, 7<<16+p.of[i])
			}
		}
	}
}

// 1, 2, 3, 4: a quarter of four values is the first, half the second.
func TestQuartile(t *testing.T) {
	values := []float64{4, 2, 1, 3}
	for n, want := range map[int]float64{1: 1, 2: 2, 3: 3} {
		if got := quartile(values, n); got != want {
			t.Errorf("quartile %d is %v, want %v", n, got, want)
		}
	}
}
