package site

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"prony.example/internal/dev/testsets"
)

// manyRuns replaces a server with 100,000 runs, of which it has read some when the page opens. It
// records the requests for them.
type manyRuns struct {
	lab
	t       *testing.T
	mu      sync.Mutex
	read    int // runs; fewer than all: it reads
	queries []url.Values
	sent    int // entries
}

const allRuns = 100_000

func (m *manyRuns) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch r.URL.Path {
	case "/api/v1/runs":
		m.list(w, r.URL.Query())
	case "/api/v1/choices":
		fmt.Fprint(w, `{"suites":["canonical"],"targets":["go-nethttp","rust-axum"],
"labels":["branch=main"],"machines":[{"cpuModel":"Xeon","cores":2,"kernel":"6.18","key":"k"},
{"cpuModel":"Epyc","cores":8,"kernel":"6.18","key":"other"}]}`)
	case "/api/v1/trend":
		fmt.Fprint(w, `{"runs":200,"alpha":0.05,"notes":[],"series":[]}`)
	default:
		m.lab.ServeHTTP(w, r)
	}
}

// list responds with a page of the index: a text matches three runs, a machine two.
func (m *manyRuns) list(w http.ResponseWriter, q url.Values) {
	m.queries = append(m.queries, q)
	limit, err := strconv.Atoi(q.Get("limit"))
	if err != nil {
		m.t.Errorf("the limit is %q", q.Get("limit"))
	}
	from, _ := strconv.Atoi(q.Get("cursor")) // empty: 0
	total := m.read
	if q.Get("text") != "" {
		total = 3
	} else if q.Get("machine") != "" {
		total = 2
	}
	var page []json.RawMessage
	for i := from; i < min(total, from+limit); i++ {
		page = append(page, json.RawMessage(strings.NewReplacer(`"id":"R"`,
			fmt.Sprintf(`"id":"run-%06d"`, i), "running", "done").Replace(entry)))
	}
	m.sent += len(page)
	answer := map[string]any{"runs": page, "next": "", "total": total, "all": m.read,
		"left": []string{}}
	if next := from + len(page); next < total {
		answer["next"] = strconv.Itoa(next)
	}
	if m.read < allRuns {
		answer["reading"] = map[string]int{"read": m.read, "total": allRuns}
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		m.t.Error(err)
	}
}

// last returns the last request for runs, and the number of entries sent until now.
func (m *manyRuns) last() (url.Values, int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.queries[len(m.queries)-1], m.sent
}

// TestManyRuns opens the list of a server with 100,000 runs in a browser: it shows how many are
// read, the server filters, and no page loads more than a small part of the list.
func TestManyRuns(t *testing.T) {
	testsets.Whole(t, "a site of many runs")
	testsets.Live(t)
	ctx := browser(t)
	m := &manyRuns{t: t, lab: lab{t: t}, read: 1200}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	b := open(t, ctx, server.URL+"/#/runs", 1280, "light")
	b.has("Prony has read 1200 of 100000 runs.")
	b.fits("server-reading")
	m.mu.Lock()
	m.read = allRuns
	m.mu.Unlock()
	b.has("100000 runs, the newest first")
	b.wait(`!document.body.innerText.includes("Prony has read")`)
	b.do(chromedp.SendKeys(chromedp.CSS(".filters input[type=search]"), "xeon"))
	b.has("3 of 100000 runs")
	if q, _ := m.last(); q.Get("text") != "xeon" {
		t.Errorf("after typing, the page requests %v", q)
	}
	b.do(chromedp.Navigate(server.URL + "/#/runs?machine=other"))
	b.wait(`document.querySelectorAll(".card").length === 2`)
	if q, _ := m.last(); q.Get("machine") != "other" || q.Get("text") != "" {
		t.Errorf("for a machine, the page requests %v", q)
	}
	b.wait(`[...document.querySelectorAll("option")].some((o) => o.text.includes("Epyc"))`)
	b.do(chromedp.Navigate(server.URL + "/#/compare"))
	b.has("Choose two runs")
	b.wait(`[...document.querySelectorAll("option")].some((o) => o.value === "run-000150")`)
	b.do(chromedp.Navigate(server.URL + "/#/history"))
	b.has("200 runs")
	if _, sent := m.last(); sent > 1500 {
		t.Errorf("the pages loaded %d entries", sent)
	}
}
