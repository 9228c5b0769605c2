package report

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

	"prony.example/internal/dev/testsets"
)

// shots names the folder for pictures of the page that a person can check; if unset, there are
// none.
const shots = "PRONY_SHOTS"

// browserPatience bounds the complete test; a browser that hangs must not block the suite.
const browserPatience = 2 * time.Minute

// TestPageInBrowser opens the reports like a reader: on a phone and on a desk, in both themes, by
// keyboard, without scripts, and on paper.
func TestPageInBrowser(t *testing.T) {
	testsets.Whole(t, "a page in a browser")
	if testing.Short() {
		t.Skip("a browser takes seconds: not in -short")
	}
	exe := browser()
	if exe == "" {
		t.Skip("no chromium or chrome on PATH: install one to test the page")
	}
	dir := t.TempDir()
	save := func(name, html string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(html), 0o644); err != nil {
			t.Fatal(err)
		}
		return "file://" + file
	}
	records := rich()
	run := save("report.html", page(t, records,
		HTMLOptions{Samples: samplesOf(records), Host: graded()}))
	floor := save("aa.html", page(t, itself(6), HTMLOptions{}))
	against := save("compare.html", comparePage(t))
	absurd := slices.Clone(rich()) // up to what a record may hold
	for i := range absurd {
		absurd[i].HostBefore.StealShare, absurd[i].Loads = 3.9e18, slices.Clone(absurd[i].Loads)
		for j := range absurd[i].Loads {
			l := &absurd[i].Loads[j]
			l.ThroughputPerS, l.ResponseTime.MaxNs = 3.9e18, 3.9e18
		}
	}
	beyond := save("absurd.html", page(t, absurd, HTMLOptions{Samples: samplesOf(absurd)}))
	ctx, cancel := context.WithTimeout(t.Context(), browserPatience)
	defer cancel()
	ctx, cancel = chromedp.NewExecAllocator(ctx, browserFlags(t, exe)...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", exe, err)
	}
	t.Run("phone", func(t *testing.T) { visit(t, ctx, run, 390, "dark") })
	t.Run("desk", func(t *testing.T) { visit(t, ctx, run, 1280, "light") })
	t.Run("keys", func(t *testing.T) { byKeyboard(t, ctx, run) })
	t.Run("over time", func(t *testing.T) { overTime(t, ctx, run) })
	t.Run("no scripts", func(t *testing.T) { withoutScripts(t, ctx, run) })
	t.Run("print", func(t *testing.T) { onPaper(t, ctx, run) })
	t.Run("names", func(t *testing.T) {
		haveNames(t, ctx, run)
		haveNames(t, ctx, against)
	})
	t.Run("noise floor", func(t *testing.T) { marks(t, ctx, floor, ".forest .center", 8) })
	t.Run("absurd numbers", func(t *testing.T) {
		do(t, open(t, ctx, beyond, 1280, "light"), drawAll, settle)
	})
	t.Run("comparison", func(t *testing.T) { visitComparison(t, ctx, against) })
}

func browser() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if exe, err := exec.LookPath(name); err == nil {
			return exe
		}
	}
	return ""
}

func browserFlags(t *testing.T, exe string) []chromedp.ExecAllocatorOption {
	return []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(exe), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.NoFirstRun, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-dev-shm-usage", true),
	}
}

// watch collects errors of a page: messages, exceptions and network requests.
type watch struct {
	sync.Mutex
	page  string
	wrong []string
}

