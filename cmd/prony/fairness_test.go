package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/dev/tidy"
	"prony.example/internal/generator"
	"prony.example/internal/launch/freeze"
	"prony.example/internal/launch/process"
	"prony.example/internal/service"
	"prony.example/internal/suite"
	"prony.example/internal/trial/lab"
	"prony.example/internal/trial/machine"
	"prony.example/load"
	"prony.example/load/engine/nethttp"
	"prony.example/record"
)

// canonical returns the services that are compared by default.
func canonical(t *testing.T, root string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "suites", "canonical.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	of, err := suite.Read("canonical.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	return of.Targets
}

// lightly lets Rust compile fast, because responses do not depend on optimization.
func lightly(t *testing.T) {
	t.Setenv("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
	t.Setenv("CARGO_PROFILE_RELEASE_LTO", "off")
	t.Setenv("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
}

// They keep their contracts under load, and their responses are as in docs/fairness.md.
func TestFairness(t *testing.T) {
	if testing.Short() {
		t.Skip("builds services")
	}
	root, _ := fairnessPage(t)
	lightly(t) // TestFairnessOfAll uses the optimized builds
	for _, name := range canonical(t, root) {
		t.Run(name, func(t *testing.T) {
			testsets.Reads(t, filepath.Join(root, "services", name))
			t.Parallel()
			isFair(t, bare{apart{dir: filepath.Join(t.TempDir(), "journal")}}, name, false)
		})
	}
}

// All services that can run here do so, in all their builds and protocols. go test runs several in
// parallel, because a build mostly waits for one core or a registry.
func TestFairnessOfAll(t *testing.T) {
	if os.Getenv(testsets.Set) != testsets.Later {
		t.Skip(testsets.Longer + "every service")
	}
	root, page := fairnessPage(t)
	services, err := service.Catalog(root)
	if err != nil {
		t.Error(err)
	}
	var known []string
	for _, s := range services {
		if slices.Contains(known, s.Name) {
			continue // it is another build of the one before
		}
		known = append(known, s.Name)
		t.Run(s.Name, func(t *testing.T) {
			var rows []string
			for line := range strings.Lines(page) {
				if strings.HasPrefix(line, "| "+s.Name) {
					rows = append(rows, line)
				}
			}
			testsets.Long(t, "every service", needs(t, strings.Join(rows, ""), s.Name))
			t.Parallel()
			isFair(t, apart{dir: filepath.Join(t.TempDir(), "journal")}, s.Name, true)
		})
	}
}

// apart is the machine with a journal of its own, so that other labs may run: nothing is measured.
type apart struct {
	machine.World
	dir string
}

func (w apart) Enter() (*process.Journal, []string, error) { return process.OpenJournal(w.dir) }

func (w apart) Share() (func() error, error) { return process.Share(w.dir, "") }

// bare is the machine without further builds of services, such as instrumented ones, because they
// take longer to build than all others.
type bare struct{ apart }

func (w bare) Missing(tools *service.Tools, s *service.Service, of ...service.Target) []string {
	if s.Other != "" {
		return []string{"it is another build, which TestFairnessOfAll has"}
	}
	return w.apart.Missing(tools, s, of...)
}

// isFair verifies and loads the targets of a service, with spoken in every protocol. It skips
// targets that cannot run here.
func isFair(t *testing.T, w lab.World, name string, spoken bool) {
	t.Helper()
	root, page := fairnessPage(t)
	var stderr bytes.Buffer
	a := &app{world: w, stdout: &stderr, stderr: &stderr, rootFlag: checkout(t)}
	var seen []string
	plain := verifyFlags{by: suite.Launchers[0]}
	rows, err := a.fairRows(context.Background(), []string{name}, plain, spoken,
		func(ctx context.Context, t lab.Seen) error {
			seen = append(seen, t.Name)
			return errors.Join(drive(ctx, root, t), queue(ctx, t))
		})
	if len(rows) == 0 && strings.Contains(stderr.String(), "skipped") {
		t.Skip(stderr.String())
	}
	if err != nil || len(rows) == 0 {
		t.Errorf("%d targets, %v\n%s", len(rows), err, &stderr)
	}
	t.Logf("seen: %s", strings.Join(seen, ", "))
	for _, line := range unfair(rows, readFairness(page)) {
		t.Errorf("%s; see prony verify --update docs/fairness.md", line)
	}
}

// fairnessPage returns the page for users, and its checkout.
func fairnessPage(t *testing.T) (root, text string) {
	t.Helper()
	root, err := tidy.Root()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "fairness.md"))
	if err != nil {
		t.Fatal(err)
	}
	return root, string(page)
}

