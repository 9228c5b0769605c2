package report

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"prony.example/internal/dev/testsets"
)

// TestFlamesInBrowser uses the flame graphs like a reader.
func TestFlamesInBrowser(t *testing.T) {
	testsets.Once(t, "flame graphs in a browser", testsets.Needs{})
	if testing.Short() {
		t.Skip("a browser takes seconds: not in -short")
	}
	exe := browser()
	if exe == "" {
		t.Skip("no chromium or chrome on PATH: install one to test the page")
	}
	files, records := profiled(t)
	html := page(t, records, HTMLOptions{Profiles: ReadProfiles(files, pointers(records))})
	file := filepath.Join(t.TempDir(), "flames.html")
	if err := os.WriteFile(file, []byte(html), 0o644); err != nil {
		t.Fatal(err)
	}
	url := "file://" + file
	ctx, cancel := context.WithTimeout(t.Context(), browserPatience)
	defer cancel()
	ctx, cancel = chromedp.NewExecAllocator(ctx, browserFlags(t, exe)...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", exe, err)
	}
	t.Run("mouse", func(t *testing.T) { flameByMouse(t, ctx, url) })
	t.Run("keys", func(t *testing.T) { flameByKeys(t, ctx, url) })
	t.Run("search", func(t *testing.T) { flameSearch(t, ctx, url) })
	t.Run("difference", func(t *testing.T) { flameDifference(t, ctx, url) })
	t.Run("deep", func(t *testing.T) { flameDeep(t, ctx, url) })
	t.Run("phone", func(t *testing.T) { flameOnPhone(t, ctx, url) })
	t.Run("no scripts", func(t *testing.T) { flameWithoutScripts(t, ctx, url) })
	t.Run("names", func(t *testing.T) { haveNames(t, ctx, url) })
}

// openFlame opens the page and selects a target and a load.
func openFlame(t *testing.T, browser context.Context, url string, width int64, scheme, target,
	load string) context.Context {
	t.Helper()
	ctx := open(t, browser, url, width, scheme)
	// Figures above are drawn first, so that none of them moves the graph later.
	do(t, ctx, drawAll, settle,
		script(`document.querySelector(".flame").scrollIntoView({ behavior: "instant" })`),
		settle, settle)
	pick(t, ctx, "target", target)
	if load != "" {
		pick(t, ctx, "load", load)
	}
	return ctx
}

// pick selects an option of one of the selects by its text.
func pick(t *testing.T, ctx context.Context, name, text string) {
	t.Helper()
	got := value[string](t, ctx, fmt.Sprintf(`(() => {
		const select = document.querySelector(".flame select.%s");
		const option = [...select.options].find((o) => o.text === %q);
		if (!option) return [...select.options].map((o) => o.text).join("|");
		select.value = option.value;
		select.dispatchEvent(new Event("change"));
		return select.selectedOptions[0].text;
	})()`, name, text))
	if got != text {
		t.Fatalf("%s offers %s, wanted %s", name, got, text)
	}
	do(t, ctx, settle)
}

// spot returns the position on the screen of a share of the width and a row.
func spot(t *testing.T, ctx context.Context, share float64, row int) (x, y float64) {
	t.Helper()
	at := value[[]float64](t, ctx, `(() => {
		const box = document.querySelector(".flame canvas").getBoundingClientRect();
		return [box.x, box.y, box.width];
	})()`)
	return at[0] + share*at[2], at[1] + 20*float64(row) + 10
}

func said(t *testing.T, ctx context.Context, what string) string {
	t.Helper()
	return value[string](t, ctx,
		fmt.Sprintf(`document.querySelector(".flame %s").textContent`, what))
}

