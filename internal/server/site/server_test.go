package site

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/server/app"
)

// lab replaces prony serve: it responds as the API's description requires, and records the
// requests. The real server has tests of its own.
type lab struct {
	t    *testing.T
	mu   sync.Mutex
	sent []string // METHOD PATH BODY
	more chan string
	own  map[string]string // instead of said, also with the query; empty: no content
}

const entry = `{"id":"R","suite":"canonical","question":"How <b>fast</b>?","state":"running",
"time":"2026-11-21T03:40:11Z","labels":{},"machine":{"cpuModel":"Xeon","cores":2,"kernel":"6.18",
"key":"k"},"blocks":1,"trials":{"planned":3,"valid":1,"suspect":0,"invalid":0,"failed":0,
"missing":2},
"numbers":{"valid":3,"suspect":0},"targets":["go-nethttp"],"ranking":[],"seconds":12}`

const hostile = "<img src=x onerror=alert(1)></script>\u202e"

// said has the responses of the API that do not change.
var said = map[string]string{
	"GET /api/v1/runs": `{"runs":[` + entry + `],"next":"","total":1,"all":1,"left":[]}`,
	"GET /api/v1/choices": `{"suites":["canonical"],"targets":["go-nethttp"],"labels":[],
"machines":[]}`,
	"GET /api/v1/runs/R": entry,
	"GET /api/v1/suites": `{"suites":[{"name":"canonical","file":"","question":"Which?","blocks":4,
"seed":42,"measureS":10,"cpus":1,"memoryBytes":1073741824,"targets":["go-nethttp","rust-axum"],
"scenarios":["read"],"loads":["peak","half"],"launchers":["process","docker"]}]}`,
	"GET /api/v1/suites/canonical": `{"yaml":"name: canonical\n"}`,
	"GET /api/v1/catalog": `{"targets":[{"name":"go-nethttp","service":"go-nethttp","language":"Go",
"framework":"net/http","runtime":"native","mode":"virtual","contracts":["hello"],"missing":[]},
{"name":"rust-axum","service":"rust-axum","language":"Rust","framework":"axum","runtime":"native",
"mode":"reactive","contracts":["hello"],"missing":["cargo is not on PATH"]}]}`,
	"POST /api/v1/plan": `{"trials":[
{"trial":"b1-01-go","target":"go-nethttp","scenario":"read","block":1},
{"trial":"b2-02-go","target":"go-nethttp","scenario":"read","block":2}],
"repeat":"start","leastS":30,"mostS":90,
"notes":["rust-axum is left out"],"command":["prony","run","my suite"],
"problems":[]}`,
	"POST /api/v1/runs":         `{"id":"R"}`,
	"POST /api/v1/runs/R/stop":  `{"id":"R"}`,
	"PUT /api/v1/runs/R/labels": entry,
	"GET /api/v1/host": `{"doctor":{"grade":"doubtful","checks":[{"name":"cores","grade":"doubtful",
"observed":"2","expected":"4","impact":"because","fix":"buy"}]},"docker":"no docker here",
"stack":[],"grafana":"http://127.0.0.1:3000","tools":[{"name":"go","version":"1.26"}],"version":"v1","time":"2026-11-21T03:40:11Z"}`,
}

const hostileJSON = `<img src=x onerror=alert(1)></script>`

