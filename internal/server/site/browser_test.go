package site

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/report/runs"
)

const (
	shots = "PRONY_SHOTS" // where pictures go for a person to look at; unset, none are taken
	// patience bounds the complete test; a browser that hangs must not block the suite.
	patience = 2 * time.Minute
	// axe is the accessibility engine from `npm ci` in web/; without it that part is skipped.
	axe = "../../../web/node_modules/axe-core/axe.min.js"
	// cut is what finds content that a page cuts off.
	cut = "../../../web/test/cut.js"
)

func browser(t *testing.T) context.Context {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes seconds: not in -short")
	}
	exe := ""
	for _, name := range []string{"google-chrome", "chromium-browser", "chromium"} {
		if found, err := exec.LookPath(name); err == nil {
			exe = found
		}
	}
	if exe == "" {
		t.Skip("no chromium or chrome on PATH: install one to test the site")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, chromedp.ExecPath(exe), chromedp.Headless,
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.UserDataDir(t.TempDir()), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-dev-shm-usage", true))
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", exe, err)
	}
	return ctx
}

// tab is an open page.
type tab struct {
	t      *testing.T
	ctx    context.Context
	width  int64
	scheme string
	mu     sync.Mutex
	wrong  []string
}

// open opens a page in its own tab. Errors of the page (messages, exceptions, requests for other
// files) fail the test at its end.
func open(t *testing.T, browser context.Context, url string, width int64, scheme string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	b := &tab{t: t, ctx: ctx, width: width, scheme: scheme}
	root := url[:strings.LastIndex(strings.Split(url, "#")[0], "/")+1]
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, problem := range b.wrong {
			t.Error(problem)
		}
		cancel()
	})
	err := chromedp.Listen(ctx, func(ev any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := ev.(type) {
		case *runtime.EventConsoleAPICalled:
			b.wrong = append(b.wrong, fmt.Sprintf("console.%s was called", e.Type))
		case *runtime.EventExceptionThrown:
			b.wrong = append(b.wrong, "exception: "+e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			b.wrong = append(b.wrong, "log: "+e.Entry.Text)
		case *network.EventRequestWillBeSent:
			// The icons of the browser's own fields are data.
			if u := e.Request.URL; !strings.HasPrefix(u, root) && !strings.HasPrefix(u, "data:") {
				b.wrong = append(b.wrong, "request: "+u)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	call(b, network.Enable, network.EnableParams{})
	call(b, log.Enable, cdp.Empty{})
	call(b, runtime.Enable, cdp.Empty{})
	b.screen(width, scheme)
	b.do(chromedp.Navigate(url), chromedp.WaitReady(chromedp.CSS("footer")))
	return b
}

func call[P, R any](b *tab, c cdp.Command[P, R], params P) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, c, params); err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// value returns the value of JavaScript, after its promise is resolved.
func value[T any](b *tab, js string) T {
	b.t.Helper()
	x, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", js, err)
	}
	return x
}

// wait waits until JavaScript returns true; the test's patience bounds it.
func (b *tab) wait(js string) {
	b.t.Helper()
	if !value[bool](b, `new Promise((done) => {
		let left = 3000;
		const look = () => (`+js+`) || --left < 0 ? done(left >= 0) : setTimeout(look, 20);
		look();
	})`) {
		b.t.Fatalf("never: %s\n%s", js, value[string](b, "document.body.innerText"))
	}
}

func (b *tab) has(text string) {
	b.t.Helper()
	b.wait(fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// screen sets the width of the screen and its color scheme.
func (b *tab) screen(width int64, scheme string) {
	b.t.Helper()
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: 900, DeviceScaleFactor: 1, Mobile: width < 600})
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	_ = value[float64](b, `new Promise((done) =>
		requestAnimationFrame(() => requestAnimationFrame(() => done(0))))`)
}

// fits checks that the page is no wider than the screen, that nothing is cut off on a phone, a desk
// and a wide screen, and that axe has no serious finding in light and in dark.
func (b *tab) fits(name string) {
	b.t.Helper()
	if n := value[float64](b, `document.documentElement.scrollWidth - innerWidth`); n > 0 {
		b.t.Errorf("%s is %v px wider than the screen", name, n)
	}
	if dir := os.Getenv(shots); dir != "" {
		png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
		if err != nil {
			b.t.Fatal(err)
		}
		save(b.t, filepath.Join(dir, name+".png"), png)
	}
	finder, err := os.ReadFile(cut)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, width := range []int64{1920, 1280, 390} {
		b.screen(width, "light")
		for _, f := range value[[]string](b, fmt.Sprintf("(%s)(%d, false)", finder, width)) {
			b.t.Errorf("%s at %d px: %s", name, width, f)
		}
	}
	script, err := os.ReadFile(axe)
	for _, scheme := range []string{"light", "dark"} {
		if err != nil {
			break
		}
		b.screen(b.width, scheme)
		for _, f := range value[[]string](b, string(script)+`;axe.run(document, {preload: false})
			.then((r) => r.violations
				.filter((v) => ["serious", "critical"].includes(v.impact))
				.map((v) => v.id + ": " + v.nodes.map((n) =>
					n.html.slice(0, 200)).join(" | ")))`) {
			b.t.Errorf("%s, %s: %s", name, scheme, f)
		}
	}
	b.screen(b.width, b.scheme)
}

// TestSiteInBrowser opens a site from the disk, like a reader.
func TestSiteInBrowser(t *testing.T) {
	testsets.Once(
		t,
		"a site in a browser",
		testsets.Needs{Files: []string{"internal/server/app/app", "web/test"}},
	)
	ctx := browser(t)
	s := makeRuns(t, 50)
	run(t, s.Dir(), 60, 0.8)
	to := t.TempDir()
	write(t, s, to)
	list, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(axe); err != nil {
		t.Log("without axe-core: npm ci in web/ brings it")
	}
	url := "file://" + filepath.Join(to, "index.html")
	last := list.Entries[len(list.Entries)-1].ID
	pages := map[string]struct{ hash, has string }{
		"runs":    {"", "51 runs, the newest first"},
		"table":   {"#/runs?view=table", "Show as cards"},
		"run":     {"#/run/" + last, "</script><b>bold</b>"},
		"compare": {"#/compare", "50 comparisons"},
		"history": {"#/history?target=go-nethttp", "go-nethttp"},
	}
	for _, screen := range []struct {
		name   string
		width  int64
		scheme string
	}{{"phone", 360, "dark"}, {"desk", 1280, "light"}} {
		t.Run(screen.name, func(t *testing.T) {
			for name, page := range pages {
				b := open(t, ctx, url+page.hash, screen.width, screen.scheme)
				b.has(page.has)
				if name == "history" {
					b.wait(`document.querySelectorAll("canvas").length > 3`)
				}
				b.fits(screen.name + "-" + name)
			}
		})
	}
	t.Run("filters", func(t *testing.T) { filters(t, ctx, url, last) })
	t.Run("keys", func(t *testing.T) { byKeys(t, ctx, url) })
	t.Run("comparison", func(t *testing.T) { compared(t, ctx, url, list) })
	t.Run("report", func(t *testing.T) {
		b := open(t, ctx, url, 1280, "light")
		b.wait(`document.querySelectorAll(".card").length === 24`)
		b.do(chromedp.Click(chromedp.CSS(`.card a[href$="report.html"]`)),
			chromedp.WaitReady(chromedp.CSS("#conditions")))
		b.has("Made by Prony")
	})
}

// filters checks that filters apply to all runs, not only to the first page, and that the address
// has them.
func filters(t *testing.T, ctx context.Context, url, last string) {
	b := open(t, ctx, url, 1280, "light")
	b.wait(`document.querySelector(".filters input[type=search]")`)
	b.do(chromedp.SendKeys(chromedp.CSS(".filters input[type=search]"), last))
	b.has("1 of 51 runs")
	if got := value[string](b, "location.hash"); got != "#/runs?text="+last {
		t.Errorf("the address is %s", got)
	}
	b.do(chromedp.Navigate(url + "#/runs?verdict=failed"))
	b.has("0 of 51 runs")
	b.do(chromedp.Navigate(url + "#/runs?label=note"))
	b.has("1 of 51 runs")
	if n := value[float64](b, `document.querySelectorAll(".cards b").length`); n != 0 {
		t.Error("a label is markup")
	}
}

// byKeys reaches each page by the keyboard only.
func byKeys(t *testing.T, ctx context.Context, url string) {
	b := open(t, ctx, url, 1280, "light")
	b.wait(`document.querySelector(".card")`)
	b.do(chromedp.KeyEvent("\t"))
	if got := value[string](b, "document.activeElement.className"); got != "skip" {
		t.Errorf("the first stop of Tab is %q, not the way past the bar", got)
	}
	b.do(chromedp.KeyEvent("\r"))
	b.wait(`document.activeElement.id === "main"`)
	b.do(chromedp.Focus(chromedp.CSS(`nav a[href="#/history"]`)), chromedp.KeyEvent("\r"))
	b.wait(`document.querySelector(".plot canvas")`)
	if got := value[string](b, "document.activeElement.id"); got != "main" {
		t.Errorf("on a new page %q has the focus", got)
	}
	b.do(chromedp.Focus(chromedp.CSS(".plot")), chromedp.KeyEvent(kb.ArrowLeft))
	b.wait(`/^2026-/.test(document.querySelector(".reading").textContent)`)
}

// compared goes from a run to its comparison with the previous one.
func compared(t *testing.T, ctx context.Context, url string, list runs.Index) {
	b := open(t, ctx, url+"#/run/"+list.Entries[1].ID, 1280, "light")
	b.has("Compare with another run")
	b.do(chromedp.Click(chromedp.CSS(`.doors a[href^="#/compare"]`)))
	b.has("2 comparisons") // with the run before it, and of the run after it
	before := list.Entries[2].ID
	b.do(chromedp.Click(chromedp.CSS(`.card a[href$="compare-`+before+`.html"]`)),
		chromedp.WaitReady(chromedp.CSS("#pair-1")))
	b.has("B against A")
	b.has(before)
}
