package collector

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"prony.example/internal/base/clock"
	"prony.example/internal/telemetry"
	"prony.example/record"
)

const cores = "prony_service_cpu_cores"

// beforehand returns a trial that ended a while ago: two seconds of a load, and its marks.
func beforehand(from time.Time) telemetry.Own {
	ns := from.UnixNano()
	return telemetry.Own{
		Trial: telemetry.Trial{Run: "r", ID: "b", Target: "shop", Variant: "spy"},
		Marks: []telemetry.Mark{
			{Trial: "b", Kind: telemetry.Phase, Name: "measure", WallNs: ns - 1e9},
			{Trial: "b", Kind: telemetry.Open, Name: "high", WallNs: ns},
			{Trial: "b", Kind: telemetry.Close, Name: "high", WallNs: ns + 2e9},
		},
		Series: []telemetry.Series{{Name: cores,
			Labels: map[string]string{"trial": "b", "load": "high", "arm": ""},
			WallNs: []int64{ns + 1e9, ns + 2e9}, Values: []float64{0.5, 0.75}, UntilNs: ns + 3e9}},
	}
}

func report(t *testing.T, h *Home, o telemetry.Own) (int, string) {
	t.Helper()
	body, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return call(t, h, "POST", "/prony/points", jason, string(body))
}

// value queries the collector's own database.
func value(t *testing.T, h *Home, expr string, at time.Time) string {
	t.Helper()
	_, text := call(t, h, "GET", fmt.Sprintf("/api/v1/query?query=%s&time=%d",
		url.QueryEscape(expr), at.Unix()), "", "")
	var a struct {
		Data struct{ Result []struct{ Value [2]any } }
	}
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		t.Fatal(text, err)
	}
	if len(a.Data.Result) != 1 {
		return fmt.Sprintf("%d series", len(a.Data.Result))
	}
	return fmt.Sprint(a.Data.Result[0].Value[1])
}

// Prony's own metrics are stored and sent on with their own times, and are in no count of services,
// even if they are refused.
func TestOwn(t *testing.T) {
	for _, only := range []bool{false, true} {
		there := &fakes{}
		other := up(t, Config{Open: func(string) (Stores, error) { return there, nil }})
		h := up(t, Config{Forward: "http://" + other.Endpoints().HTTP, ForwardOnly: only})
		if err := h.begin(t.Context(), telemetry.Trial{ID: "a"}); err != nil {
			t.Fatal(err)
		}
		if code := deliver(t, h, "/v1/metrics", pointsOf("shop", 5)); code != 200 {
			t.Fatal(code)
		}
		from := clock.Wall().Truncate(time.Second).Add(-20 * time.Minute)
		if code, text := report(t, h, beforehand(from)); code != 204 {
			t.Fatal(code, text)
		}
		late := beforehand(from.Add(-50 * time.Minute))
		late.Marks = nil
		code, text := report(t, h, late)
		if !only && (code != 409 || !strings.Contains(text, "not stored, by reason: 3 old")) {
			t.Errorf("%d %q, want 409 and 3 old", code, text) // two and the end
		}
		// Two seconds of a load and its end, twice.
		wait(t, func() bool { return len(sent(there)[cores]) == 6 && len(there.marks()) == 3 })
		checkSent(t, there, from)
		if !only {
			checkStored(t, h, from)
		}
		r, err := h.end(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		checkCounted(t, r.Telemetry, only)
		checkCounted(t, h.counted(), only)
		if r.Telemetry.Partial != "" {
			t.Errorf("partial: %q", r.Telemetry.Partial)
		}
	}
}

// checkCounted expects the five points of the service, which a forwarding collector does not store.
func checkCounted(t *testing.T, got record.Telemetry, only bool) {
	t.Helper()
	kept, dropped := int64(5), int64(0)
	if only {
		kept, dropped = 0, 5
	}
	for _, s := range got.Signals {
		want := record.Signal{Name: s.Name}
		if s.Name == record.Points {
			want = record.Signal{Name: s.Name, Requests: 1, Received: 5, Kept: kept,
				Dropped: dropped, Bytes: s.Bytes}
		}
		if s != want {
			t.Errorf("%+v, want %+v", s, want)
		}
	}
	if v := got.Sources; len(v) != 1 || v[0].Service != "shop" || v[0].Points != 5 {
		t.Errorf("voices %+v, want 5 points of shop", v)
	}
}

// pointsOf returns the points of a service.
func pointsOf(service string, n int) []byte {
	d := pmetric.NewMetrics()
	r := d.ResourceMetrics().AppendEmpty()
	r.Resource().Attributes().PutStr("service.name", service)
	m := r.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("jobs")
	points := m.SetEmptyGauge().DataPoints()
	for i := range n {
		p := points.AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(clock.Wall()))
		p.SetIntValue(1)
		p.Attributes().PutInt("queue", int64(i))
	}
	data, _ := pmetricotlp.NewExportRequestFromMetrics(d).MarshalProto()
	return data
}

// sent returns the received points by metric, a line each.
func sent(f *fakes) map[string][]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string][]string{}
	for _, d := range f.points {
		for _, r := range d.ResourceMetrics().All() {
			of, _ := r.Resource().Attributes().Get("service.name")
			for _, m := range r.ScopeMetrics().At(0).Metrics().All() {
				for _, p := range m.Gauge().DataPoints().All() {
					out[m.Name()] = append(out[m.Name()], of.Str()+" "+worded(p))
				}
			}
		}
	}
	return out
}

