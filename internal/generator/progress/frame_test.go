package progress

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/charmbracelet/x/ansi"

	"prony.example/load"
)

var update = flag.Bool("update", false, "bless what is printed as testdata")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is\n%s\nwant\n%s\n(bless with -update)", file, got, want)
	}
}

// hist returns a histogram with n of each value.
func hist(n int64, ns ...int64) *hdrhistogram.Histogram {
	h := load.NewHistogram()
	for _, v := range ns {
		if err := h.RecordValues(v, n); err != nil {
			panic("a test's value is out of range: " + err.Error())
		}
	}
	return h
}

// openLoad is an open load at 5,000/s of 10 s after half a second.
var openLoad = Config{
	Target: "http://127.0.0.1:8080/hello", Model: "open, poisson at 5.00k/s, 64 connections",
	Engine: "epoll", Open: true, Lead: 500 * time.Millisecond, Window: 10 * time.Second,
	Drain: 5 * time.Second, Kind: Page,
}

// offer adds snapshots to the state of an open load up to the n-th, a quarter of a second each:
// 1,250 requests, of which every tenth snapshot loses five to timeouts. 1,000 responses take 200 to
// 300 µs and get slower, 200 take a millisecond, 45 take 8 ms.
func offer(s *state, n int) {
	for i := s.points; i < n; i++ {
		s.add(snapshot(i + 1))
	}
}

func snapshot(k int) load.Progress {
	n := int64(k)
	lost := 5 * (n / 10)
	wave := 250 + 50*math.Sin(float64(k)/4)
	h := hist(1000, int64(wave*1e3))
	h.Merge(hist(200, 1e6))
	h.Merge(hist(45, 8e6))
	out := load.Progress{
		Elapsed: time.Duration(k) * redrawEvery, Window: k > 2 && k <= 42,
		Totals: load.Totals{
			Due: 1250 * n, Sent: 1249 * n, Done: 1245*n - lost, Failed: lost,
			BytesIn: 140 * 1245 * n, InFlight: 7,
		},
		Response: h, Lag: hist(1249, 12e3),
	}
	out.Errors[3] = lost // timeout
	return out
}

func TestFrame(t *testing.T) {
	check := func(name string, c Config, snapshots, width, height int) {
		t.Run(name, func(t *testing.T) {
			s := newState(c)
			offer(s, snapshots)
			got := frame(s, width, height)
			lines := strings.Split(got, "\n")
			if len(lines) > height {
				t.Errorf("%d lines, more than %d", len(lines), height)
			}
			for i, l := range lines {
				if w := ansi.StringWidth(l); w > width {
					t.Errorf("line %d is %d columns wide, more than %d", i+1, w, width)
				}
			}
			golden(t, name+".txt", ansi.Strip(got)+"\n")
		})
	}
	closed := openLoad
	closed.Open, closed.Model = false, "closed, 64 connections"
	counted := openLoad
	counted.Requests, counted.Lead, counted.Window = 100_000, 0, 24*time.Hour
	long := openLoad
	long.Target += "/" + strings.Repeat("very-", 30) + "long"
	check("80x24", openLoad, 30, 80, 24)
	check("60x24", openLoad, 30, 60, 24)
	check("80x50", openLoad, 30, 80, 50)
	check("200x24", openLoad, 30, 200, 24)
	check("80x12", openLoad, 30, 80, 12) // no room for empty lines
	check("20x5", openLoad, 30, 20, 5)   // and little else
	check("before", openLoad, 0, 80, 24)
	check("lead-in", openLoad, 1, 80, 24)
	check("drain", openLoad, 44, 80, 24)
	check("closed", closed, 30, 80, 24)
	check("requests", counted, 30, 80, 24) // 37,350 of 100,000 in 7.5 s: 12.6 to go
	check("long-target", long, 3, 60, 24)
}

// TestFrameSaysWhatIsWrong checks the page of a load that is ending, and with failed pushes.
func TestFrameSaysWhatIsWrong(t *testing.T) {
	s := newState(openLoad)
	one := snapshot(1)
	one.Errors[1] = 1
	s.add(one)
	if got := ansi.Strip(frame(s, 80, 24)); !strings.Contains(got, load.ClassNames[1]+" 1\n") {
		t.Errorf("the page lacks a single error:\n%s", got)
	}
	s = newState(openLoad)
	offer(s, 20)
	for _, words := range []string{"q ends the load", "errors    timeout 10"} {
		if got := ansi.Strip(frame(s, 80, 24)); !strings.Contains(got, words) {
			t.Errorf("the page lacks %q:\n%s", words, got)
		}
	}
	s.ending, s.failures = true, 3
	for _, words := range []string{"  ending\n", "q again discards", "3 pushes failed"} {
		if got := ansi.Strip(frame(s, 80, 24)); !strings.Contains(got, words) {
			t.Errorf("the page lacks %q:\n%s", words, got)
		}
	}
}

