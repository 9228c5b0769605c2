package tsdb

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/telemetry"
)

// page serves one page. It sends to asked at each request if the test receives.
func page(t *testing.T, h http.HandlerFunc) (url string, asked chan bool) {
	asked = make(chan bool)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case asked <- true:
		default:
		}
		h(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, asked
}

func trial(urls ...string) telemetry.Trial {
	t := telemetry.Trial{Run: "r", ID: "b1-07", Target: "spring-jvm/virtual", Variant: "jmx"}
	for _, u := range urls {
		t.Scrape = append(t.Scrape, telemetry.ScrapeTarget{
			URL: u, Service: "spring-jvm", Every: 100 * time.Millisecond,
		})
	}
	return t
}

const jmx = `# HELP jvm_memory_used_bytes Used bytes of a given JVM memory area.
# TYPE jvm_memory_used_bytes gauge
jvm_memory_used_bytes{area="heap"} 1.5E7
jvm_memory_used_bytes{area="nonheap"} NaN
# TYPE jvm_gc_collection_seconds summary
jvm_gc_collection_seconds_count{gc="G1 Young Generation"} 3
jvm_gc_collection_seconds_sum{gc="G1 Young Generation"} 0.017
`

type scraped struct {
	name  string
	page  http.HandlerFunc
	up    float64
	query string
	want  map[string]float64
}

func scrapedPages() []scraped {
	const (
		text = "text/plain; version=0.0.4; charset=utf-8"
		// Everything from a page.
		others  = `{job!="", __name__!~"up|scrape_.*"}`
		metrics = "application/openmetrics-text; version=1.0.0; charset=utf-8"
	)
	say := func(kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			if _, err := w.Write([]byte(body)); err != nil {
				return // the reader has read enough
			}
		}
	}
	return []scraped{
		{"text", say(text, jmx), 1, `sum by (service_name, job, prony_trial, prony_target, ` +
			`prony_variant, area) (jvm_memory_used_bytes{area="heap"})`, map[string]float64{
			`{area="heap", job="spring-jvm", prony_target="spring-jvm/virtual", ` +
				`prony_trial="b1-07", prony_variant="jmx", service_name="spring-jvm"}`: 1.5e7}},
		{"no type", say("", jmx), 1, `sum(jvm_gc_collection_seconds_count)`,
			map[string]float64{`{}`: 3}},
		{"OpenMetrics", say(metrics, "# TYPE a counter\na_total 4\n# EOF\n"), 1, `sum(a_total)`,
			map[string]float64{`{}`: 4}},
		{"samples of a page that is asked for", say(text, jmx), 1, `sum(scrape_samples_scraped)`,
			map[string]float64{`{}`: 4}},
		{"its own labels", say(text, `a{service_name="liar"} 1`+"\n"), 1,
			`count by (service_name, exported_service_name) (a)`, map[string]float64{
				`{exported_service_name="liar", service_name="spring-jvm"}`: 1}},
		{"torn OpenMetrics", say(metrics, "# TYPE a counter\na_total 4\n"), 0, `a_total`, nil},
		{"no metrics", say("text/html", "<html><h1>Whitelabel Error Page</h1></html>"), 0,
			others, nil},
		{"a torn line", say(text, "a 1\nb{c=\"d"), 0, `a`, nil},
		{"an error", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no", http.StatusInternalServerError)
		}, 0, others, nil},
		{"tomorrow", say(text, "a 1 4102444800000\nb 2\n"), 1, `sum({__name__=~"a|b"})`,
			map[string]float64{`{}`: 2}},
		{"soon", func(w http.ResponseWriter, r *http.Request) {
			soon := clock.Wall().Add(2 * time.Minute).UnixMilli()
			say(text, fmt.Sprintf("a 1 %d\nb 2\n", soon))(w, r)
		}, 1, `sum({__name__=~"a|b"})`, map[string]float64{`{}`: 2}},
		{"17 MB", say(text, strings.Repeat("# a comment of sixteen bytes  32\n", 17<<20/32)), 0,
			others, nil},
		{"hangs", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 0,
			others, nil},
	}
}

func TestScrapedPages(t *testing.T) {
	for _, row := range scrapedPages() {
		t.Run(row.name, func(t *testing.T) {
			s := open(t, Options{Now: clock.Wall})
			url, asked := page(t, row.page)
			one := trial(url + "/metrics")
			if row.name == "17 MB" { // reading takes long, and must not end by a timeout
				one.Scrape[0].Every = 2 * time.Second
			}
			if err := s.Scrape(one); err != nil {
				t.Fatal(err)
			}
			<-asked
			s.StopScrape()
			st := s.Stats()
			_, now, _ := s.Bounds()
			answersAt(t, s, `sum(up)`, now, map[string]float64{`{}`: row.up})
			answersAt(t, s, row.query, now, row.want)
			ahead := row.name == "tomorrow" || row.name == "soon"
			if n := st.Dropped[DropFuture]; (n > 0) != ahead {
				t.Errorf("dropped %v", st.Dropped)
			}
		})
	}
}

// A page that redirects the collector counts as missing.
func TestScrapeStays(t *testing.T) {
	s := open(t, Options{Now: clock.Wall})
	other, reached := page(t, func(http.ResponseWriter, *http.Request) {})
	url, asked := page(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other, http.StatusFound)
	})
	if err := s.Scrape(trial(url)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // it has read the first answer
		select {
		case <-asked:
		case <-reached:
			t.Fatal("it was sent elsewhere")
		}
	}
	s.StopScrape()
	_, now, _ := s.Bounds()
	answersAt(t, s, "sum(up)", now, map[string]float64{"{}": 0})
}

// Stopped scraping sends no requests, and the next scraping has its own labels.
func TestScrapeTrialAfterTrial(t *testing.T) {
	s := open(t, Options{Now: clock.Wall})
	s.StopScrape() // nothing to stop
	url, asked := page(t, func(w http.ResponseWriter, _ *http.Request) {
		if _, err := w.Write([]byte("a 1\n")); err != nil {
			return
		}
	})
	one := trial(url, url+"/other?x=1")
	if err := s.Scrape(one); err != nil {
		t.Fatal(err)
	}
	<-asked
	other := trial(url)
	other.ID = "b1-08"
	if err := s.Scrape(other); err != nil { // stops the first
		t.Fatal(err)
	}
	<-asked
	s.StopScrape()
	_, now, _ := s.Bounds()
	answersAt(t, s, `count by (prony_trial) (count by (prony_trial, job) (a))`, now,
		map[string]float64{`{prony_trial="b1-07"}`: 1, `{prony_trial="b1-08"}`: 1})
	if err := s.Scrape(telemetry.Trial{ID: "b1-09"}); err != nil {
		t.Errorf("no pages: %v", err)
	}
	for _, bad := range []string{"", "localhost:80", "ftp://a/b", "http://", "http://a b/",
		"http://localhost:80/metrics", "http://203.0.113.1/metrics",
		"http://169.254.169.254/latest/meta-data/"} {
		if err := s.Scrape(trial(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
