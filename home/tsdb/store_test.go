package tsdb

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// In a flood of series only the allowed number is kept, and these continue.
func TestFloodOfSeries(t *testing.T) {
	const most, batches, each = 1000, 40, 2000
	s := open(t, Options{MaxSeries: most})
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	send := func(batch int) {
		md := pmetric.NewMetrics()
		ms := resource(md, "go", "b1-01")
		ts := at(time.Duration(batch-batches) * time.Second)
		counter(ms, "good", ts, int64(batch))
		m := ms.AppendEmpty()
		m.SetName("user")
		ps := m.SetEmptyGauge().DataPoints()
		for i := range each {
			p := ps.AppendEmpty()
			p.SetTimestamp(ts)
			p.Attributes().PutInt("user.id", int64(batch*each+i))
		}
		consume(t, s, md)
	}
	for batch := range batches / 4 {
		send(batch)
	}
	early := heap()
	for batch := batches / 4; batch <= batches; batch++ {
		send(batch)
	}
	// 60,000 refused series of about 1 kB would be 60 MB. 16 MiB are for the store's buffers.
	if late := heap(); late > early+16<<20 {
		t.Errorf("the heap grew from %d to %d bytes", early, late)
	}
	st := s.Stats()
	// Of 41 · 2000 users this many fit beside good. target_info comes last, after the flood.
	kept := int64(most - 1)
	if st.Series != most || st.Dropped[DropSeries] != 41*each-kept+41 {
		t.Errorf("%+v, want %d series", st, most)
	}
	if want := kept + 41; st.Samples != want {
		t.Errorf("%d samples, want %d", st.Samples, want)
	}
	answers(t, s, `sum(good_total)`, map[string]float64{`{}`: batches})
}

// A full store drops samples and counts them.
func TestFullStore(t *testing.T) {
	s := open(t, Options{MaxSamples: 2})
	for i := range 4 {
		put(t, s, time.Duration(i-3)*time.Second, "x", float64(i))
	}
	wantDropped(t, s, map[string]int64{DropFull: 2})
	answers(t, s, "x", map[string]float64{"x{}": 1})
}

// Points that arrive one by one are checked and counted, and Bounds returns the times of stored
// ones.
func TestPoints(t *testing.T) {
	s := open(t, Options{})
	for _, row := range []struct {
		after time.Duration
		v     float64
	}{{-time.Second, 1}, {0, 2}, {0, 3}, {time.Hour, 4}, {-2 * time.Hour, 5}} {
		put(t, s, row.after, "prony_rate", row.v, "load", "half", "none", "")
	}
	answers(t, s, "prony_rate", map[string]float64{`prony_rate{load="half"}`: 2})
	wantDropped(t, s, map[string]int64{DropDuplicate: 1, DropFuture: 1, DropOld: 1})
	from, to, ok := s.Bounds()
	if !ok || !from.Equal(noon.Add(-time.Second)) || !to.Equal(noon) {
		t.Errorf("from %v to %v, %v", from, to, ok)
	}
	if _, _, ok := open(t, Options{}).Bounds(); ok {
		t.Error("an empty store has bounds")
	}
}

// snapshot copies the files as a crash would leave them.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// After a crash all stored data is readable, with help and exemplars, and the store continues.
func TestCrashAndReopen(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir, Options{})
	two(t, s)
	want := map[string]float64{`{service_name="spring-jvm"}`: 600,
		`{service_name="quarkus-jvm"}`: 1200}
	const query = `sum by (service_name) (http_server_request_duration_seconds_count)`
	check := func(t *testing.T, s *Store) {
		t.Helper()
		answers(t, s, query, want)
		list, err := s.List(context.Background())
		i := slices.IndexFunc(list, func(l Listed) bool {
			return l.Name == "http_server_request_duration_seconds_count"
		})
		if err != nil || i < 0 || list[i].Help != "Duration of HTTP server requests." ||
			list[i].Type != "histogram" || list[i].Series != 2 {
			t.Errorf("%v, list %+v", err, list)
		}
	}
	check(t, s)
	t.Run("open", func(t *testing.T) {
		again := openIn(t, snapshot(t, dir), Options{})
		check(t, again)
		if a, b := again.Stats().Series, s.Stats().Series; a != b {
			t.Errorf("%d series, there were %d", a, b)
		}
		md := pmetric.NewMetrics()
		java(resource(md, "spring-jvm", "b1-01"), at(time.Second), 4)
		consume(t, again, md)
		answersAt(t, again, `sum(http_server_request_duration_seconds_count)`,
			noon.Add(time.Second), map[string]float64{`{}`: 800 + 1200})
	})
	t.Run("closed", func(t *testing.T) {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		ro, err := OpenReadOnly(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer ro.Close()
		check(t, ro)
		check(t, openIn(t, dir, Options{}))
	})
}