// TestVerdictSoFar checks the page and the lines of loads under way. No verdict exists before the
// window opens, and the last one stays during the drain.
func TestVerdictSoFar(t *testing.T) {
	check := func(change func(*load.Progress), snapshots int, want ...string) {
		t.Helper()
		c := openLoad
		c.Steady = true
		s := newState(c)
		for k := range snapshots {
			p := snapshot(k + 1)
			p.Lag = hist(1249, 2e3)
			change(&p)
			s.add(p)
		}
		text := ansi.Strip(frame(s, 120, 24)) + "\n" + line(s) + "\n" + lineJSON(s)
		for _, words := range want {
			if !strings.Contains(text, words) {
				t.Errorf("the views lack %q:\n%s", words, text)
			}
		}
		if strings.Contains(text, "verdict  ") != (len(want) > 0) {
			t.Errorf("there is a verdict in the views, or none:\n%s", text)
		}
	}
	good := func(p *load.Progress) {
		p.Failed, p.Errors, p.Done = 0, [load.Classes]int64{}, p.Due-5
	}
	late := func(p *load.Progress) {
		good(p)
		p.Lag = hist(1249, 5e6)
	}
	check(good, 2)
	valid := []string{"verdict   VALID so far\n", "  VALID so far\n", `"grade":"VALID"`}
	check(good, 20, valid...)
	check(good, 44, valid...)
	check(late, 20, "verdict   SUSPECT so far: lag: requests were sent late: p99 5.001ms, "+
		"at most 5.001ms",
		"  SUSPECT so far: lag\n", `"grade":"SUSPECT","rule":"lag"`)
	// Of 5,000 arrivals/s, 100 remain.
	check(func(p *load.Progress) {
		good(p)
		p.Done = p.Due * 98 / 100
	}, 20, "verdict   INVALID so far: capacity: the backlog of requests grows by 100.0/s")
	check(func(p *load.Progress) {
		good(p)
		p.Failed = p.Due / 100
		p.Errors[3], p.Done = p.Failed, p.Due-p.Failed-5
	}, 20, "verdict   INVALID so far: errors: ", " requests failed", `"rule":"errors"`)
}

// TestFrameUsesTheThemesColours checks that only the sixteen foregrounds, faint and bold are used,
// so that no meaning depends on color.
func TestFrameUsesTheThemesColours(t *testing.T) {
	s := newState(openLoad)
	offer(s, 30)
	text := frame(s, 80, 24)
	allowed := []string{"\x1b[1m", "\x1b[2m", "\x1b[36m", "\x1b[1;31m", "\x1b[m"}
	for _, a := range allowed {
		if !strings.Contains(text, a) {
			t.Errorf("%q is not used", a)
		}
		text = strings.ReplaceAll(text, a, "")
	}
	if i := strings.IndexByte(text, '\x1b'); i >= 0 {
		t.Errorf("there is another style: %.20q", text[i:])
	}
}

func TestSparkline(t *testing.T) {
	check := func(want string, width int, values ...float64) {
		t.Helper()
		var points []point
		for _, v := range values {
			points = append(points, point{maxNs: int64(v)})
		}
		got := ansi.Strip(sparkline(points, width, func(p point) float64 {
			return float64(p.maxNs)
		}))
		if got != want {
			t.Errorf("%v in %d columns: %q, want %q", values, width, got, want)
		}
	}
	check("", 10)
	check("", 0, 1, 2)
	// Eight levels from zero to the largest: an eighth of it is the second level.
	check("▁▂▃▄▅▆▇██", 9, 1, 2, 4, 6, 8, 10, 12, 14, 16)
	check("█ █", 3, 5, 0, 5)   // no value, no mark
	check("██", 2, 1, 8, 8, 1) // the larger of each two
	check("▅█", 3, 4, 4, 8, 8) // four in three columns: two each
	check("  ", 2, 0, 0)
	check("▁█", 2, 1, 1e6)
}

func TestBins(t *testing.T) {
	check := func(want string, rows int, ns ...int64) {
		t.Helper()
		var got []string
		for _, b := range binsOf(tallyOf(ns...), rows) {
			got = append(got, fmt.Sprintf("%s: %d", b.name, b.count))
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("%v in %d rows: %s, want %s", ns, rows, s, want)
		}
	}
	check("", 5)
	check("≤ 200 µs: 2, ≤ 500 µs: 1", 5, 150e3, 200e3, 201e3)
	check("≤ 1.00 µs: 1", 5, 1)
	check("≤ 200 µs: 1, ≤ 500 µs: 0, ≤ 1.00 ms: 0, ≤ 2.00 ms: 1", 4, 200e3, 2e6)
	// Four buckets in three rows: whole decades. 200 µs is in the one up to 1 ms.
	check("≤ 1.00 ms: 1, ≤ 10.0 ms: 1", 3, 200e3, 2e6)
	// From 1 µs to 1,000 s are 28 buckets: ten decades with their first, five pairs and that one.
	check("≤ 1.00 µs: 1, ≤ 100 µs: 0, ≤ 10.0 ms: 0, ≤ 1.00 s: 1, ≤ 100 s: 0, more: 1", 7, 1, 1e9,
		1e12)
	check("≤ 1000 s: 1, more: 1", 5, 1e12, 1.001e12)
}