// drive offers a target the first scenario of its contract's suite, 8 concurrent requests for a
// third of a second. Every response is checked and must be correct.
func drive(ctx context.Context, root string, t lab.Seen) error {
	file, to := "canonical.yaml", generator.Prony{}
	switch {
	case t.Speaks != nil:
		file = "protocols.yaml"
	case t.Service.Contracts[0] != "hello":
		file = t.Service.Contracts[0] + ".yaml"
	}
	text, err := os.ReadFile(filepath.Join(root, "suites", file))
	if err != nil {
		return err
	}
	of, err := suite.Read(file, text)
	if err != nil {
		return err
	}
	trial := suite.Trial{Scenario: of.Scenarios[0].Name}
	for _, v := range of.Variants {
		if t.Speaks != nil && nethttp.Schemes[v.Protocol] == t.Speaks.Protocol {
			trial.Variant = v.Name
		}
	}
	scene := of.SceneOf(trial)
	scenario, err := generator.Scenario(scene, t.Mode)
	if err != nil {
		return err
	}
	if t.Speaks != nil {
		speaks := *t.Speaks
		speaks.Streams = scene.Streams
		to.Stack = &speaks
		if err := load.Messages(ctx, speaks, scenario.Requests); err != nil {
			return err
		}
	}
	r, err := to.Offer(ctx, load.Spec{
		Name: "brief", Address: t.System.Addr(), Model: record.Closed,
		Connections: 8,
		Requests:    300, Window: time.Minute, Drain: time.Minute, Timeout: time.Minute,
		Seed:     1,
		Scenario: scenario,
	})
	if err != nil {
		return err
	}
	if r.Answered != 300 || r.Errors.Total() > 0 {
		return fmt.Errorf("under a brief load %d good answers and errors %+v", r.Answered, r.Errors)
	}
	return nil
}

// burst is the number of connections that suites open at once.
const burst = 1000

// queue opens a burst of connections to a stopped target, which accepts none: each must find a
// place in the kernel's queue. Beyond the queue, the kernel drops the attempt.
func queue(ctx context.Context, t lab.Seen) error {
	if t.Speaks != nil {
		return nil // the same servers
	}
	stopped, err := freeze.New(t.System, "")
	if err != nil {
		return err
	}
	if err := stopped.Freeze(); err != nil {
		return err
	}
	dialer := net.Dialer{Timeout: 5 * time.Second}
	for n := range burst {
		conn, err := dialer.DialContext(ctx, "tcp", t.System.Addr().String())
		if err != nil {
			return errors.Join(fmt.Errorf("connection %d to a stopped server: %w", n+1, err),
				stopped.Thaw())
		}
		defer conn.Close() //nolint:errcheck // nothing was sent
	}
	return stopped.Thaw()
}

func fairHeads(bytes int64, kept bool, headers ...string) []service.Head {
	headers = append([]string{"Content-Length", "Content-Type"}, headers...)
	return []service.Head{
		{Request: "GET /hello/{mode}?key=1", HeadBytes: bytes, BodyBytes: 23, Headers: headers,
			Kept: true},
		{Request: "GET /data", HeadBytes: bytes + 6, BodyBytes: 190, Headers: headers[:2],
			Kept: kept},
	}
}

