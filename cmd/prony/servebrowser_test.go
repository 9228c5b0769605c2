package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// reader is a user with a browser.
type reader struct {
	*desk
	ctx  context.Context
	root string
}

func (r *reader) do(steps ...chromedp.Action[chromedp.Void]) {
	r.t.Helper()
	if err := chromedp.Do(r.ctx, steps...); err != nil {
		r.t.Fatal(err)
	}
}

// open opens a page of the server.
func (r *reader) open(hash string) {
	r.t.Helper()
	r.do(chromedp.Navigate(r.base+"/"+hash), chromedp.WaitReady(chromedp.CSS("footer")))
}

func eval[T any](r *reader, js string) T {
	r.t.Helper()
	x, err := chromedp.Run(r.ctx, chromedp.Evaluate[T](js))
	if err != nil {
		r.t.Fatalf("%s: %v", js, err)
	}
	return x
}

// until waits for a condition of the page.
func (r *reader) until(js string) {
	r.t.Helper()
	for over := time.Now().Add(2 * time.Minute); !eval[bool](r, js); {
		if time.Now().After(over) {
			r.t.Fatalf("never %s; the page says\n%.2000s", js,
				eval[string](r, `document.body.innerText`))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// sees waits for a text.
func (r *reader) sees(text string) {
	r.t.Helper()
	r.until(`(document.querySelector("main")?.innerText ?? "").includes(` + "`" + text + "`" + `)`)
}

// click presses the button or follows the link with a text.
func (r *reader) click(text string) {
	r.t.Helper()
	find := `[...document.querySelectorAll("main button, main a, dialog button")].filter((e) =>
		e.innerText.trim() === "` + text + `" && !e.disabled && e.offsetParent !== null)`
	r.until(find + `.length > 0`)
	eval[bool](r, find+`[0].click(), true`)
}

// run fills the form in and starts what it plans.
func (r *reader) run(blocks string) (id string) {
	r.t.Helper()
	r.open("#/new")
	r.sees("without builds")
	r.do(chromedp.SendKeys(chromedp.CSS("input[name=blocks]"), blocks))
	r.until(`document.querySelector(".plan code").innerText.includes("--blocks=` + blocks + `")`)
	r.click("Start")
	r.until(`location.hash.startsWith("#/run/")`)
	return strings.TrimPrefix(eval[string](r, "location.hash"), "#/run/")
}

// atBrowser is a reader of a server of a project with a fast and a slow service.
func atBrowser(t *testing.T) *reader {
	t.Helper()
	exe, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium on PATH: install one to test the pages")
	}
	dir := ownFolder(t)
	const text = `targets:
  fast: {command: ./app}
  slow: {command: ./app, env: {SPIN: 300us}}
limits: {cpus: 1, memory: 256MiB}
warmup: {min: 0s, max: 500ms}
blocks: 2
slices: 1s
requests: [{request: GET /}]
loads: [{name: peak, model: closed, connections: 4, measure: 500ms}]
`
	if err := os.WriteFile(filepath.Join(dir, "prony.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, chromedp.ExecPath(exe), chromedp.Headless,
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.UserDataDir(t.TempDir()), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-dev-shm-usage", true))
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	r := &reader{desk: &desk{t: t, dir: filepath.Join(dir, ".prony", "run")}, ctx: ctx, root: dir}
	r.serve("127.0.0.1:0")
	return r
}

// serve begins the server in the project.
func (r *reader) serve(at string) {
	r.t.Helper()
	r.begin(r.root, "serve", "--listen", at)
}

// A user's first steps with a cloned project: they start a run and watch it end, lose the server
// meanwhile, reload, run it again, compare, find the slower service, and stop a run half-way.
func TestLabInBrowser(t *testing.T) {
	testsets.Once(
		t,
		"the lab in a browser",
		testsets.Needs{Files: []string{"internal/server/app/app"}},
	)
	testsets.Measured(t)
	r := atBrowser(t)
	r.open("")
	r.click("Start the first run")
	r.sees("Targets")

	first := r.run("3")
	t.Cleanup(func() { endRun(t, r.dir, first) })
	r.sees("of 6 trials")
	r.until(`/\d(\.\d+)?k?\/s/.test(document.querySelector(".dials")?.innerText ?? "")`)
	eval[bool](r, "window.before = true, location.reload(), true") // during the run
	r.until("!window.before")
	r.sees("of 6 trials")
	address := strings.TrimPrefix(r.base, "http://")
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = r.cmd.Wait() // it was killed
	r.sees("The connection is lost")
	r.serve(address)
	r.until(`!document.querySelector(".under-way")`)
	r.sees("fast")

	// One start disturbed by the browser does not hide which is slower, and two starts follow the
	// fourth, so that a busy browser shows the differences in time.
	second := r.run("6")
	r.sees("of 12 trials")
	r.sees("Results so far")
	r.until(`document.querySelectorAll(".under-way .trend canvas").length === 1`)
	r.until(`document.querySelectorAll(".under-way .keys .key").length === 2`)
	r.sees("Differences so far") // after four starts
	r.until(`!document.querySelector(".under-way")`)
	r.click("Compare with another run")
	r.until(`location.hash.includes("` + second + `")`)
	r.until(`document.querySelector("main select")?.value === "` + first + `"`)
	r.do(chromedp.Click(chromedp.CSS("#theme"))) // to dark
	r.click("Open the comparison")
	r.until(`document.body?.innerText.includes("B against A") ?? false`)
	r.until(`document.documentElement.dataset.theme === "dark"`)
	r.do(chromedp.Click(chromedp.CSS("#home")))
	r.until(`location.hash === "#/runs"`)
	r.open("#/compare?a=" + second + ":fast&b=" + second + ":slow")
	r.sees("slower")
	r.do(chromedp.SendKeys(chromedp.CSS(`input[placeholder^="5%"]`), "5%"+kb.Enter))
	r.sees("The gate's answer")
	r.sees("prony gate results/" + second + ":fast")
	r.until(`document.querySelector("[aria-label^=The] .badge")?.innerText === "fail"`)

	third := r.run("30")
	t.Cleanup(func() { endRun(t, r.dir, third) })
	// Both trials of a start at once. A busy browser may show later starts only.
	r.until(`/[2468] of 60 trials/.test(document.querySelector("main")?.innerText)`)
	r.do(chromedp.Click(chromedp.CSS(".under-way .danger")))
	r.do(chromedp.SendKeys(chromedp.CSS("dialog input"), "that will do"))
	r.do(chromedp.Click(chromedp.CSS("dialog .danger")))
	r.until(`!document.querySelector(".under-way")`)
	head, records, _, err := record.Read(filepath.Join(r.dir, third))
	if err != nil || len(records) == 0 || !strings.Contains(strings.Join(head.Notes, " "),
		"that will do") {
		t.Errorf("%d records, notes %q, %v", len(records), head.Notes, err)
	}

	r.comparesAndDeletes(first, second)
}

// comparesAndDeletes compares runs of different configurations, and deletes the first one.
func (r *reader) comparesAndDeletes(first, second string) {
	t := r.t
	t.Helper()
	exchange(t, filepath.Join(r.dir, first, "trials.ndjson"), `"connections":4`, `"connections":5`)
	r.open("#/compare?a=" + first + "&b=" + second)
	r.sees("measured with different configurations")
	r.click("Compare anyway")
	r.sees("A difference between them may be one of the method")
	r.sees("Open the comparison")

	r.open("#/run/" + first)
	r.click("Delete this run …")
	r.click("Keep the run")
	r.click("Delete this run …")
	r.click("Delete the run")
	r.until(`location.hash === "#/runs"`)
	if _, err := os.Stat(filepath.Join(r.dir, first)); !os.IsNotExist(err) {
		t.Errorf("the run is still there: %v", err)
	}
}
