package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/analysis/table"
	"prony.example/internal/observe/profile"
	"prony.example/record"
)

// find returns the frame at the end of a path of names; nil without one.
func find(f *profile.Frame, path ...string) *profile.Frame {
	for _, name := range path {
		i := slices.IndexFunc(f.Children, func(c *profile.Frame) bool { return c.Name == name })
		if i < 0 {
			return nil
		}
		f = f.Children[i]
	}
	return f
}

func TestReadProfiles(t *testing.T) {
	files, records := profiled(t)
	got := map[string]Profiled{}
	for _, p := range ReadProfiles(files, pointers(records)) {
		got[p.what()] = p
	}
	parse := []string{"http.(*conn).serve", "main.parse"}
	for _, row := range []struct {
		what    string
		path    []string
		value   int64 // ms
		total   int64
		trials  int
		beside  bool
		missing int
	}{
		{"go-nethttp, CPU at half", parse, 400, 1000, 1, true, 0},
		{"go-nethttp, CPU at peak", parse, 600, 1000, 1, true, 0},
		// Two blocks of the comparison are summed: 2 x (400 + 100) of 2 x 1000. The trial outside
		// it, whose serve is not a frame of axum's, is left out.
		{"rust-axum, CPU at peak", []string{"tokio::runtime::run"}, 1000, 2000, 2, false, 0},
		// One file is lost, the other is still read.
		{"java-netty, CPU at peak", []string{"Thread.run"}, 100, 100, 1, true, 1},
		{"node-express, waiting for locks at peak", nil, 0, 0, 0, true, 1},
	} {
		p, ok := got[row.what]
		if !ok {
			t.Errorf("no %s: there are %d", row.what, len(got))
			continue
		}
		if len(p.Missing) != row.missing || p.Beside != row.beside || p.Trials != row.trials {
			t.Errorf("%s: of %d trials, beside %v, missing %q", row.what, p.Trials, p.Beside,
				p.Missing)
		}
		if (p.Flame == nil) != (row.total == 0) {
			t.Errorf("%s: flame %v", row.what, p.Flame)
		}
		if p.Flame == nil {
			continue
		}
		f := find(p.Flame, row.path...)
		if f == nil || f.Value != row.value*1e6 || p.Flame.Value != row.total*1e6 ||
			p.Samples != row.total || p.Unit != profile.Nanoseconds {
			t.Errorf("%s: %+v of %d %s, %d samples; wanted %d of %d ms", row.what, f,
				p.Flame.Value, p.Unit, p.Samples, row.value, row.total)
		}
	}
	if len(got) != 7 {
		t.Errorf("%d profiles, wanted 7", len(got))
	}
}

// TestProfileFilesAreTheRunsOwn checks that a forged record leads to no other file, and that a
// broken file only affects its own profile.
func TestProfileFilesAreTheRunsOwn(t *testing.T) {
	dir := t.TempDir()
	whole := folded(t, profile.CPU, "pprof of Go", "main.main 5")
	for name, data := range map[string][]byte{"secret": whole, "run/profiles/good": whole,
		"run/profiles/broken": []byte("no profile"),
		"run/profiles/empty":  folded(t, profile.CPU, "pprof of Go")} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755),
			os.WriteFile(file, data, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	files := os.DirFS(filepath.Join(dir, "run"))
	for file, want := range map[string]string{
		"../secret": "invalid argument", filepath.Join(dir, "secret"): "invalid argument",
		"profiles/lost": "no such file", "profiles/broken": "profiles/broken",
		"profiles/empty": "no samples", "profiles/good": "",
	} {
		r := record.Record{Scenario: "s", Profiles: []record.Profile{{Kind: "cpu", Load: "l",
			File: file}}}
		p := ReadProfiles(files, []*record.Record{&r})
		missing := strings.Join(p[0].Missing, "; ")
		if (p[0].Flame != nil) != (want == "") || !strings.Contains(missing, want) {
			t.Errorf("%s: %+v, wanted %q", file, p, want)
		}
	}
}

// broad returns a tree of n functions of 1, 2, 3 … ms.
func broad(n int) *profile.Frame {
	root := &profile.Frame{Name: "all"}
	for i := range n {
		v := int64(i+1) * 1e6
		root.Value += v
		root.Children = append(root.Children, &profile.Frame{Name: fmt.Sprintf("f%04d", i),
			Value: v, Self: v})
	}
	return root
}

func TestPrune(t *testing.T) {
	for _, row := range []struct {
		tree  *profile.Frame
		least int64
		want  string
	}{
		{broad(4), 1e6, "f0000=1 f0001=2 f0002=3 f0003=4"},
		{broad(4), 3e6, "f0002=3 f0003=4 (small)=3"}, // 1 + 2
		{broad(4), 5e6, "(small)=10"},                // 1 + 2 + 3 + 4
		// Merged frames are merged again: 1 + 2 and the previous 5.
		{&profile.Frame{Name: "all", Value: 15e6, Children: append(broad(4).Children,
			&profile.Frame{Name: profile.Small, Value: 5e6, Self: 5e6})}, 3e6,
			"f0002=3 f0003=4 (small)=8"},
	} {
		var got []string
		for _, c := range prune(row.tree, row.least).Children {
			got = append(got, fmt.Sprintf("%s=%d", c.Name, c.Value/1e6))
		}
		if s := strings.Join(got, " "); s != row.want {
			t.Errorf("pruned at %d: %s, wanted %s", row.least, s, row.want)
		}
	}
}