// The table can be read back as it was written.
func TestFairnessTable(t *testing.T) {
	rows := []fairRow{
		newFairRow("a", fairHeads(100, true, "Date", "Server")),
		newFairRow("b", fairHeads(90, true)),
		newFairRow("c", fairHeads(95, false, "Date")),
		newFairRow("d/x", fairHeads(96, true)), newFairRow("d/y", fairHeads(96, true)),
		newFairRow("d/z", fairHeads(97, true)),
	}
	text := fairnessMarkdown(rows)
	const want = `| target | /hello/{mode} | /data | kept | ` +
		`headers beyond Content-Length, Content-Type |
|---|---|---|---|---|
| a | 100+23 | 106+190 | yes | Date (/hello/{mode}), Server (/hello/{mode}) |
| b | 90+23 | 96+190 | yes | none |
| c | 95+23 | 101+190 | closed after /data | Date (/hello/{mode}) |
| d/x,y | 96+23 | 102+190 | yes | none |
| d/z | 97+23 | 103+190 | yes | none |
`
	if text != want {
		t.Errorf("the table is\n%s, want\n%s", text, want)
	}
	page := "# Fairness\n<!-- prony:begin heads -->\n" + text +
		"<!-- prony:end heads -->\n| x | y |\n"
	if got := readFairness(page); !reflect.DeepEqual(got, rows) {
		t.Errorf("read back:\n%+v, want\n%+v", got, rows)
	}
}

func TestUnfair(t *testing.T) {
	page := []fairRow{newFairRow("a", fairHeads(100, true, "Date")),
		newFairRow("elsewhere", fairHeads(1, true))}
	check := func(name string, seen fairRow, want ...string) {
		t.Helper()
		if got := unfair([]fairRow{seen}, page); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	check("equal", newFairRow("a", fairHeads(100, true, "Date")))
	check("new", newFairRow("n", nil), "n: the page has no row of it")
	check("longer head", newFairRow("a", fairHeads(101, true, "Date")),
		"a: /hello/{mode}: 101+23, the page says 100+23",
		"a: /data: 107+190, the page says 106+190")
	check("closes", newFairRow("a", fairHeads(100, false, "Date")),
		"a: kept: closed after /data, the page says yes")
	const beyond = "a: headers beyond Content-Length, Content-Type: "
	check("another header", newFairRow("a", fairHeads(100, true, "Date", "Via")),
		beyond+"Date (/hello/{mode}), Via (/hello/{mode}), the page says Date (/hello/{mode})")
	check("one request less", newFairRow("a", fairHeads(100, true, "Date")[:1]),
		"a: /data: -, the page says 106+190",
		beyond+"Date, the page says Date (/hello/{mode})")
}

// Targets that cannot run here keep their rows; targets that the catalog lost are removed.
func TestUpdateFairness(t *testing.T) {
	page := filepath.Join(t.TempDir(), "fairness.md")
	old := "before\n<!-- prony:begin heads -->\n" + fairnessMarkdown([]fairRow{
		newFairRow("go-nethttp", fairHeads(1, true)), newFairRow("gone", fairHeads(2, true)),
		newFairRow("rust-axum", fairHeads(3, true)),
	}) + "<!-- prony:end heads -->\nafter\n"
	if err := os.WriteFile(page, []byte(old), 0o644); err != nil {
		t.Fatal(err)
	}
	a := &app{world: mock{}, stderr: &bytes.Buffer{}, rootFlag: checkout(t)}
	seen := []fairRow{newFairRow("rust-axum", fairHeads(4, true))}
	if err := a.updateFairness(page, seen); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	has(t, "the page", string(text), "before\n", "| go-nethttp | 1+23 |",
		"| rust-axum | 4+23 |", "\nafter\n")
	if strings.Contains(string(text), "gone") {
		t.Error("a target that is gone kept its row")
	}
}

// unfair returns the differences between new rows and those of the page; none if they agree. It
// does not check rows of the page without a new one, whose target cannot run here.
func unfair(seen, page []fairRow) (out []string) {
	for _, r := range seen {
		i := slices.IndexFunc(page, func(p fairRow) bool { return p.target == r.target })
		if i < 0 {
			out = append(out, r.target+": the page has no row of it")
			continue
		}
		say := func(what, got, want string) {
			if got != want {
				out = append(out, fmt.Sprintf("%s: %s: %s, the page says %s", r.target, what, got,
					want))
			}
		}
		table := fairTable([]fairRow{r, page[i]})
		header, got, want := table[0], table[1], table[2]
		for j := 1; j < len(got); j++ {
			say(header[j], got[j], want[j])
		}
	}
	return out
}
