package report

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/report/runs"
	"prony.example/record"
)

const (
	// axe is where `npm ci` in web/ puts the accessibility engine; without it that part is skipped.
	axe = "../../web/node_modules/axe-core/axe.min.js"
	// cut is what finds content that a page cuts off.
	cut = "../../web/test/cut.js"
	// wholeFrom is the width from which no table of a page needs scrolling.
	wholeFrom = 1280
)

// wide are pages whose comparison scrolls on every screen, because their runs have six loads.
var wide = []string{"ranking", "answer", "flames"}

// TestScreens: on a phone, a desk and a wide screen no page cuts anything off. In light and in
// dark, axe finds nothing serious. The first screen has the answer, and a page of many trials is
// built when it is read.
func TestScreens(t *testing.T) {
	testsets.Once(
		t,
		"reports on screens of all widths",
		testsets.Needs{Files: []string{"web/test"}},
	)
	exe := browser()
	if exe == "" {
		t.Skip("no chromium or chrome on PATH: install one to test the page")
	}
	if _, err := os.Stat(axe); err != nil {
		t.Log("without axe-core: npm ci in web/ brings it")
	}
	pages := screens(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*browserPatience)
	defer cancel()
	ctx, cancel = chromedp.NewExecAllocator(ctx, browserFlags(t, exe)...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", exe, err)
	}
	for name, url := range pages {
		t.Run(name, func(t *testing.T) { everyScreen(t, ctx, name, url) })
	}
	for _, name := range []string{"ranking", "answer"} {
		t.Run("first screen of the "+name, func(t *testing.T) {
			firstScreen(t, ctx, name, pages[name])
		})
	}
	t.Run("many trials", func(t *testing.T) { unfolds(t, ctx) })
}

// screens saves a page of each kind, and returns their addresses.
func screens(t *testing.T) map[string]string {
	t.Helper()
	files, flames := profiled(t)
	starts, slicesOf := inStarts()
	o := fixtureOptions()
	o.Baseline, o.Slices = "old", slicesOf
	answer, answers := answered(t)
	out := map[string]string{}
	for name, html := range map[string]string{
		"two loads": page(t, made(), HTMLOptions{Host: graded()}),
		"ranking":   page(t, rich(), HTMLOptions{Samples: samplesOf(rich()), Host: graded()}),
		"answer": page(t, answer, HTMLOptions{Samples: samplesOf(answer), Host: graded(),
			Answers: answers}),
		"noise floor": page(t, itself(6), HTMLOptions{}),
		"comparison":  comparePage(t),
		"flames": page(t, flames, HTMLOptions{
			Profiles: ReadProfiles(files, pointers(flames))}),
		"starts": pageWith(t, starts, o, HTMLOptions{}),
	} {
		out[name] = saved(t, html)
	}
	return out
}

// answered is a run of two targets with its answer.
func answered(t *testing.T) ([]record.Record, []runs.Answer) {
	t.Helper()
	two := slices.DeleteFunc(slices.Clone(rich()), func(r record.Record) bool {
		return r.Target.Name != "go-nethttp" && r.Target.Name != "java-netty"
	})
	run := &runs.Run{Head: record.Run{Baseline: "go-nethttp"}, Records: pointers(two)}
	study := analyze(two, fixtureOptions())
	return two, run.Answers(&study)
}

func saved(t *testing.T, html string) (url string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(html), 0o644); err != nil {
		t.Fatal(err)
	}
	return "file://" + file
}

// screen sets the size of a screen and its color scheme.
func screen(t *testing.T, ctx context.Context, width, height int64, scheme string) {
	t.Helper()
	call(t, ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 600})
	call(t, ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	do(t, ctx, settle, settle)
}