// Frames of go-nethttp at half: serve 0 to 0.6 (in it Marshal 0 to 0.2, then parse), gc to 0.85,
// idle to 1.
func flameByMouse(t *testing.T, browser context.Context, url string) {
	ctx := openFlame(t, browser, url, 1280, "light", "go-nethttp", "half")
	shoot(t, ctx, "flame")
	for _, row := range []struct {
		share float64
		row   int
		want  string // the line below and the tip say so
	}{
		{0.5, 0, "all: 100 %, 1.00 s with what it calls; 0 %, 0 itself"},
		{0.3, 1, "net/http.(*conn).serve: 60.0 %, 600 ms with what it calls; 0 %, 0 itself"},
		{0.1, 2, "encoding/json.Marshal: 20.0 %, 200 ms with what it calls; 20.0 %, 200 ms itself"},
		{0.4, 2, "main.parse: 40.0 %, 400 ms with what it calls; 30.0 %, 300 ms itself"},
		{0.7, 2, "runtime.scanobject: 25.0 %, 250 ms with what it calls; 25.0 %, 250 ms itself"},
		{0.9, 1, "runtime.idle: 15.0 %, 150 ms with what it calls; 15.0 %, 150 ms itself"},
		{0.9, 2, ""}, // nothing below it
	} {
		x, y := spot(t, ctx, row.share, row.row)
		do(t, ctx, chromedp.MouseEvent(chromedp.MouseMoved, x, y), settle)
		if got := said(t, ctx, ".reading"); got != row.want {
			t.Errorf("at %v of row %d: %q, wanted %q", row.share, row.row, got, row.want)
		}
		tip := value[string](t, ctx, `(() => { const tip = document.querySelector(".flame .tip");
			return tip.hidden ? "" : [...tip.children].map((e) => e.textContent).join("; ") })()`)
		if strings.Replace(tip, "; ", ": ", 1) != row.want {
			t.Errorf("the tip at %v of row %d: %q", row.share, row.row, tip)
		}
	}
	evilStaysText(t, ctx)
	// A click makes serve as wide as the graph: the middle belongs to parse, which begins at a
	// third.
	x, y := spot(t, ctx, 0.3, 1)
	do(t, ctx, chromedp.MouseClickXY(x, y), settle)
	x, y = spot(t, ctx, 0.9, 2)
	do(t, ctx, chromedp.MouseEvent(chromedp.MouseMoved, x, y), settle)
	if got := said(t, ctx, ".reading"); !strings.HasPrefix(got, "main.parse: 40.0 %") {
		t.Errorf("zoomed, there is %q where parse was wanted", got)
	}
	shoot(t, ctx, "flame-zoomed")
	do(t, ctx, chromedp.Click(chromedp.CSS(".flame .whole")), settle)
	x, y = spot(t, ctx, 0.9, 1)
	do(t, ctx, chromedp.MouseEvent(chromedp.MouseMoved, x, y), settle)
	if got := said(t, ctx, ".reading"); !strings.HasPrefix(got, "runtime.idle") {
		t.Errorf("after the button there is %q, wanted idle", got)
	}
}

// evilStaysText points at the function whose name is markup.
func evilStaysText(t *testing.T, ctx context.Context) {
	t.Helper()
	x, y := spot(t, ctx, 0.22, 3) // in parse, from 0.2 on: below it evil, to 0.3
	do(t, ctx, chromedp.MouseEvent(chromedp.MouseMoved, x, y), settle)
	if got := said(t, ctx, ".tip"); !strings.HasPrefix(got, hostile+"10.0 %, 100 ms") {
		t.Errorf("the hostile name is shown as %q", got)
	}
	markup := value[float64](t, ctx, `document.querySelectorAll(".flame img, main script").length`)
	title := value[string](t, ctx, `document.title`)
	if markup != 0 || strings.Contains(title, "owned") {
		t.Errorf("a frame's name made %v elements; the title is %q", markup, title)
	}
}