func (w *watch) event(ev any) {
	w.Lock()
	defer w.Unlock()
	switch e := ev.(type) {
	case *runtime.EventConsoleAPICalled:
		w.wrong = append(w.wrong, fmt.Sprintf("console.%s was called", e.Type))
	case *runtime.EventExceptionThrown:
		w.wrong = append(w.wrong, "exception: "+e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		w.wrong = append(w.wrong, "log: "+e.Entry.Text)
	case *network.EventRequestWillBeSent:
		if e.Request.URL != w.page {
			w.wrong = append(w.wrong, "request: "+e.Request.URL)
		}
	}
}

func (w *watch) problems() []string {
	w.Lock()
	defer w.Unlock()
	return w.wrong
}

// open opens a page in its own tab. Its errors fail the test at its end.
func open(t *testing.T, browser context.Context, url string, width int64,
	scheme string) context.Context {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	w := &watch{page: url}
	t.Cleanup(func() {
		for _, problem := range w.problems() {
			t.Error(problem)
		}
		cancel()
	})
	if err := chromedp.Listen(ctx, w.event); err != nil {
		t.Fatal(err)
	}
	call(t, ctx, network.Enable, network.EnableParams{})
	call(t, ctx, log.Enable, cdp.Empty{})
	call(t, ctx, runtime.Enable, cdp.Empty{})
	scale := 1.0
	if width < 600 {
		scale = 2 // as telephones have, where a canvas must be drawn finer than its box
	}
	call(t, ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: 900, DeviceScaleFactor: scale, Mobile: width < 600,
	})
	call(t, ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	do(t, ctx, chromedp.Navigate(url), chromedp.WaitReady(chromedp.CSS("footer")))
	return ctx
}

// drawAll scrolls past every figure, because figures are drawn on demand, and waits for them.
var drawAll = script(`(async () => {
	for (const f of document.querySelectorAll("section.figure")) {
		f.scrollIntoView({ behavior: "instant" });
		await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20)));
	}
	scrollTo({ top: 0, behavior: "instant" });
})()`)

func visit(t *testing.T, browser context.Context, url string, width int64, scheme string) {
	ctx := open(t, browser, url, width, scheme)
	do(t, ctx, drawAll, settle)
	name := fmt.Sprintf("%d-%s", width, scheme)
	shoot(t, ctx, name)
	fits(t, ctx, width)
	// Percentiles, latency against load, a panel over time for each of six targets, two of cost.
	if n := value[float64](t, ctx, `document.querySelectorAll("canvas").length`); n != 10 {
		t.Errorf("%v canvases, wanted 10", n)
	}
	if n := value[float64](t, ctx, blankCanvases); n != 0 {
		t.Errorf("%v canvases are blank", n)
	}
	if n := value[float64](t, ctx, invisible); n != 0 {
		t.Errorf("%v marks of the strips have no size", n)
	}
	// All of the plot's area before the window is shaded, and within it only the parts below lines.
	if got := value[[]float64](t, ctx, shaded); got[0] < 0.95 || got[1] > 0.5 {
		t.Errorf("%.2f of the warm-up is shaded, and %.2f of the window", got[0], got[1])
	}
	hover(t, ctx)
	toggleLine(t, ctx)
	toggleTheme(t, ctx, scheme)
	openTrial(t, ctx)
	do(t, ctx, script(`document.querySelectorAll("details.data, details.more").forEach(
		(d) => { d.open = true; }), 0`), settle)
	shoot(t, ctx, name+"-open")
	fits(t, ctx, width)
	saves(t, ctx)
	do(t, ctx, script(`localStorage.clear()`)) // the next visit is another reader's
}

// saves takes the picture of the ranking that its button offers.
func saves(t *testing.T, ctx context.Context) {
	t.Helper()
	got := value[string](t, ctx, `(() => {
		const offered = [];
		const make = URL.createObjectURL;
		URL.createObjectURL = (b) => {
			offered.push(b.type + " " + (b.size > 2000));
			return make(b);
		};
		HTMLAnchorElement.prototype.click = () => {};
		document.querySelector("#ranking-1 .tools button").click();
		return offered.join();
	})()`)
	if got != "image/svg+xml true" {
		t.Errorf("the ranking is saved as %q", got)
	}
}

// fits checks that the page is no wider than the screen.
func fits(t *testing.T, ctx context.Context, width int64) {
	t.Helper()
	if n := value[float64](t, ctx, `document.documentElement.scrollWidth`); n > float64(width) {
		t.Errorf("the page is %v px wide on a screen of %d", n, width)
	}
}

// invisible counts drawn marks of the ranking that a reader cannot see.
const invisible = `[...document.querySelectorAll(".ranking .center, .ranking .trial-dot")]
	.filter((c) => !(c.getBoundingClientRect().width > 2)).length`

// pixels reads a canvas through a copy, because frequent reads of a canvas cause warnings.
const pixels = `const pixels = (c) => {
	const copy = document.createElement("canvas");
	[copy.width, copy.height] = [c.width, c.height];
	const context = copy.getContext("2d", { willReadFrequently: true });
	context.drawImage(c, 0, 0);
	return new Uint32Array(context.getImageData(0, 0, c.width, c.height).data.buffer);
};`

// shaded returns the inked shares of the warm-up (8 of 18 s, less a little on either side) and of
// the window, in the panel of throughput.
const shaded = `(() => { ` + pixels + `
	const canvas = document.querySelector(".series canvas");
	const over = document.querySelector(".series .u-over").getBoundingClientRect();
	const box = canvas.getBoundingClientRect();
	const scale = canvas.width / box.width;
	const p = pixels(canvas);
	const share = (from, to) => {
		let ink = 0, all = 0;
		for (let y = over.y - box.y + 2; y < over.bottom - box.y - 2; y++) {
			const left = over.x - box.x;
			for (let x = left + from * over.width; x < left + to * over.width; x++) {
				ink += p[Math.round(y * scale) * canvas.width + Math.round(x * scale)] !== 0;
				all++;
			}
		}
		return ink / all;
	};
	return [share(0.02, 0.43), share(0.46, 0.98)];
})()`

// blankCanvases counts canvases whose pixels are all the same.
const blankCanvases = `(() => { ` + pixels + `
	return [...document.querySelectorAll("canvas")].filter((c) => {
		const p = pixels(c);
		return p.every((x) => x === p[0]);
	}).length;
})()`

// inked counts the drawn pixels of the latency plot.
const inked = `(() => { ` + pixels + `
	return pixels(document.querySelector(".latency canvas")).filter((x) => x !== 0).length;
})()`

// hover points at two plots and checks the values that they show.
func hover(t *testing.T, ctx context.Context) {
	for plot, want := range map[string]string{
		".cost": ".reading", ".latency": ".keys .value",
	} {
		at := value[[]float64](t, ctx, fmt.Sprintf(`(() => {
			const over = document.querySelector("%s .u-over");
			over.scrollIntoView({ block: "center", behavior: "instant" });
			const box = over.getBoundingClientRect();
			return [box.x + box.width / 2, box.y + box.height / 2];
		})()`, plot))
		do(t, ctx, chromedp.MouseEvent(chromedp.MouseMoved, at[0], at[1]), settle)
		said := fmt.Sprintf(`document.querySelector("%s %s").textContent`, plot, want)
		if value[string](t, ctx, said) == "" {
			t.Errorf("%s says nothing of the middle of its plot", plot)
		}
	}
}

// toggleLine hides a line by its key and shows it again.
func toggleLine(t *testing.T, ctx context.Context) {
	const key = `.latency .keys button`
	before := value[float64](t, ctx, inked)
	do(t, ctx, chromedp.Click(chromedp.CSS(key)), settle)
	if pressed(t, ctx, key) != "false" {
		t.Error("the key says that its line is shown after a click")
	}
	after := value[float64](t, ctx, inked)
	if after >= before {
		t.Errorf("hiding a line left %v inked pixels of %v", after, before)
	}
	// The keyboard must have the same effect: the key has the focus from the click.
	do(t, ctx, chromedp.SendKeys(chromedp.CSS(key), " "), settle)
	if again := value[float64](t, ctx, inked); pressed(t, ctx, key) != "true" || again != before {
		t.Errorf("showing it again gave %v inked pixels of %v", again, before)
	}
}

func pressed(t *testing.T, ctx context.Context, key string) string {
	t.Helper()
	return value[string](t, ctx,
		fmt.Sprintf(`document.querySelector(%q).getAttribute("aria-pressed")`, key))
}

func toggleTheme(t *testing.T, ctx context.Context, scheme string) {
	const paper = `getComputedStyle(document.body).backgroundColor`
	before := value[string](t, ctx, paper)
	dark := strings.HasPrefix(before, "rgb(1") // rgb(17, …) against rgb(250, …)
	if dark != (scheme == "dark") {
		t.Errorf("paper is %s in the %s theme", before, scheme)
	}
	do(t, ctx, chromedp.Click(chromedp.CSS("#theme")), settle)
	if after := value[string](t, ctx, paper); after == before {
		t.Error("the theme button changes nothing")
	}
	if n := value[float64](t, ctx, blankCanvases); n != 0 {
		t.Errorf("%v canvases are blank in the other theme", n)
	}
	do(t, ctx, chromedp.Click(chromedp.CSS("#theme")), settle)
	if again := value[string](t, ctx, paper); again != before {
		t.Errorf("paper is %s after two clicks, was %s", again, before)
	}
}

func openTrial(t *testing.T, ctx context.Context) {
	const open = `document.querySelectorAll(".trial").forEach((d, i) => {
		d.open = i < 3 || d.querySelector(".badge").textContent !== "VALID";
	})`
	do(t, ctx, script(open+", 0"), settle)
	const facts = `document.querySelectorAll(".trial[open] .facts").length`
	if n := value[float64](t, ctx, facts); n < 3 {
		t.Errorf("open trials show %v lists of facts", n)
	}
}

// settle waits until the page has painted: uPlot draws in a microtask, the browser in a frame.
var settle = script(
	`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))`)

// script runs JavaScript for its effect, and waits for its promise.
func script(js string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := chromedp.Evaluate[any](js, chromedp.EvalAwaitPromise)(ctx, target)
		return err
	})
}

func do(t *testing.T, ctx context.Context, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

func call[P, R any](t *testing.T, ctx context.Context, c cdp.Command[P, R], params P) {
	t.Helper()
	if _, err := chromedp.Call(ctx, c, params); err != nil {
		t.Fatal(err)
	}
}

// value returns the value of JavaScript.
func value[T any](t *testing.T, ctx context.Context, js string) T {
	t.Helper()
	x, err := chromedp.Run(ctx, chromedp.Evaluate[T](js))
	if err != nil {
		t.Fatalf("%s: %v", js, err)
	}
	return x
}

// shoot takes a picture of the complete page if pictures are requested.
func shoot(t *testing.T, ctx context.Context, name string) {
	dir := os.Getenv(shots)
	if dir == "" {
		return
	}
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		t.Fatal(err)
	}
}