// An incomplete end loses only the data after the cut.
func TestTornEnd(t *testing.T) {
	dir := t.TempDir()
	two(t, openIn(t, dir, Options{}))
	const query = `sum by (service_name) (http_server_request_duration_seconds_count)`
	crashed := snapshot(t, dir)
	segments, err := filepath.Glob(filepath.Join(crashed, "wal", "0*"))
	if err != nil || len(segments) == 0 {
		t.Fatal(err, segments)
	}
	for _, file := range []string{segments[len(segments)-1],
		filepath.Join(crashed, familiesFile)} {
		info, err := os.Stat(file)
		if err == nil {
			err = os.Truncate(file, info.Size()-7)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, open := range []func(string, Options) (*Store, error){OpenReadOnly, Open} {
		torn, err := open(crashed, Options{Now: func() time.Time { return noon }})
		if err != nil {
			t.Fatal(err)
		}
		// The last message is lost, the one 10 s before is complete.
		answersAt(t, torn, query, noon.Add(-10*time.Second), map[string]float64{
			`{service_name="spring-jvm"}`: 400, `{service_name="quarkus-jvm"}`: 800})
		if err := torn.Close(); err != nil {
			t.Error(err)
		}
	}
}

// writerDir makes the test binary the other process, which writes until its input ends.
const writerDir = "PRONY_TEST_WRITER_DIR"

func TestMain(m *testing.M) {
	dir := os.Getenv(writerDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := write(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write stores a point of a growing counter for each input line, and prints its number.
func write(dir string) error {
	now := noon
	s, err := Open(dir, Options{Now: func() time.Time { return now }})
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	for n := int64(1); lines.Scan(); n++ {
		now = now.Add(time.Second)
		md := pmetric.NewMetrics()
		counter(resource(md, "go", "b1-01"), "written", at(now.Sub(noon)), n)
		if err := s.ConsumeMetrics(context.Background(), md); err != nil {
			return err
		}
		fmt.Println(n)
	}
	return s.Close()
}

// While another process writes, its stored data can be read, and its folder stays unchanged.
func TestReadOnlyBesideAWriter(t *testing.T) {
	dir := t.TempDir()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), writerDir+"="+dir)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewScanner(out)
	for n := 1; n <= 30; n++ {
		if _, err := in.Write([]byte("next\n")); err != nil || !said.Scan() ||
			said.Text() != strconv.Itoa(n) {
			t.Fatalf("%v, wrote %q, want %d", err, said.Text(), n)
		}
		if n%10 != 0 {
			continue
		}
		before := files(t, dir)
		ro, err := OpenReadOnly(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, to, _ := ro.Bounds()
		answersAt(t, ro, `sum(written_total)`, to, map[string]float64{`{}`: float64(n)})
		if err := ro.Close(); err != nil {
			t.Error(err)
		}
		if after := files(t, dir); !maps.Equal(after, before) {
			t.Errorf("files were %v, are %v", before, after)
		}
	}
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "another") {
		t.Errorf("two writers: %v", err)
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}

// files returns the files of a folder with their sizes.
func files(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && !e.IsDir() {
			out[path] = info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestReadOnlyWithoutAStore(t *testing.T) {
	_, err := OpenReadOnly(t.TempDir(), Options{})
	if err == nil || !strings.Contains(err.Error(), "--telemetry") {
		t.Errorf("%v", err)
	}
}