func flameByKeys(t *testing.T, browser context.Context, url string) {
	ctx := openFlame(t, browser, url, 1280, "light", "go-nethttp", "half")
	plot := chromedp.CSS(".flame .plot")
	do(t, ctx, script(`document.querySelector(".flame .plot").focus()`), settle)
	for _, row := range []struct{ key, want string }{
		{kb.ArrowDown, "all: "},                     // to begin with
		{kb.ArrowDown, "net/http.(*conn).serve: "},  // its largest
		{kb.ArrowRight, "runtime.gcBgMarkWorker: "}, // beside it
		{kb.ArrowDown, "runtime.scanobject: "},
		{kb.ArrowLeft, "main.parse: "}, // in the same row, of another parent
		{kb.ArrowUp, "net/http.(*conn).serve: "},
		{kb.Enter, "net/http.(*conn).serve: "},
		{kb.ArrowRight, "net/http.(*conn).serve: "}, // nothing is beside it now
		{kb.ArrowDown, "main.parse: "},
		{kb.Home, "all: "},
	} {
		do(t, ctx, chromedp.SendKeys(plot, row.key), settle)
		if got := said(t, ctx, ".reading"); !strings.HasPrefix(got, row.want) {
			t.Errorf("after %q there is %q, wanted %q", row.key, got, row.want)
		}
	}
	const zoomed = `!document.querySelector(".flame .whole").hidden`
	if !value[bool](t, ctx, zoomed) {
		t.Error("Enter did not zoom")
	}
	do(t, ctx, chromedp.SendKeys(plot, kb.Escape), settle)
	if value[bool](t, ctx, zoomed) {
		t.Error("Escape did not go back")
	}
	do(t, ctx, chromedp.SendKeys(plot, kb.Escape), settle)
	if got := said(t, ctx, ".reading"); got != "" {
		t.Errorf("after Escape there is still %q", got)
	}
	if ring := value[string](t, ctx,
		`getComputedStyle(document.activeElement).outlineStyle`); ring != "solid" {
		t.Errorf("the focus is not to be seen: outline %s", ring)
	}
}

// tinted returns the color at a share of the width in a row: red, green, blue. It reads near the
// row's lower edge, which has no text.
func tinted(t *testing.T, ctx context.Context, share float64, row int) [3]float64 {
	t.Helper()
	c := value[[]float64](t, ctx, fmt.Sprintf(`(() => { %s
		const canvas = document.querySelector(".flame canvas");
		const scale = canvas.width / canvas.clientWidth;
		const x = Math.round(%v * canvas.width), y = Math.round((20 * %d + 17) * scale);
		const p = pixels(canvas)[y * canvas.width + x];
		return [p & 255, (p >> 8) & 255, (p >> 16) & 255];
	})()`, pixels, share, row))
	return [3]float64{c[0], c[1], c[2]}
}

// unlike returns the largest difference of two colors' channels.
func unlike(a, b [3]float64) float64 {
	return max(math.Abs(a[0]-b[0]), math.Abs(a[1]-b[1]), math.Abs(a[2]-b[2]))
}

func flameSearch(t *testing.T, browser context.Context, url string) {
	ctx := openFlame(t, browser, url, 1280, "light", "go-nethttp", "half")
	before := tinted(t, ctx, 0.05, 2)
	do(t, ctx, chromedp.SendKeys(chromedp.CSS(".flame input"), "json"), settle)
	// Marshal has 200 of 1000.
	if got := said(t, ctx, ".found"); got != "holds 20.0 %, in 1 frame" {
		t.Errorf("json %s", got)
	}
	shoot(t, ctx, "flame-search")
	if after := tinted(t, ctx, 0.05, 2); unlike(after, [3]float64{0x0b, 0x5c, 0x99}) > 2 {
		t.Errorf("what was found has the color %v, before %v; wanted the accent", after, before)
	}
	// serve and its callees: a match in a stack counts once, 600 of 1000 and not more.
	do(t, ctx, script(`(() => { const i = document.querySelector(".flame input"); i.value = "n";
		i.dispatchEvent(new Event("input")); })()`), settle)
	if got := said(t, ctx, ".found"); !strings.HasPrefix(got, "holds 100 %") {
		t.Errorf("n %s, wanted all: every stack has one", got)
	}
	do(t, ctx, script(`(() => { const i = document.querySelector(".flame input");
		i.value = "absent"; i.dispatchEvent(new Event("input")); })()`), settle)
	if got := said(t, ctx, ".found"); got != "in no frame" {
		t.Errorf("what is not there %s", got)
	}
}

