package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/trial/machine"
	"prony.example/record"
)

// The lines of all outputs are those of the load that ran, whatever ended it.
func TestLoadCourse(t *testing.T) {
	testsets.Whole(t, "whole loads")
	testsets.Live(t)
	for name, row := range map[string]struct {
		args []string
		stop int64 // Ctrl-C at this request
		want int64 // requests; 0: as many as came until the end
	}{
		"within an interval": {args: []string{"-n", "7"}, want: 7},
		"by number":          {args: []string{"-n", "300", "--rate", "1000"}, want: 300},
		"number stopped":     {args: []string{"-n", "100000000"}, stop: 3000},
		"window stopped": {args: []string{"-d", "5m", "--lead-in", "0", "--rate", "2000"},
			stop: 400},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			var asked atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
				_ *http.Request) {
				if n := asked.Add(1); n == row.stop {
					interrupt()
				} else if n%10 == 3 {
					w.WriteHeader(http.StatusTeapot)
				}
				fmt.Fprint(w, "ok")
			}))
			defer server.Close()
			dir := filepath.Join(t.TempDir(), "run")
			args := append([]string{"load", server.URL, "-c", "2", "-o", "csv", "--save=" + dir},
				row.args...)
			var out, errs bytes.Buffer
			if exit := cli.Code(run(ctx, machine.World{}, args, &out, &errs)); exit != cli.Fine &&
				exit != cli.Invalid {
				t.Fatalf("exit %d: %s", exit, &errs)
			}
			rec := only(t, dir)
			l := &rec.Loads[0]
			if ended := l.Done + l.Errors.Requests(); row.want > 0 && ended != row.want ||
				ended == 0 {
				t.Errorf("%d requests ended, want %d", ended, row.want)
			}
			sameCourse(t, out.String(), l)
			sameHistograms(t, filepath.Join(dir, "hdr", rec.Trial+".load.hlog"), l)
		})
	}
}

// sameCourse checks that the rows of a CSV cover the window, and that their counts and those of the
// load's series add up to its totals.
func sameCourse(t *testing.T, text string, l *record.Load) {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var at, done, failed int64
	number := func(cell string) int64 {
		n, err := strconv.ParseInt(cell, 10, 64)
		if err != nil {
			t.Error(err)
		}
		return n
	}
	for i, row := range rows[1:] {
		if number(row[0]) != at || number(row[1]) <= 0 || number(row[4]) != l.Series.Done[i] {
			t.Errorf("row %d after %d ns: %v", i, at, row)
		}
		at += number(row[1])
		done, failed = done+number(row[4]), failed+number(row[5])
	}
	if at != l.WindowNs || done != l.Done || failed != l.Errors.Requests() {
		t.Errorf("rows have %d ns, %d done, %d failed; the load %d, %d, %d", at, done, failed,
			l.WindowNs, l.Done, l.Errors.Requests())
	}
}

// sameHistograms checks that the lines of a histogram log cover the window and hold all responses.
func sameHistograms(t *testing.T, name string, l *record.Load) {
	t.Helper()
	log, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var at, done float64
	for _, line := range strings.Split(strings.TrimSpace(string(log)), "\n")[3:] {
		var from, length float64
		if _, err := fmt.Sscanf(line, "%f,%f,", &from, &length); err != nil || length <= 0 ||
			math.Abs(from-at) > 1e-5 {
			t.Errorf("line after %v s: %.30s (%v)", at, line, err)
		}
		at = from + length
	}
	r := hdrhistogram.NewHistogramLogReader(bytes.NewReader(log))
	for {
		h, err := r.NextIntervalHistogram()
		if err != nil {
			t.Fatal(err)
		}
		if h == nil {
			break
		}
		done += float64(h.TotalCount())
	}
	if window := float64(l.WindowNs) / 1e9; math.Abs(at-window) > 1e-5 || int64(done) != l.Done {
		t.Errorf("lines have %v s and %v responses; the load %v s and %d", at, done, window, l.Done)
	}
}