// TestFlamesFit checks that all profiles fit, that the sums stay, and that the page names the limit
// of merged frames.
func TestFlamesFit(t *testing.T) {
	scenarios := []*table.Scenario{{Name: "s", Loads: []table.LoadInfo{{Name: "l"}}}}
	profiles := []Profiled{{Scenario: "s", Target: "broad", Load: "l", Kind: "cpu",
		Flame: broad(900)}, {Scenario: "s", Target: "narrow", Load: "l", Kind: "cpu",
		Flame: broad(3)}}
	for _, row := range []struct {
		most   int
		pruned bool
	}{{flameBytes, false}, {8_000, true}, {2_000, true}} {
		f := flamesOf(scenarios, profiles, row.most)
		block, err := json.Marshal(f)
		if err != nil || len(block) > row.most {
			t.Errorf("%d bytes, %v; there is room for %d", len(block), err, row.most)
		}
		if (f.Least > pruneFrom) != row.pruned || len(f.Profiles) != 2 {
			t.Errorf("with %d bytes the least frame is %v, of %d profiles", row.most, f.Least,
				len(f.Profiles))
		}
		// 900 x 901 / 2 ms and 1 + 2 + 3 ms; no frame of the small profile is near the limit.
		for i, want := range []int64{405_450e6, 6e6} {
			frames := f.Profiles[i].Frames
			var sum int64
			for k := 3; k < len(frames); k += 3 {
				sum += frames[k+1]
			}
			if sum != want || frames[1] != want || frames[2] != int64(len(frames)/3-1) {
				t.Errorf("%s: root %d, children %d, wanted %d", f.Profiles[i].Target, frames[1],
					sum, want)
			}
		}
		if n := len(f.Profiles[1].Frames); n != 4*3 {
			t.Errorf("of four frames of a small profile %d numbers are left", n)
		}
	}
}

// TestFlamesFillTheRoom checks that profiles are pruned no further than the room for them requires.
func TestFlamesFillTheRoom(t *testing.T) {
	scenarios := []*table.Scenario{{Name: "s", Loads: []table.LoadInfo{{Name: "l"}}}}
	profiles := []Profiled{{Scenario: "s", Target: "a", Load: "l", Kind: "cpu", Flame: broad(99)}}
	size := func(most int) int {
		block, err := json.Marshal(flamesOf(scenarios, profiles, most))
		if err != nil {
			t.Fatal(err)
		}
		return len(block)
	}
	some := size(2_000)
	if exact, less := size(some), size(some-1); exact != some || less >= some {
		t.Errorf("%d bytes fit into as many as %d, and into one byte less as %d", some, exact, less)
	}
	// If the roots alone need more, they stay.
	if roots := size(1); roots != size(0) || roots < 2 {
		t.Errorf("without room there are %d bytes", roots)
	}
}

// TestFlamesKeepSelf checks that a frame's own value on the page is its value without its children.
func TestFlamesKeepSelf(t *testing.T) {
	files, records := profiled(t)
	var check func(*profile.Frame) int
	check = func(f *profile.Frame) int {
		left, n := f.Value, 1
		for _, c := range f.Children {
			left -= c.Value
			n += check(c)
		}
		if left != f.Self {
			t.Errorf("%s holds %d itself, its children leave %d", f.Name, f.Self, left)
		}
		return n
	}
	frames := 0
	for _, p := range ReadProfiles(files, pointers(records)) {
		if p.Flame != nil {
			frames += check(p.Flame)
		}
	}
	if frames < 70 {
		t.Errorf("%d frames were looked at", frames)
	}
}

// TestFlamesOnThePage checks the parts that need no scripts, and the order of the page's profiles.
func TestFlamesOnThePage(t *testing.T) {
	files, records := profiled(t)
	o := HTMLOptions{Profiles: ReadProfiles(files, pointers(records))}
	html := page(t, records, o)
	markup, _, _ := strings.Cut(html, `<script type="application/json"`)
	for _, want := range []string{
		"Where the time goes",
		"Functions with the largest own shares: rust-axum, CPU at peak: tcp_sendmsg_[k] itself, " +
			"50 %",
		"go-nethttp: the 10 functions with the largest own share, as a table",
		// json.Marshal has 200 of 1000 samples of a millisecond.
		`encoding/json.Marshal</th><td>CPU at half</td><td>200 ms</td><td>20 %</td>`,
		"<li>node-express, waiting for locks at peak: node has no locks to see</li>",
		"<li>java-netty, CPU at peak: read profile: open profiles/lost.pb.gz",
		"Frames of less than 0.1 % are merged",
		"event: one sample a ms, of perf_events (rust-axum, CPU at peak)",
	} {
		if !strings.Contains(markup, want) {
			t.Errorf("the markup lacks %q", want)
		}
	}
	if strings.Contains(html, "<img") || strings.Count(html, "</script>") != 2 {
		t.Error("a frame's name became markup")
	}
	s := analyze(records, fixtureOptions())
	var order []string
	for _, p := range dataOf(s, o).Flames.Profiles {
		order = append(order, p.Target+" "+p.Load+" "+p.Kind)
	}
	// As ranked; then kinds in their order; open loads first.
	want := "rust-axum peak cpu, java-netty peak cpu, go-nethttp half cpu, go-nethttp peak cpu, " +
		"go-nethttp half alloc, go-nethttp peak alloc"
	if got := strings.Join(order, ", "); got != want {
		t.Errorf("the profiles are %s, wanted %s", got, want)
	}
	if none := page(t, rich(), HTMLOptions{}); strings.Contains(none, "Where the time goes") {
		t.Error("a page without profiles has a section for them")
	}
}