// From half to peak: parse itself 30 to 50 %, the collector 25 to 10 %, idle 15 to 10 %; Marshal
// 20 % both times. Two standard errors of 1000 samples each: of 20 %, 2 x sqrt(2 x 0.2 x 0.8 /
// 1000) = 3.6 points; of 15 and 10 %, 2 x sqrt((0.1275 + 0.09) / 1000) = 2.9 points, so that idle's
// 5 are a change.
func flameDifference(t *testing.T, browser context.Context, url string) {
	ctx := openFlame(t, browser, url, 1280, "light", "go-nethttp", "peak")
	pick(t, ctx, "against", "go-nethttp, at half")
	shoot(t, ctx, "flame-difference")
	want := "Grew itself: main.parse +20.0 points. Shrank: runtime.scanobject −15.0 points, " +
		"runtime.idle −5.00 points."
	if got := said(t, ctx, ".shown"); !strings.HasSuffix(got, want) {
		t.Errorf("it says %q, wanted %q", got, want)
	}
	if !value[bool](t, ctx, `document.querySelector(".flame .single").hidden &&
		!document.querySelector(".flame .difference").hidden`) {
		t.Error("the legend is not that of a difference")
	}
	// Means: serve 0 to 0.7, in it Marshal 0 to 0.2 and parse to 0.7; the collector to 0.875.
	red, blue, grey := tinted(t, ctx, 0.5, 2), tinted(t, ctx, 0.75, 1), tinted(t, ctx, 0.1, 2)
	if red[0] < red[2]+50 || blue[2] < blue[0]+50 || math.Abs(grey[0]-grey[2]) > 12 {
		t.Errorf("what grew is %v, what shrank %v, what is the same %v", red, blue, grey)
	}
	x, y := spot(t, ctx, 0.5, 2)
	do(t, ctx, chromedp.MouseEvent(chromedp.MouseMoved, x, y), settle)
	// 2 x sqrt((0.6 x 0.4 + 0.4 x 0.6) / 1000) = 4.38 points; itself 2 x sqrt((0.25 + 0.21) / 1000)
	// = 4.29.
	const parse = "main.parse: with what it calls: 60.0 % here, 40.0 % there, +20.0 points " +
		"(sampling alone: ± 4.38 points); itself: 50.0 % here, 30.0 % there, +20.0 points " +
		"(sampling alone: ± 4.29 points)"
	if got := said(t, ctx, ".reading"); got != parse {
		t.Errorf("parse reads %q,\nwanted %q", got, parse)
	}
	// The base is removed with a kind or target that does not match it, and can be deselected.
	pick(t, ctx, "against", "nothing")
	if got := said(t, ctx, ".shown"); !strings.Contains(got, "1.00 s in all") {
		t.Errorf("against nothing it says %q", got)
	}
	pick(t, ctx, "against", "rust-axum, at peak")
	if got := said(t, ctx, ".shown"); !strings.Contains(got, "against rust-axum, at peak") {
		t.Errorf("against another target it says %q", got)
	}
	// Another kind has no such base; one without a number of samples has a note.
	pick(t, ctx, "kind", "allocation")
	if got := said(t, ctx, ".shown"); !strings.Contains(got, "allocation, 1000 B in all") {
		t.Errorf("what is allocated says %q", got)
	}
	pick(t, ctx, "against", "go-nethttp, at half")
	const unsure = "No function itself changed. How many samples this rests on is not told."
	if got := said(t, ctx, ".shown"); !strings.HasSuffix(got, unsure) {
		t.Errorf("without numbers of samples it says %q", got)
	}
}

