package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/chromedp/chromedp"

	"prony.example/record"
	"prony.example/stats"
)

// The cost of watching a measurement in a browser: prony serve starts the same short run in turns
// without a viewer, with ten that follow its events, and with its page open in a real browser on
// this machine. The order within a round is random.

const watchers = 10

// watchingArms are ways to watch. The others are compared with the first.
var watchingArms = []struct {
	name string
	look func(*watching, string) (end func())
}{
	{"nobody", func(*watching, string) func() { return func() {} }},
	{"ten watchers", (*watching).crowd},
	{"a page", (*watching).page},
}

// watching is a server of the real program.
type watching struct {
	tb   testing.TB
	dir  string // of the runs
	base string
	cmd  *exec.Cmd
}

// BenchmarkWatching prints the ratios. One iteration is a whole measurement: PRONY_BENCH_ROUNDS
// rounds (default 10) of three runs with a window of PRONY_BENCH_SECONDS (default 3).
func BenchmarkWatching(b *testing.B) {
	rounds, seconds := Setting(b, "PRONY_BENCH_ROUNDS", 10), Setting(b, "PRONY_BENCH_SECONDS", 3)
	for range b.N {
		w := newWatching(b)
		peak, p99 := map[string][]float64{}, map[string][]float64{}
		doubted := map[string]int{}
		r := rand.New(rand.NewPCG(1, 1))
		for round := range rounds {
			for _, i := range r.Perm(len(watchingArms)) {
				arm := watchingArms[i]
				rec := w.run(fmt.Sprintf("%ds", seconds), func(id string) func() {
					return arm.look(w, id)
				})
				for _, l := range rec.Loads {
					if l.Model == record.Closed {
						peak[arm.name] = append(peak[arm.name], l.ThroughputPerS)
					} else {
						p99[arm.name] = append(p99[arm.name], float64(l.ResponseTime.P99Ns))
					}
				}
				if slices.ContainsFunc(rec.Verdict.Findings, ofOthers) {
					doubted[arm.name]++
				}
				b.Logf("round %d, %s: %s", round+1, arm.name, rec.Verdict.Grade)
			}
		}
		var text bytes.Buffer
		out := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
		fmt.Fprintln(out, "\tpeak, ratio to nobody\tp99 at half, likewise\ta rule objects in")
		for _, arm := range watchingArms {
			fmt.Fprintf(out, "%s\t%s\t%s\t%d of %d runs\n", arm.name, ratioTo(peak, arm.name),
				ratioTo(p99, arm.name), doubted[arm.name], rounds)
		}
		out.Flush()
		b.Logf("%d rounds\n%s", rounds, &text)
	}
	b.ReportMetric(0, "ns/op") // the time of a measurement has no meaning
}

// ofOthers reports whether a rule doubts a number because of other processes.
func ofOthers(f record.Finding) bool {
	others := []string{"neighbors", "quiet", "run delay"}
	return f.Grade != record.Valid && slices.Contains(others, f.Rule)
}

func ratioTo(values map[string][]float64, arm string) string {
	r := stats.PairedRatio(values[watchingArms[0].name], values[arm], costConfidence)
	return fmt.Sprintf("%.3f [%.3f, %.3f]", r.Center, r.Lo, r.Hi)
}

func newWatching(tb testing.TB) *watching {
	tb.Helper()
	w := &watching{tb: tb, dir: tb.TempDir()}
	w.cmd = exec.Command(built(tb), "--root", "..", "serve", w.dir, "--listen", "127.0.0.1:0")
	w.cmd.Stderr = os.Stderr
	out, err := w.cmd.StdoutPipe()
	if err == nil {
		err = w.cmd.Start()
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = w.cmd.Process.Signal(os.Interrupt) // it may have ended
		_ = w.cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		tb.Fatalf("it printed %q: %v", line, err)
	}
	w.base = strings.TrimSuffix(strings.Fields(line)[0], "/")
	return w
}

// run runs one trial, watched from its beginning on, and returns its record.
func (w *watching) run(measure string, look func(id string) (end func())) *record.Record {
	w.tb.Helper()
	answer, err := http.Post(w.base+"/api/v1/runs", "application/json", strings.NewReader(
		`{"targets":["go-nethttp"],"blocks":1,"measure":"`+measure+`"}`))
	if err != nil {
		w.tb.Fatal(err)
	}
	defer answer.Body.Close()
	var begun struct{ ID, Error string }
	if err := json.NewDecoder(answer.Body).Decode(&begun); err != nil || begun.ID == "" {
		w.tb.Fatalf("begin a run: %s, %v", begun.Error, err)
	}
	end := look(begun.ID)
	defer end()
	dir := filepath.Join(w.dir, begun.ID)
	over := time.Now().Add(5 * time.Minute)
	for ; time.Now().Before(over); time.Sleep(time.Second) {
		// Read the files, because a request to the server would be watching.
		text, err := os.ReadFile(filepath.Join(dir, record.ProgressFile))
		if err != nil || !bytes.Contains(text, []byte(`"kind":"`+record.Ends+`"`)) {
			continue
		}
		_, records, _, err := record.Read(dir)
		if err != nil || len(records) != 1 || records[0].Outcome != record.Measured {
			w.tb.Fatalf("%d records, %v\n%s", len(records), err, text)
		}
		time.Sleep(time.Second) // its process ends
		return records[0]
	}
	w.tb.Fatal("the run does not end")
	return nil
}

// crowd follows a run ten times in parallel.
func (w *watching) crowd(id string) (end func()) {
	var open []io.Closer
	for range watchers {
		answer, err := http.Get(w.base + "/api/v1/runs/" + id + "/events")
		if err != nil || answer.StatusCode != http.StatusOK {
			w.tb.Fatalf("watch: %v, %v", answer, err)
		}
		open = append(open, answer.Body)
		go io.Copy(io.Discard, answer.Body) //nolint:errcheck // closed at the end
	}
	return func() {
		for _, o := range open {
			_ = o.Close() // nothing was written
		}
	}
}

// page opens the run's page in a browser.
func (w *watching) page(id string) (end func()) {
	exe, err := exec.LookPath("chromium")
	if err != nil {
		w.tb.Skip("no chromium on PATH")
	}
	dir := w.tb.TempDir()
	ctx, stop := chromedp.NewExecAllocator(w.tb.Context(), chromedp.ExecPath(exe),
		chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.UserDataDir(dir), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true))
	ctx, cancel := chromedp.NewContext(ctx)
	if err := chromedp.Do(ctx, chromedp.Navigate(w.base+"/#/run/"+id)); err != nil {
		w.tb.Fatal(err)
	}
	return func() {
		cancel()
		stop()
	}
}