func (l *lab) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		l.t.Error(err)
	}
	asked := r.Method + " " + r.URL.Path
	l.mu.Lock()
	if r.Method != http.MethodGet {
		l.sent = append(l.sent, asked+" "+string(body))
		if got := r.Header.Get("Content-Type"); got != "application/json" {
			l.t.Errorf("%s is sent as %q", asked, got)
		}
	}
	l.mu.Unlock()
	h := w.Header()
	h.Set("Content-Security-Policy", app.Policy)
	text, ok := l.own[asked+"?"+r.URL.RawQuery]
	if !ok {
		text, ok = l.own[asked]
	}
	if ok && text == "" {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if !ok {
		text, ok = said[asked]
	}
	if ok {
		h.Set("Content-Type", "application/json")
		fmt.Fprint(w, text)
		return
	}
	switch {
	case asked == "POST /api/v1/check" && strings.Contains(string(body), "bloks"):
		fmt.Fprint(w, `{"problems":["YAML:2: unknown key <b>bloks</b>"]}`)
	case asked == "POST /api/v1/check":
		fmt.Fprint(w, `{"problems":[]}`)
	case asked == "GET /api/v1/runs/R/events":
		l.events(w, r)
	case strings.HasSuffix(asked, "log") || strings.Contains(asked, "/logs/"):
		fmt.Fprint(w, hostile)
	case strings.HasPrefix(r.URL.Path, "/api"):
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"error":"there is no %s"}`, r.URL.Path)
	default:
		name := strings.TrimPrefix(r.URL.Path, "/")
		if name == "" {
			name = "index.html"
		}
		b, err := app.Page(name)
		if err != nil {
			w.WriteHeader(http.StatusNotFound)
		}
		kinds := map[string]string{".html": "text/html", ".js": "text/javascript",
			".css": "text/css"}
		h.Set("Content-Type", kinds[filepath.Ext(name)])
		_, _ = w.Write(b) // the browser may have gone
	}
}

func (l *lab) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	for {
		select {
		case <-r.Context().Done():
			return
		case line, ok := <-l.more:
			if !ok {
				return
			}
			var of struct{ Kind string }
			if err := json.Unmarshal([]byte(line), &of); err != nil {
				l.t.Error(err)
			}
			fmt.Fprintf(w, "event: %s\ndata: %s\n\n", of.Kind, line)
			if err := out.Flush(); err != nil {
				return
			}
		}
	}
}

func (l *lab) got(want string) {
	l.t.Helper()
	has := func() (string, bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		all := strings.Join(l.sent, "\n")
		return all, strings.Contains(all, want)
	}
	all, ok := has()
	for end := time.Now().Add(2 * time.Minute); !ok && time.Now().Before(end); all, ok = has() {
		time.Sleep(20 * time.Millisecond) // a page shows what it does before it has done it
	}
	if !ok {
		l.t.Errorf("it was not sent %s, but\n%s", want, all)
	}
}

// TestServerPagesInBrowser uses the pages that need a server, by hand and with axe.
func TestServerPagesInBrowser(t *testing.T) {
	testsets.Whole(t, "pages in a browser")
	ctx := browser(t)
	l := &lab{t: t, more: make(chan string)}
	server := httptest.NewServer(l)
	defer server.CloseClientConnections()
	url := server.URL + "/"
	t.Run("under way", func(t *testing.T) {
		b := open(t, ctx, url+"#/run/R", 360, "dark")
		for _, line := range []string{
			`{"seq":1,"time":"2026-11-21T03:40:11Z","kind":"begin","estimateMinNs":60000000000,
"estimateMaxNs":120000000000,"trials":[{"trial":"b1-01-go","row":"go","scenario":"read","block":1},
{"trial":"b1-02-rust","row":"rust","scenario":"read","block":1}]}`,
			`{"seq":2,"time":"2026-11-21T03:40:12Z","kind":"log","text":"` + hostileJSON + `"}`,
			`{"seq":3,"time":"2026-11-21T03:40:21Z","kind":"trial","trial":"b1-01-go",
"grade":"VALID","text":"a digest","ended":1,"total":2}`,
			`{"seq":4,"time":"2026-11-21T03:40:22Z","kind":"step","trial":"b1-02-rust",
"step":"measure","load":"peak","expectedNs":10000000000}`,
			`{"seq":5,"time":"2026-11-21T03:40:23Z","kind":"tick","trial":"b1-02-rust",
"ratePerS":93300,"p50Ns":120000,"p99Ns":2500000,"errors":3}`,
		} {
			l.more <- strings.ReplaceAll(line, "\n", "")
		}
		for _, text := range []string{"block 1 of 1, 1 of 2 trials done, 48 s to 1 min 48 s left",
			"measure peak",
			"93.3k/s", "2.50 ms", "3 errors", hostileJSON, "How <b>fast</b>?"} {
			b.has(text)
		}
		b.do(chromedp.Click(chromedp.CSS(`button[aria-expanded="false"]`)))
		b.has("<img src=x")
		if n := value[float64](b, `document.querySelectorAll("main img, main b").length`); n != 0 {
			t.Errorf("%v elements are made of text", n)
		}
		b.fits("server-run")
		b.do(chromedp.Click(chromedp.CSS(".under-way .danger")))
		b.wait(`document.querySelector("dialog").open`)
		b.fits("server-stop")
		b.do(chromedp.SendKeys(chromedp.CSS("dialog input"), "enough"),
			chromedp.Click(chromedp.CSS("dialog .danger")))
		b.has("Stopping")
		l.more <- `{"seq":6,"time":"2026-11-21T03:40:25Z","kind":"end","outcome":"stopped"}`
		l.got(`POST /api/v1/runs/R/stop {"reason":"enough"}`)
	})
	t.Run("in starts", func(t *testing.T) { followsStarts(t, ctx) })
	t.Run("new", func(t *testing.T) { plans(t, open(t, ctx, url+"#/new", 1280, "light"), l) })
	t.Run("yaml", func(t *testing.T) { edits(t, open(t, ctx, url+"#/new", 360, "dark"), l) })
	t.Run("host", func(t *testing.T) {
		b := open(t, ctx, url+"#/host", 360, "dark")
		b.has("no docker here")
		b.has("canonical, 2026-11-21 03:40 UTC")
		b.fits("server-host")
	})
	for hash, has := range map[string]string{"runs": "How <b>fast</b>?",
		"compare": "Choose two runs"} {
		t.Run(hash, func(t *testing.T) {
			b := open(t, ctx, url+"#/"+hash, 1280, "light")
			b.has(has)
			b.fits("server-" + hash)
		})
	}
	t.Run("grafana", func(t *testing.T) {
		inGrafana(t, open(t, ctx, url+"#/run/R", 1280, "light"), url)
	})
}

// inGrafana finds the way from a run to its boards, for which nothing is asked before.
func inGrafana(t *testing.T, b *tab, url string) {
	b.has("In Grafana")
	asked := value[float64](b, `new Promise((done) => setTimeout(() => // it would have by then
		done(performance.getEntriesByName("`+url+`api/v1/host").length), 300))`)
	b.unfold("In Grafana")
	b.has("Cost of watching")
	// From a minute before its start, 03:40:11 UTC, and it goes on.
	at := value[string](b, `document.querySelector('a[href*="/d/prony-red"]').href`)
	if asked != 0 || !strings.HasPrefix(at,
		"http://127.0.0.1:3000/d/prony-red?from=1795232351000&to=") ||
		!strings.HasSuffix(at, "&var-run=R") {
		t.Errorf("Grafana is at %s; before that the host was asked %v times", at, asked)
	}
	b.fits("server-grafana")
}

// followsStarts follows a run in starts: its rounds, and the ratios so far.
func followsStarts(t *testing.T, ctx context.Context) {
	l := &lab{t: t, more: make(chan string)}
	server := httptest.NewServer(l)
	t.Cleanup(server.CloseClientConnections) // after the tab, which reports a stream that breaks
	b := open(t, ctx, server.URL+"/#/run/R", 360, "light")
	send := func(lines ...string) {
		for _, line := range lines {
			l.more <- strings.ReplaceAll(line, "\n", "")
		}
	}
	send(`{"seq":1,"time":"2026-11-21T03:40:11Z","kind":"begin","repeat":"start","trials":[
{"trial":"b1-01-go","row":"go","scenario":"read","block":1},
{"trial":"b1-02-rust","row":"rust","scenario":"read","block":1},
{"trial":"b2-03-go","row":"go","scenario":"read","block":2},
{"trial":"b2-04-rust","row":"rust","scenario":"read","block":2}]}`)
	b.has("Between starts.")
	b.has("start 2")
	ratio := func(center, lo, hi float64, starts int) string {
		return fmt.Sprintf(`{"seq":2,"time":"2026-11-21T03:40:21Z","kind":"ratio","ratio":{
"scenario":"read","target":"rust","baseline":"go","metric":"cpu_per_request","starts":%d,
"center":%v,"lo":%v,"hi":%v}}`, starts, center, lo, hi)
	}
	send(ratio(0.5, 0.25, 1.25, 4), ratio(0.9, 0.85, 0.95, 5),
		`{"seq":4,"time":"2026-11-21T03:40:22Z","kind":"step","trial":"b2-03-go","step":"slices",
"expectedNs":4000000000,"rounds":40}`,
		`{"seq":5,"time":"2026-11-21T03:40:23Z","kind":"tick","trial":"b2-03-go","step":"slices",
"round":12,"rounds":40}`)
	for _, text := range []string{"start 2 of 2, 0 of 4 trials done", "round 12 of 40",
		"all targets in turns: slices", "against go, after 5 starts",
		"CPU per request", "−10.0 %", "−15.0 % to −5.00 %"} {
		b.has(text)
	}
	if all := value[string](b, `document.querySelector("main").innerText`); strings.Contains(all,
		"block") || strings.Contains(all, "4 starts") {
		t.Errorf("a run in starts, after five of them, is called\n%s", all)
	}
	// The interval lies left of the line of no difference, which is in the middle.
	ends := value[[]float64](b, `["x", "width"].map((name) =>
		parseFloat(document.querySelector(".under-way rect.whisker").getAttribute(name)))`)
	if ends[0] < 0 || ends[0]+ends[1] >= 50 {
		t.Errorf("the interval is drawn from %v %%, %v %% wide", ends[0], ends[1])
	}
	b.fits("server-starts")
	b.do(chromedp.Click(chromedp.CSS(".under-way .danger")))
	b.has("The start under way is lost")
	send(`{"seq":6,"time":"2026-11-21T03:40:25Z","kind":"step","trial":"b2-03-go",
"step":"measure"}`)
	b.has("b2-03-go: measure")
}

// unfold clicks on the summary of a folded part.
func (b *tab) unfold(summary string) {
	b.wait(`[...document.querySelectorAll("summary")].some((s) => s.textContent === ` +
		strconv.Quote(summary) + ` && (s.click(), true))`)
}

// edits changes the text of a suite until the server reports no problems, and saves it.
func edits(t *testing.T, b *tab, l *lab) {
	b.has("2 trials, 30 s to 1 min 30 s")
	const text, save = "textarea.yaml", "textarea.yaml ~ p .act"
	off := func() bool { return value[bool](b, `document.querySelector("`+save+`").disabled`) }
	b.unfold("The suite as YAML")
	b.wait(`document.querySelector("` + text + `")?.value === "name: canonical\n"`)
	if !off() {
		t.Error("the saved suite can be saved again")
	}
	b.do(chromedp.SendKeys(chromedp.CSS(text), "bloks: 6"))
	b.has("unknown key <b>bloks</b>")
	b.has("1 problem")
	if !off() {
		t.Error("a suite with a problem can be saved")
	}
	b.fits("server-yaml")
	b.do(chromedp.Click(chromedp.CSS(save + " + .act")))
	b.wait(`document.querySelector("textarea.yaml").value === "name: canonical\n"`)
	b.wait(`!document.querySelector("main").textContent.includes("bloks")`)
	b.do(chromedp.SendKeys(chromedp.CSS(text), "blocks: 6"))
	b.has("No problems.")
	// A browser of tests saves no file, so the link that it would follow is caught.
	got := value[string](b, `new Promise((done) => {
		HTMLAnchorElement.prototype.click = async function () {
			done(this.download + ": " + (await (await new Response(made)).text()));
		};
		let made;
		URL.createObjectURL = (blob) => ((made = blob), "blob:made");
		document.querySelector("`+save+`").click();
	})`)
	if got != "canonical.yaml: name: canonical\nblocks: 6" {
		t.Errorf("it saves %q", got)
	}
	l.got(`POST /api/v1/check {"suite":"canonical","yaml":"name: canonical\nblocks: 6"}`)
}

// plans fills in the form, and starts the planned run.
func plans(t *testing.T, b *tab, l *lab) {
	b.has("2 trials, 30 s to 1 min 30 s")
	b.has("prony run 'my suite'")
	b.has("rust-axum is left out")
	b.has("cargo is not on PATH")
	if !value[bool](b, `document.querySelector('input[value="rust-axum"]').disabled`) {
		t.Error("a target that cannot run can be chosen")
	}
	if value[bool](b, `document.querySelector('input[name="scenarios"]') != null`) {
		t.Error("one scenario is offered to choose from")
	}
	b.has("Starts")
	b.wait(`document.querySelector(".plan .order").textContent.includes("start 2 go-nethttp")`)
	b.do(chromedp.Click(chromedp.CSS(`input[name=loads][value="half"]`)),
		chromedp.SendKeys(chromedp.CSS("select[name=interleave]"), "blocks"),
		chromedp.SendKeys(chromedp.CSS("input[name=blocks]"), "2"),
		chromedp.SendKeys(chromedp.CSS("input[name=labels]"), "branch=main"))
	b.fits("server-new")
	b.wait(`!document.querySelector(".plan .doors .act").disabled`)
	b.do(chromedp.Click(chromedp.CSS(".plan .doors .act")))
	b.wait(`location.hash === "#/run/R"`)
	l.got(`POST /api/v1/runs {"suite":"canonical","loads":["peak"],"blocks":2,` +
		`"interleave":"blocks","labels":{"branch":"main"}}`)
}