// flameDeep scrolls in a graph of 62 rows and finds its last row.
func flameDeep(t *testing.T, browser context.Context, url string) {
	ctx := openFlame(t, browser, url, 1280, "dark", "java-netty", "")
	shoot(t, ctx, "flame-deep")
	if high := value[float64](t, ctx,
		`document.querySelector(".flame .plot").clientHeight`); high != 560 {
		t.Errorf("the box is %v high, wanted 560", high)
	}
	plot := chromedp.CSS(".flame .plot")
	root := tinted(t, ctx, 0.5, 0)
	do(t, ctx, script(`document.querySelector(".flame .plot").scrollTop = 200`), settle, settle)
	if frame := tinted(t, ctx, 0.5, 0); unlike(frame, root) < 10 {
		t.Errorf("scrolled, the first row is still the root's: %v", frame)
	}
	do(t, ctx, script(`document.querySelector(".flame .plot").focus()`))
	do(t, ctx, chromedp.SendKeys(plot, strings.Repeat(kb.ArrowDown, 63)), settle)
	if got := said(t, ctx, ".reading"); !strings.HasPrefix(got, "com.example.App.hello: 25.0 %") {
		t.Errorf("63 rows down there is %q", got)
	}
	if top := value[float64](t, ctx,
		`document.querySelector(".flame .plot").scrollTop`); top < 600 {
		t.Errorf("it was scrolled to %v only", top)
	}
	if n := value[float64](t, ctx, blankCanvases); n != 0 {
		t.Errorf("%v canvases are blank", n)
	}
}

func flameOnPhone(t *testing.T, browser context.Context, url string) {
	ctx := openFlame(t, browser, url, 390, "dark", "go-nethttp", "half")
	x, y := spot(t, ctx, 0.4, 2)
	do(t, ctx, chromedp.MouseClickXY(x, y), settle)
	shoot(t, ctx, "flame-phone")
	fits(t, ctx, 390)
	if got := said(t, ctx, ".reading"); !strings.HasPrefix(got, "main.parse: 40.0 %") {
		t.Errorf("a tap reads %q", got)
	}
	// A screen with two dots a pixel has a canvas twice as fine.
	if r := value[float64](t, ctx, `(() => { const c = document.querySelector(".flame canvas");
		return c.width / c.clientWidth })()`); math.Abs(r-2) > 0.01 {
		t.Errorf("the canvas has %v dots a pixel, wanted 2", r)
	}
	// The other theme redraws it.
	before := tinted(t, ctx, 0.9, 2)
	do(t, ctx, chromedp.Click(chromedp.CSS("#theme")), settle)
	if after := tinted(t, ctx, 0.9, 2); unlike(after, before) < 30 {
		t.Errorf("in the other theme a frame is %v, was %v", after, before)
	}
	do(t, ctx, script(`localStorage.clear()`))
}

// silence disables a page's scripts, or enables them again.
func silence(t *testing.T, ctx context.Context, on bool) {
	t.Helper()
	call(t, ctx, emulation.SetScriptExecutionDisabled,
		emulation.SetScriptExecutionDisabledParams{Value: on})
}

// flameWithoutScripts checks for the tables, and that no control is without effect.
func flameWithoutScripts(t *testing.T, browser context.Context, url string) {
	ctx, cancel := chromedp.NewContext(browser)
	defer cancel()
	silence(t, ctx, true)
	do(t, ctx, chromedp.Navigate(url), chromedp.WaitReady(chromedp.CSS("footer")))
	silence(t, ctx, false)
	if n := value[float64](t, ctx, `document.querySelectorAll("canvas").length`); n != 0 {
		t.Fatalf("%v canvases: scripts did run", n)
	}
	if n := value[float64](t, ctx, `[...document.querySelectorAll(
		".flame button, .flame select, .flame input, .flame .tip")].filter(
		(e) => e.checkVisibility()).length`); n != 0 {
		t.Errorf("%v controls are shown that nothing stands behind", n)
	}
	rows := value[float64](t, ctx, `document.querySelectorAll(".flame .data tbody tr").length`)
	says := value[string](t, ctx, `document.querySelector(".flame .says").innerText`)
	// go-nethttp has 7 functions at either load and allocates in 2, rust-axum has 6 and java-netty
	// its ten.
	if rows != 34 || !strings.HasPrefix(says, "Functions with the largest own shares: ") {
		t.Errorf("%v rows; it says %q", rows, says)
	}
}
