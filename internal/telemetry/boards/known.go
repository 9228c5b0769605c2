package boards

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Folder has the recorded series that Send sends, and that tests put queries to.
const Folder = "deploy/check"

// Points of a series are Step apart.
const (
	Step   = 5 * time.Second
	Points = 61
)

// Series is a recorded series: a first value, and its change from point to point.
type Series struct {
	Name         string
	Labels       map[string]string
	First, Slope float64
	Native       *native // instead of numbers, if set
}

// native is a native histogram that grows by the same buckets from point to point.
type native struct {
	schema, offset int
	sum            float64
	buckets        []float64
}

// value returns the value of a point.
func (s Series) value(i int) float64 { return s.First + s.Slope*float64(i) }

const aNumber = `-?\d+(?:\.\d+)?(?:e[+-]?\d+)?`

var (
	seriesLine = regexp.MustCompile(`^([A-Za-z_:]\w*)\{(.*)\} (` + aNumber + `)([+-]` + aNumber +
		`)?x\d+$`)
	seriesPair = regexp.MustCompile(`(\w+)=("(?:[^"\\]|\\.)*")`)
)

// ReadSeries reads a line in the notation of Prometheus' unit tests: name{label="value"} 1+2x60.
func ReadSeries(line string) (Series, error) {
	s := Series{Labels: map[string]string{}}
	if n := nativeValue.FindStringSubmatch(line); n != nil {
		s.Native = readNative(n)
		line = strings.TrimSuffix(line, n[0]) + "0x60"
	}
	m := seriesLine.FindStringSubmatch(line)
	if m == nil {
		return Series{}, fmt.Errorf("cannot read the series %q", line)
	}
	s.Name = m[1]
	for _, pair := range seriesPair.FindAllStringSubmatch(m[2], -1) {
		value, err := strconv.Unquote(pair[2])
		if err != nil {
			return s, fmt.Errorf("read the series %q: %w", line, err)
		}
		s.Labels[pair[1]] = value
	}
	var err error
	if s.First, err = strconv.ParseFloat(m[3], 64); err == nil && m[4] != "" {
		s.Slope, err = strconv.ParseFloat(m[4], 64)
	}
	if err != nil {
		return s, fmt.Errorf("read the series %q: %w", line, err)
	}
	return s, nil
}

// nativeValue matches {{...}}+{{...}}x60, whose two histograms are the same.
var nativeValue = regexp.MustCompile(`\{\{schema:(\d+) sum:(\S+) count:\S+ offset:(-?\d+) ` +
	`buckets:\[([^\]]*)\]\}\}\+\{\{.*\}\}x\d+$`)

// readNative reads a match of nativeValue. Numbers that cannot be read are 0.
func readNative(m []string) *native {
	var n native
	n.schema, _ = strconv.Atoi(m[1])
	n.sum, _ = strconv.ParseFloat(m[2], 64)
	n.offset, _ = strconv.Atoi(m[3])
	for field := range strings.FieldsSeq(m[4]) {
		b, _ := strconv.ParseFloat(field, 64)
		n.buckets = append(n.buckets, b)
	}
	return &n
}

// exponential returns a native histogram. OTLP numbers a bucket by its lower bound, Prometheus by
// its upper one.
func exponential(s Series, now time.Time) any {
	var points []any
	for i := range Points {
		p := point(s, now, i)
		total := int64(0)
		var counts []string
		for _, b := range s.Native.buckets {
			n := int64(b * float64(i+1))
			total += n
			counts = append(counts, strconv.FormatInt(n, 10))
		}
		p["scale"], p["count"] = s.Native.schema, strconv.FormatInt(total, 10)
		p["sum"] = s.Native.sum * float64(i+1)
		p["positive"] = map[string]any{"offset": s.Native.offset - 1, "bucketCounts": counts}
		points = append(points, p)
	}
	return map[string]any{"name": s.Name, "exponentialHistogram": map[string]any{
		"aggregationTemporality": 2, "dataPoints": points}}
}

// Recorded reads the recorded series of a checkout.
func Recorded(root string) ([]Series, error) {
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(Folder), "*.txt"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no recorded series in %s: %w", Folder, err)
	}
	var list []Series
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			s, err := ReadSeries(line)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			list = append(list, s)
		}
	}
	return list, nil
}

// Sender sends recorded telemetry by OTLP over HTTP, as JSON.
type Sender struct {
	OTLP string // such as http://127.0.0.1:4318
	HTTP *http.Client
}

// Send sends the recorded series, and spans and log records of their services, so that they end
// now. The recorded run gets another name, which is the newest.
func (s Sender) Send(ctx context.Context, recorded []Series, run string, now time.Time) error {
	byService := map[string][]Series{}
	for _, series := range recorded {
		series.Labels = maps.Clone(series.Labels)
		if series.Labels["run"] != "" {
			series.Labels["run"] = run
		}
		service := series.Labels["service_name"]
		byService[service] = append(byService[service], series)
	}
	for _, service := range slices.Sorted(maps.Keys(byService)) {
		ms := map[string]any{"resourceMetrics": metricsOf(byService[service], now)}
		if err := s.post(ctx, "/v1/metrics", ms); err != nil {
			return err
		}
	}
	services := slices.Sorted(maps.Keys(byService))
	if err := s.post(ctx, "/v1/traces", spansOf(services, run, now)); err != nil {
		return err
	}
	return s.post(ctx, "/v1/logs", logsOf(services, run, now))
}

