package site

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"prony.example/internal/dev/testsets"
)

// done is a run that has ended, with numbers that are not known, a damaged line and a label.
var done = strings.NewReplacer(`"running"`, `"done","damaged":1`, `"suspect":0},"targets"`,
	`"suspect":0,"unknown":2},"targets"`, `"labels":{}`, `"labels":{"baseline":""}`,
	`"missing":2`, `"missing":0`).Replace(strings.ReplaceAll(entry, "\n", ""))

const points = `"points":[{"run":"R","time":"2026-11-21T03:40:11Z","commit":"c0ffee",
"value":5e6,"lo":null,"hi":null,"n":1}],"changes":[]`

// shower opens a page of a server that has some answers of its own.
type shower func(t *testing.T, hash string, own map[string]string) (*tab, *lab)

// asked waits until the page has sent requests whose addresses contain a text.
func asked(b *tab, n, address string) {
	b.t.Helper()
	b.wait(`performance.getEntriesByType("resource")
		.filter((e) => e.name.includes("` + address + `")).length ` + n)
}

// listed has answers of a server with one run that has ended, one that cannot be read, and a trend.
func listed(series string) map[string]string {
	return map[string]string{
		"GET /api/v1/trend": `{"runs":1,"alpha":0.05,"notes":[],"series":[` + series + `]}`,
		"GET /api/v1/runs": `{"runs":[` + done + `],"next":"","total":1,"all":1,
			"left":[{"id":"torn","why":"torn: its run.json is <b>damaged</b>"}]}`,
		"GET /api/v1/runs/R": done, "PUT /api/v1/runs/R/labels": done}
}

// TestStatesInBrowser opens pages of a server with data and answers that are rare.
func TestStatesInBrowser(t *testing.T) {
	testsets.Whole(t, "pages in a browser")
	ctx := browser(t)
	show := func(t *testing.T, hash string, own map[string]string) (*tab, *lab) {
		l := &lab{t: t, more: make(chan string), own: own}
		server := httptest.NewServer(l)
		t.Cleanup(server.CloseClientConnections)
		return open(t, ctx, server.URL+"/#/"+hash, 1280, "light"), l
	}
	t.Run("lists", func(t *testing.T) { oddLists(t, show) })
	t.Run("one run", func(t *testing.T) { oddRuns(t, show) })
}

// oddLists opens lists that lack runs, and histories with and without stalls.
func oddLists(t *testing.T, show shower) {
	t.Run("runs", func(t *testing.T) {
		b, _ := show(t, "runs", listed(""))
		for _, text := range []string{"2 not known", "1 damaged line", "1 run cannot be read"} {
			b.has(text)
		}
		b.unfold("1 run cannot be read")
		b.has("torn: its run.json is <b>damaged</b>")
		b.fits("server-left")
	})
	t.Run("under way, but not in the list", func(t *testing.T) {
		own := listed("")
		own["GET /api/v1/runs?limit=24"] = said["GET /api/v1/runs"]
		b, _ := show(t, "runs?suite=canonical", own)
		asked(b, "> 0", "/runs?limit=24")
		n := value[float64](b, `new Promise((done) => setTimeout(() => done(performance
			.getEntriesByType("resource").filter((e) => e.name.includes("/trend")).length), 300))`)
		if n > 0 {
			t.Error("histories are read while a run is under way")
		}
	})
	t.Run("histories", func(t *testing.T) {
		const series = `{"scenario":"read","target":"go","configHash":"c","load":"half",` +
			`"model":"open","metric":"p99","unit":"ns",` + points
		b, _ := show(t, "history", listed(series+`},`+series+`,"withoutStalls":true}`))
		b.has("half p99 without stalls")
		b.wait(`document.querySelectorAll(".figure.trend").length === 2`)
		asked(b, "=== 1", "/trend")
	})
}

// oddRuns opens a comparison without a ratio, and runs that the page changes or follows.
func oddRuns(t *testing.T, show shower) {
	t.Run("comparison", func(t *testing.T) {
		own := listed("")
		own["GET /api/v1/compare"] = `{"title":"A and B","mismatches":[],"warnings":[],
			"pairs":[{"a":{"target":"go"},"b":{"target":"go"},"rows":[{"load":"peak","metric":"p99",
			"ratio":null,"outcome":"none","text":"unknown"}]}],"outcome":"pass","checks":[]}`
		b, _ := show(t, "compare?a=R:my%20go&b=R&allowMismatch=1&limit=p99%3D10%25", own)
		b.has("No metric could be compared.")
		b.has("prony gate 'results/R:my go' results/R --max-regression p99=10% --allow-mismatch")
	})
	t.Run("labels", func(t *testing.T) {
		b, l := show(t, "run/R", listed(""))
		b.has("empty removes the label")
		b.do(chromedp.SendKeys(chromedp.CSS(`input[name="name"]`), "branch"),
			chromedp.SendKeys(chromedp.CSS(`input[name="value"]`), "main\r"))
		l.got(`PUT /api/v1/runs/R/labels {"baseline":"","branch":"main"}`)
	})
	t.Run("no events", func(t *testing.T) {
		b, _ := show(t, "run/R", map[string]string{"GET /api/v1/runs/R/events": ""})
		b.wait(`performance.getEntriesByType("resource")
			.filter((e) => e.name.endsWith("/runs/R")).length > 1`) // the run may be over
		asked(b, "> 1", "/events")
	})
	t.Run("nothing chosen", func(t *testing.T) {
		b, _ := show(t, "new", nil)
		b.has("2 trials, 30 s to 1 min 30 s")
		b.do(chromedp.Click(chromedp.CSS(`input[name="targets"][value="go-nethttp"]`)))
		b.has("Choose at least one of the targets.")
		if !value[bool](b, `document.querySelector(".plan .doors .act").disabled`) {
			t.Error("a run without targets can be started")
		}
	})
}