func worded(p pmetric.NumberDataPoint) string {
	v := fmt.Sprint(p.DoubleValue())
	if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
		v = fmt.Sprint(p.IntValue())
	}
	if p.Flags().NoRecordedValue() {
		v = "end"
	}
	return fmt.Sprint(p.Timestamp().AsTime().Unix(), " ", v, " ", attributes(p.Attributes()))
}

func attributes(a pcommon.Map) string {
	var out []string
	for k, v := range a.All() {
		out = append(out, k+"="+v.AsString())
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

// marks returns the received events.
func (f *fakes) marks() (out []plog.LogRecord) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, d := range f.events {
		for _, r := range d.ResourceLogs().All() {
			if of, _ := r.Resource().Attributes().Get("service.name"); of.Str() == telemetry.Lab {
				out = append(out, r.ScopeLogs().At(0).LogRecords().At(0))
			}
		}
	}
	return out
}

func checkSent(t *testing.T, f *fakes, from time.Time) {
	t.Helper()
	sec := from.Unix()
	got := sent(f)
	var want []string
	for i, v := range []string{"0.5", "0.75", "end"} {
		want = append(want, fmt.Sprintf("prony %d %s load=high,service_name=prony,trial=b",
			sec+int64(i)+1, v))
	}
	if !slices.Equal(got[cores][:3], want) {
		t.Errorf("sent\n%s\nwant\n%s", strings.Join(got[cores], "\n"), strings.Join(want, "\n"))
	}
	const of = "arm=spy,kind=window,name=high,run=r,target=shop,trial=b"
	high := []string{fmt.Sprintf("prony %d 1 %s", sec, of),
		fmt.Sprintf("prony %d 0 %s", sec+2, of)}
	var phases []string
	measured := 0
	for _, p := range got["prony.phase"] {
		if strings.Contains(p, "name=high") {
			phases = append(phases, p)
		} else if strings.Contains(p, "name=measure") {
			measured++
		}
	}
	// measure was opened 20 min and a second ago and is repeated every minute: 21 times, and its
	// end.
	if !slices.Equal(phases, high) || measured != 22 {
		t.Errorf("phases %q and %d of measure, want %q and 22", phases, measured, high)
	}
	m := f.marks()[1]
	if got := m.EventName() + " " + m.Body().Str() + " " + attributes(m.Attributes()); got !=
		"prony.mark open high arm=spy,event.name=prony.mark,kind=open,name=high,run=r,"+
			"target=shop,trial=b" || m.Timestamp().AsTime().Unix() != sec {
		t.Errorf("the mark is %s, at %v", got, m.Timestamp().AsTime())
	}
}

func checkStored(t *testing.T, h *Home, from time.Time) {
	t.Helper()
	for expr, want := range map[string]string{
		cores + `{service_name="prony", trial="b", load="high"}`: "0.75",
		`prony_phase{name="measure", kind="phase", trial="b"}`:   "1",
		`prony_phase{name="high", kind="window", trial="b"}`:     "0",
	} {
		if got := value(t, h, expr, from.Add(2*time.Second)); got != want {
			t.Errorf("%s is %s at its second second, want %s", expr, got, want)
		}
	}
	if got := value(t, h, cores, from.Add(4*time.Second)); got != "0 series" {
		t.Errorf("%s is %s after its end", cores, got)
	}
	data, err := os.ReadFile(filepath.Join(h.c.Dir, MarksFile))
	if err != nil || strings.Count(string(data), "\n") != 3 ||
		!strings.Contains(string(data), `"variant":"spy","trial":"b","kind":"open"`) {
		t.Errorf("%s, %v", data, err)
	}
}

// Invalid series are refused completely.
func TestOwnRefused(t *testing.T) {
	f := &fakes{}
	h := up(t, Config{Open: func(string) (Stores, error) { return f, nil }})
	if err := h.begin(t.Context(), telemetry.Trial{ID: "b"}); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*telemetry.Own){
		"Prony has no metric with this name": func(o *telemetry.Own) { o.Series[0].Name = "jobs" },
		"2 times for 1 values": func(o *telemetry.Own) {
			o.Series[0].Values = o.Series[0].Values[:1]
		},
		"the times do not ascend": func(o *telemetry.Own) { o.Series[0].WallNs[0] *= 2 },
		"0 times for 0 values": func(o *telemetry.Own) {
			o.Series[0].Values, o.Series[0].WallNs = nil, nil
		},
		"the trial is running": func(o *telemetry.Own) { o.Series = nil },
	} {
		o := beforehand(clock.Wall())
		change(&o)
		if code, text := report(t, h, o); code != 409 || !strings.Contains(text, want) {
			t.Errorf("%d %q, want %q", code, text, want)
		}
	}
	if len(f.points)+len(f.events) != 0 {
		t.Errorf("%d points and %d events came all the same", len(f.points), len(f.events))
	}
}

// The name of each of Prony's metrics ends in its unit, and each has a help text.
func TestMetricsAreNamed(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range telemetry.Metrics {
		if seen[m.Name] || !strings.HasPrefix(m.Name, "prony_") || m.Help == "" ||
			help(m.Name) != m.Help {
			t.Errorf("%+v", m)
		}
		seen[m.Name] = true
	}
	if len(seen) == 0 || slices.Contains(slices.Collect(maps.Keys(seen)), "") {
		t.Error("there are none")
	}
}