func (s Sender) post(ctx context.Context, path string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.OTLP+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	got, err := s.HTTP.Do(r)
	if err != nil {
		return fmt.Errorf("send telemetry: %w", err)
	}
	defer got.Body.Close()
	if got.StatusCode != http.StatusOK {
		return fmt.Errorf("send telemetry: %s%s answers %s", s.OTLP, path, got.Status)
	}
	return nil
}

// fromResource are labels that stores make of the resource: they are no attributes of points.
var fromResource = map[string]string{"service_name": "service.name", "job": "", "instance": "",
	"service_instance_id": "service.instance.id", "prony_target": "prony.target",
	"telemetry_sdk_language": "telemetry.sdk.language"}

// metricsOf returns the OTLP metrics of one service's series: one resource for each set of labels
// that stores make of it.
func metricsOf(list []Series, now time.Time) []any {
	byResource := map[string][]Series{}
	for _, series := range list {
		key, _ := json.Marshal(attributes(series.Labels, true)) // its map has only strings
		byResource[string(key)] = append(byResource[string(key)], series)
	}
	var resources []any
	for _, key := range slices.Sorted(maps.Keys(byResource)) {
		source := byResource[key]
		resources = append(resources, map[string]any{
			"resource":     map[string]any{"attributes": attributes(source[0].Labels, true)},
			"scopeMetrics": []any{map[string]any{"metrics": metricsOfResource(source, now)}},
		})
	}
	return resources
}

func metricsOfResource(list []Series, now time.Time) (metrics []any) {
	type histogram struct{ buckets, counts, sums []Series }
	histograms := map[string]*histogram{}
	for _, series := range list {
		if base, ok := strings.CutSuffix(series.Name, "_bucket"); ok {
			histograms[base] = &histogram{}
		}
	}
	part := func(name, suffix string) *histogram {
		base, ok := strings.CutSuffix(name, suffix)
		if !ok {
			return nil
		}
		return histograms[base]
	}
	for _, series := range list {
		if series.Native != nil {
			metrics = append(metrics, exponential(series, now))
		} else if h := part(series.Name, "_bucket"); h != nil {
			h.buckets = append(h.buckets, series)
		} else if h := part(series.Name, "_count"); h != nil {
			h.counts = append(h.counts, series)
		} else if h := part(series.Name, "_sum"); h != nil {
			h.sums = append(h.sums, series)
		} else {
			metrics = append(metrics, number(series, now))
		}
	}
	for _, base := range slices.Sorted(maps.Keys(histograms)) {
		h := histograms[base]
		var points []any
		for _, count := range h.counts {
			points = append(points, buckets(count, matching(h.buckets, count),
				matching(h.sums, count), now)...)
		}
		metrics = append(metrics, map[string]any{"name": base, "histogram": map[string]any{
			"aggregationTemporality": 2, "dataPoints": points}})
	}
	return metrics
}

// matching returns the series that have the labels of one, except le, by le.
func matching(list []Series, series Series) []Series {
	var matched []Series
	for _, s := range list {
		l := maps.Clone(s.Labels)
		delete(l, "le")
		if maps.Equal(l, series.Labels) {
			matched = append(matched, s)
		}
	}
	slices.SortFunc(matched, func(a, b Series) int {
		x, _ := strconv.ParseFloat(a.Labels["le"], 64) // 0 without le: there is one sum
		y, _ := strconv.ParseFloat(b.Labels["le"], 64)
		return int(math.Copysign(1, x-y))
	})
	return matched
}

// number returns a counter or a gauge.
func number(s Series, now time.Time) any {
	var points []any
	for i := range Points {
		p := point(s, now, i)
		p["asDouble"] = s.value(i)
		points = append(points, p)
	}
	if strings.HasSuffix(s.Name, "_total") {
		return map[string]any{"name": s.Name, "sum": map[string]any{"aggregationTemporality": 2,
			"isMonotonic": true, "dataPoints": points}}
	}
	return map[string]any{"name": s.Name, "gauge": map[string]any{"dataPoints": points}}
}

// buckets returns the points of a histogram. Counts are whole numbers, other than the slopes.
func buckets(count Series, list, sums []Series, now time.Time) (points []any) {
	var bounds []float64
	for _, b := range list {
		if le, err := strconv.ParseFloat(b.Labels["le"], 64); err == nil && !math.IsInf(le, 1) {
			bounds = append(bounds, le)
		}
	}
	for i := range Points {
		p := point(count, now, i)
		var counts []string
		below := int64(0)
		for _, b := range list {
			n := max(below, int64(b.value(i)))
			counts = append(counts, strconv.FormatInt(n-below, 10))
			below = n
		}
		p["count"], p["explicitBounds"] = strconv.FormatInt(below, 10), bounds
		p["bucketCounts"] = counts
		if len(sums) == 1 {
			p["sum"] = sums[0].value(i)
		}
		points = append(points, p)
	}
	return points
}

// point returns a point without a value. The last one is of now.
func point(s Series, now time.Time, i int) map[string]any {
	begin := now.Add(-Step * Points)
	when := begin.Add(Step * time.Duration(i+1))
	return map[string]any{"attributes": attributes(s.Labels, false),
		"startTimeUnixNano": nanos(begin), "timeUnixNano": nanos(when)}
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

// attributes returns the labels that stores make of the resource, or the others.
func attributes(labels map[string]string, resource bool) []any {
	list := []any{}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		source, ok := fromResource[name]
		if ok != resource || ok && source == "" || name == "le" {
			continue
		}
		if !ok {
			source = name
		}
		list = append(list, attribute(source, labels[name]))
	}
	return list
}

func attribute(key, value string) any {
	return map[string]any{"key": key, "value": map[string]any{"stringValue": value}}
}
