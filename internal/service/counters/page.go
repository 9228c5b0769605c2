package counters

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"prony.example/internal/base/lazyregexp"
)

// pageMost limits a page of metrics, in bytes.
const pageMost = 16 << 20

// page is a counter on a page of metrics.
type page struct {
	url    string
	series sample
	client *http.Client
}

func openPage(keyPath, series string) (*page, error) {
	s, ok := parseName(series)
	u, err := url.Parse(keyPath)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, errors.New("read the counter: metrics must have the form http://HOST:PORT/PATH")
	case !ok:
		return nil, fmt.Errorf("read the counter: series %q is not a name, "+
			"nor one with labels, as "+
			`requests_total{path="/items"}`, series)
	}
	return &page{url: keyPath, series: s, client: &http.Client{Transport: &http.Transport{}}}, nil
}

func (p *page) What() string        { return p.series.name }
func (p *page) Late() time.Duration { return 0 }
func (p *page) Close()              { p.client.CloseIdleConnections() }

// Read implements Counter.
func (p *page) Read(ctx context.Context) (sum float64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Accept", "text/plain;version=0.0.4")
	res, err := p.client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("read the counter %s: %w", p.series.name, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("read the counter %s: %s responded with %s", p.series.name,
			req.URL.Redacted(), res.Status)
	}
	page := &io.LimitedReader{R: res.Body, N: pageMost + 1}
	sum, ok, err := total(page, p.series)
	switch {
	case err != nil:
	case page.N == 0: // the rest of the page may belong to the sum
		err = fmt.Errorf("the page is larger than %d bytes", pageMost)
	case !ok:
		err = errors.New("the page does not have the series")
	}
	if err != nil {
		return 0, fmt.Errorf("read the counter %s of %s: %w", p.series.name, req.URL.Redacted(),
			err)
	}
	return sum, nil
}

// total adds up all samples of a page with the wanted name and labels. Source: Prometheus,
// "Exposition formats", text format 0.0.4.
func total(text io.Reader, want sample) (sum float64, present bool, err error) {
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if !strings.HasPrefix(line, want.name) {
			continue
		}
		s, tail, ok := cutName(line)
		if !ok || !s.has(want) {
			continue
		}
		value, _, _ := strings.Cut(strings.TrimSpace(tail), " ") // a time may follow
		x, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(sum+x) || math.IsInf(sum+x, 0) {
			return 0, false, fmt.Errorf("%q is not a finite number", value)
		}
		sum, present = sum+x, true
	}
	return sum, present, lines.Err()
}

// sample is the name and the labels of a sample.
type sample struct {
	name   string
	labels map[string]string
}

func (s sample) has(want sample) bool {
	for name, value := range want.labels {
		if s.labels[name] != value {
			return false
		}
	}
	return s.name == want.name
}

// metricName is a name of the text format.
var metricName = lazyregexp.New(`^[A-Za-z_:][A-Za-z0-9_:]*$`)

func parseName(text string) (sample, bool) {
	s, tail, ok := cutName(text)
	return s, ok && tail == "" && metricName.MatchString(s.name)
}

// cutName splits a line into a name with labels, and the rest.
func cutName(line string) (s sample, tail string, ok bool) {
	end := strings.IndexAny(line, "{ ")
	if end < 0 {
		return sample{name: line}, "", line != ""
	}
	s, tail = sample{name: line[:end], labels: map[string]string{}}, line[end:]
	if end == 0 || tail[0] == ' ' {
		return s, tail, end > 0
	}
	for tail = tail[1:]; ; {
		tail = strings.TrimLeft(tail, ", ")
		if after, closed := strings.CutPrefix(tail, "}"); closed {
			return s, after, true
		}
		name, after, present := strings.Cut(tail, "=")
		quoted, err := strconv.QuotedPrefix(after)
		if !present || err != nil || !strings.HasPrefix(quoted, `"`) {
			return s, "", false
		}
		value, err := strconv.Unquote(quoted)
		if err != nil {
			return s, "", false
		}
		s.labels[strings.TrimSpace(name)], tail = value, after[len(quoted):]
	}
}