// everyScreen looks at a page on screens of all widths, as it comes and with all details open.
func everyScreen(t *testing.T, browser context.Context, name, url string) {
	finder, err := os.ReadFile(cut)
	if err != nil {
		t.Fatal(err)
	}
	ctx := open(t, browser, url, 1280, "light")
	do(t, ctx, drawAll, settle)
	for _, width := range []int64{1920, 1280, 390} {
		screen(t, ctx, width, 900, "light")
		shoot(t, ctx, fmt.Sprintf("screen-%s-%d", name, width))
		whole := width >= wholeFrom && !slices.Contains(wide, name)
		for _, found := range value[[]string](t, ctx, fmt.Sprintf("(%s)(%d, %v)", finder, width,
			whole)) {
			t.Errorf("at %d px: %s", width, found)
		}
	}
	do(t, ctx, script(`document.querySelectorAll("details").forEach((d) => { d.open = true; })`),
		settle)
	for _, found := range value[[]string](t, ctx, fmt.Sprintf("(%s)(390, false)", finder)) {
		t.Errorf("at 390 px with all details open: %s", found)
	}
	engine, err := os.ReadFile(axe)
	if err != nil {
		return
	}
	do(t, ctx, script(string(engine)+"; 0"))
	for _, scheme := range []string{"light", "dark"} {
		screen(t, ctx, 1280, 900, scheme)
		found, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](serious,
			chromedp.EvalAwaitPromise))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			t.Errorf("%s: %s", scheme, f)
		}
	}
}

// serious is what axe finds of the two highest impacts.
const serious = `axe.run(document, { preload: false }).then((r) => r.violations
	.filter((v) => ["serious", "critical"].includes(v.impact))
	.map((v) => v.id + ": " + v.nodes.slice(0, 4).map((n) => n.html.slice(0, 200)).join(" | ")))`

// firstScreen: a screen of 1280 × 800 has the answer, its figure down to the axis, and the command
// that repeats the run.
func firstScreen(t *testing.T, browser context.Context, name, url string) {
	ctx := open(t, browser, url, 1280, "light")
	screen(t, ctx, 1280, 800, "light")
	says := map[string]string{"answer": "h1", "ranking": "#ranking-1 .says"}
	for what, selector := range map[string]string{
		"the answer":  says[name],
		"the figure":  "main section:first-child .strip tfoot",
		"the command": "header .command",
	} {
		bottom := value[float64](t, ctx, fmt.Sprintf(`(() => {
			const box = document.querySelector(%q)?.getBoundingClientRect();
			return box && box.height > 0 ? box.bottom : -1;
		})()`, selector))
		if bottom <= 0 || bottom > 800 {
			t.Errorf("%s ends at %v px of 800", what, bottom)
		}
	}
}

// manyNodes bounds the nodes of a page of 1,000 trials with those that its scripts make.
const manyNodes = 2 * mostNodes

// unfolds opens a page of 1,000 trials, whose details are built when they are opened.
func unfolds(t *testing.T, browser context.Context) {
	text, err := thousandPage()
	if err != nil {
		t.Fatal(err)
	}
	url := saved(t, text)
	ctx := open(t, browser, url, 1280, "light")
	nodes := value[float64](t, ctx, `(() => {
		const walker = document.createTreeWalker(document);
		let n = 0;
		while (walker.nextNode()) n++;
		return n;
	})()`)
	t.Logf("%v nodes; ready after %v ms", nodes, value[float64](t, ctx,
		`performance.getEntriesByType("navigation")[0].loadEventEnd`))
	if nodes > manyNodes {
		t.Errorf("%v nodes, want at most %d", nodes, manyNodes)
	}
	const facts = `document.querySelectorAll(".trial .facts").length`
	if n := value[float64](t, ctx, facts); n != 0 {
		t.Errorf("%v lists of facts before a trial is opened", n)
	}
	do(t, ctx, script(`document.querySelector(".trial > summary").click()`), settle, settle)
	if n := value[float64](t, ctx, facts); n < 2*inBatch {
		t.Errorf("an opened batch has %v lists of facts", n)
	}
	do(t, ctx, script(`location.hash = "#trial-777"`), settle, settle)
	const shown = `document.querySelector("#trial-777 .facts").checkVisibility()`
	if !value[bool](t, ctx, shown) {
		t.Error("a link to a trial does not open it")
	}
	do(t, ctx, script(`document.querySelector("details.more").open = true`), settle, settle)
	if n := value[float64](t, ctx,
		`document.querySelectorAll("details.more .strip").length`); n < 5 {
		t.Errorf("the other metrics have %v figures", n)
	}
}
