package report

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// comparePage returns a comparison with a gate.
func comparePage(t *testing.T) string {
	t.Helper()
	c, gate := compared(t)
	var b bytes.Buffer
	if err := Compare(&b, c, HTMLOptions{Gate: gate}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// byKeyboard reaches every plot by its focus and reads a value of each with an arrow.
func byKeyboard(t *testing.T, browser context.Context, url string) {
	ctx := open(t, browser, url, 1280, "light")
	do(t, ctx, drawAll, settle)
	for _, figure := range []string{".latency", ".loads", ".series", ".cost"} {
		do(t, ctx, script(fmt.Sprintf(`document.querySelector("%s .plot").focus()`, figure)),
			settle, settle)
		said := fmt.Sprintf(`document.querySelector("%s .reading").textContent`, figure)
		var all []string
		for range 3 {
			do(t, ctx, chromedp.SendKeys(chromedp.CSS(figure+" .plot"), kb.ArrowRight), settle)
			all = append(all, value[string](t, ctx, said))
		}
		if all[0] == "" || all[0] == all[1] || all[1] == all[2] {
			t.Errorf("%s reads %q on three presses of an arrow", figure, all)
		}
		ring := value[string](t, ctx, `getComputedStyle(document.activeElement).outlineStyle`)
		if ring != "solid" {
			t.Errorf("the focus on %s is not to be seen: outline %s", figure, ring)
		}
		do(t, ctx, chromedp.SendKeys(chromedp.CSS(figure+" .plot"), kb.Escape), settle)
		if left := value[string](t, ctx, said); left != "" {
			t.Errorf("%s still reads %q after Escape", figure, left)
		}
	}
	onLogit(t, ctx)
	// A keyboard reaches every control of the mouse.
	if n := value[float64](t, ctx, `[...document.querySelectorAll(
		"button, a, select, summary, .plot, .box, .command code")].filter(
		(e) => e.tabIndex < 0).length`); n != 0 {
		t.Errorf("%v things that are used cannot be focused", n)
	}
}

// onLogit checks the position of the cursor at p90, the seventh point of the curves. On the axis
// from the median to p99.99 that is ln(0.9/0.1) / ln(0.9999/0.0001) = 2.197/9.210 = 0.239; on an
// axis of nines it would be a quarter.
func onLogit(t *testing.T, ctx context.Context) {
	t.Helper()
	keys := kb.Home + strings.Repeat(kb.ArrowRight, 6)
	do(t, ctx, chromedp.SendKeys(chromedp.CSS(".latency .plot"), keys), settle)
	at := value[float64](t, ctx, `(() => {
		const over = document.querySelector(".latency .u-over").getBoundingClientRect();
		const line = document.querySelector(".latency .u-cursor-x").getBoundingClientRect();
		return (line.x - over.x) / over.width;
	})()`)
	said := value[string](t, ctx, `document.querySelector(".latency .reading").textContent`)
	if at < 0.234 || at > 0.244 || !strings.HasPrefix(said, "p90: rust-axum ") {
		t.Errorf("%q stands at %v of the axis, wanted 0.239", said, at)
	}
}

// withoutScripts checks for the numbers and the strips, and that no control is without effect.
func withoutScripts(t *testing.T, browser context.Context, url string) {
	ctx, cancel := chromedp.NewContext(browser)
	defer cancel()
	call(t, ctx, emulation.SetScriptExecutionDisabled,
		emulation.SetScriptExecutionDisabledParams{Value: true})
	do(t, ctx, chromedp.Navigate(url), chromedp.WaitReady(chromedp.CSS("footer")))
	shoot(t, ctx, "no-scripts")
	call(t, ctx, emulation.SetScriptExecutionDisabled,
		emulation.SetScriptExecutionDisabledParams{Value: false})
	if n := value[float64](t, ctx, invisible); n != 0 {
		t.Errorf("%v marks of the ranking have no size without scripts", n)
	}
	if n := value[float64](t, ctx, `document.querySelectorAll("canvas").length`); n != 0 {
		t.Fatalf("%v canvases: scripts did run", n)
	}
	if n := value[float64](t, ctx, `[...document.querySelectorAll("button, select")].filter(
		(e) => e.checkVisibility()).length`); n != 0 {
		t.Errorf("%v controls are shown that nothing stands behind", n)
	}
	for _, figure := range []string{".latency", ".loads", ".series", ".cost"} {
		words := value[string](t, ctx,
			fmt.Sprintf(`document.querySelector("%s .says").innerText`, figure))
		rows := value[float64](t, ctx,
			fmt.Sprintf(`document.querySelectorAll("%s .data tbody tr").length`, figure))
		if words == "" || rows == 0 {
			t.Errorf("%s says %q in words and has %v rows", figure, words, rows)
		}
	}
}

// onPaper prints to PDF and checks for pages, and that the screen is unchanged afterwards.
func onPaper(t *testing.T, browser context.Context, url string) {
	ctx := open(t, browser, url, 1280, "dark")
	printed, err := chromedp.Call(ctx, cdppage.PrintToPDF, cdppage.PrintToPDFParams{
		PreferCSSPageSize: new(true), PrintBackground: new(true)})
	if err != nil {
		t.Fatal(err)
	}
	pdf, err := base64.StdEncoding.DecodeString(string(printed.Data))
	if err != nil {
		pdf = []byte(printed.Data)
	}
	pages := bytes.Count(pdf, []byte("/Type /Page\n"))
	if !bytes.HasPrefix(pdf, []byte("%PDF")) || pages < 4 {
		t.Errorf("%d bytes, %d pages", len(pdf), pages)
	}
	if dir := os.Getenv(shots); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, "print.pdf"), pdf, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// The plots were drawn for paper without scrolling to them, and the theme was restored.
	if n := value[float64](t, ctx, `document.querySelectorAll("canvas").length`); n != 10 {
		t.Errorf("%v canvases after printing, wanted 10", n)
	}
	after := value[string](t, ctx, `document.documentElement.dataset.theme ?? ""`) +
		value[string](t, ctx, `document.documentElement.className`)
	if after != "" {
		t.Errorf("the page is left %q after printing", after)
	}
}

// haveNames checks the names in the browser's accessibility tree, which screen readers use.
func haveNames(t *testing.T, browser context.Context, url string) {
	ctx := open(t, browser, url, 1280, "light")
	do(t, ctx, script(`document.querySelectorAll("details:not(.trial)").forEach(
		(d) => { d.open = true; }), 0`), drawAll, settle)
	call(t, ctx, accessibility.Enable, cdp.Empty{})
	tree, err := chromedp.Call(ctx, accessibility.GetFullAXTree,
		accessibility.GetFullAXTreeParams{})
	if err != nil {
		t.Fatal(err)
	}
	must := " button link combobox searchbox img image table region navigation DisclosureTriangle "
	seen := map[string]int{}
	for _, n := range tree.Nodes {
		if n.Ignored || n.Role == nil {
			continue
		}
		role := strings.Trim(string(n.Role.Value), `"`)
		if !strings.Contains(must, " "+role+" ") {
			continue
		}
		seen[role]++
		if n.Name == nil || strings.Trim(string(n.Name.Value), `" `) == "" {
			t.Errorf("a %s has no name", role)
		}
	}
	if seen["table"] == 0 || seen["button"] == 0 {
		t.Errorf("the tree has %v", seen)
	}
}

// marks checks for this number of marks of a figure, all of them visible.
func marks(t *testing.T, browser context.Context, url, selector string, want float64) {
	ctx := open(t, browser, url, 1280, "light")
	shoot(t, ctx, "noise-floor")
	got := value[float64](t, ctx, fmt.Sprintf(`[...document.querySelectorAll(%q)].filter(
		(c) => c.getBoundingClientRect().width > 2).length`, selector))
	if got != want {
		t.Errorf("%v of %s are to be seen, wanted %v", got, selector, want)
	}
}

func visitComparison(t *testing.T, browser context.Context, url string) {
	for _, width := range []int64{390, 1280} {
		ctx := open(t, browser, url, width, "dark")
		do(t, ctx, script(`document.querySelectorAll("details").forEach(
			(d) => { d.open = true; }), 0`), settle)
		shoot(t, ctx, fmt.Sprintf("comparison-%d", width))
		fits(t, ctx, width)
		if n := value[float64](t, ctx, `[...document.querySelectorAll(".forest .whisker")].filter(
			(c) => c.getBoundingClientRect().height > 1).length`); n < 5 {
			t.Errorf("%v intervals are to be seen", n)
		}
		// 1 is marked in every row, and the gate's two margins are shaded.
		rows := value[float64](t, ctx, `document.querySelectorAll(".forest tbody tr").length`)
		lines := value[float64](t, ctx, `document.querySelectorAll(".forest .mark").length`)
		shaded := value[float64](t, ctx, `document.querySelectorAll(".forest .shade").length`)
		if rows != lines || shaded != 2 {
			t.Errorf("%v rows, %v marks of 1, %v margins", rows, lines, shaded)
		}
	}
}

// overTime chooses what the panels over time show: p99 is that of an open load unless a reader
// chooses another one, and a single target has all four metrics.
func overTime(t *testing.T, browser context.Context, url string) {
	ctx := open(t, browser, url, 1280, "light")
	do(t, ctx, drawAll, settle)
	choose := func(name, option string) {
		t.Helper()
		do(t, ctx, script(fmt.Sprintf(`(() => {
			const select = document.querySelector(".series select.%s");
			select.value = [...select.options].find((o) => o.text === %q).value;
			select.dispatchEvent(new Event("change"));
		})()`, name, option)), settle)
	}
	check := func(what, load string, panels float64) {
		t.Helper()
		got := value[string](t, ctx, `document.querySelector(".series select.load").value`)
		n := value[float64](t, ctx, `document.querySelectorAll(".series canvas").length`)
		if got != load || n != panels {
			t.Errorf("%s: %v panels at %s, want %v at %s", what, n, got, panels, load)
		}
	}
	check("at first", "peak", 6)
	choose("metric", "p99")
	check("p99", "half", 6)
	choose("metric", "memory")
	check("memory", "peak", 6)
	choose("target", "go-nethttp")
	check("one target", "peak", 4)
	hidden := value[bool](t, ctx,
		`document.querySelector(".series select.metric").closest("label").hidden`)
	if !hidden {
		t.Error("a metric can be chosen though all are shown")
	}
}
