// Package site writes the runs below a folder as static files: the web app (internal/server/app),
// an index, histories, and for each run its report, its comparisons with earlier runs and its raw
// records. Any file server can serve it, and it opens from a disk: because a page from a file may
// not fetch, each document is also a script that passes it to the app. docs/formats/site.md lists
// the files.
//
//	shelf ─► entries ─► data/index.js, data/runs-1.js …, feed.xml
//	each run ─► runs/ID/report.html, report.json, run.json, trials.ndjson
//	        ├─► runs/ID/compare-OTHER.html, with the run before it and the baseline; data/pairs.js
//	        └─► one point of each of its series ─► data/trend-KEY.js, a suite and machine each
//
// A run that has not changed since the site was last written is left as it is.
//
// Non-goals: it has no statistics of its own, serves nothing, and changes nothing below the runs.
package site

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"prony.example/internal/base/files"
	"prony.example/internal/base/format"
	"prony.example/internal/report/history"
	"prony.example/internal/report/runs"
	"prony.example/internal/server/app"
)

// Options configure a site.
type Options struct {
	// Program is the version of the program: pages by another version are made again.
	Program string
	// URL is the future address of the site, for its feed; empty: relative addresses.
	URL string
}

// Made counts what was written.
type Made struct {
	Runs  int            // on the site
	Fresh int            // of these, the number made now
	Left  []runs.LeftOut // folders that look like runs but cannot be shown
}

// Parts of the index: the first page loads immediately, the others on demand.
const (
	firstRuns = 24
	partRuns  = 250
)

// Folders of a site.
const (
	dataDir = "data"
	runsDir = "runs"
)

// index is data/index.js.
type index struct {
	Version int          `json:"version"`
	Total   int          `json:"total"`
	Parts   int          `json:"parts"` // files data/runs-1.js and so on
	Runs    []runs.Entry `json:"runs"`  // the newest
	Groups  []group      `json:"groups"`
}

const indexVersion = 1

// group has the runs of one history, of one suite on one machine.
type group struct {
	Key     string `json:"key"`
	Suite   string `json:"suite"`
	Machine string `json:"machine"` // in words

	runs [][]history.Series
}

// Write writes the site of a shelf into a folder, which it creates. It refuses a folder with other
// contents, and the shelf's own.
func Write(ctx context.Context, s *runs.Shelf, to string, o Options) (Made, error) {
	if err := ours(s, to); err != nil {
		return Made{}, err
	}
	list, err := s.List(ctx)
	if err != nil {
		return Made{}, err
	}
	built := Made{Left: list.Left}
	if len(list.Entries) == 0 { // an empty site is useless
		return built, nil
	}
	for _, dir := range []string{to, filepath.Join(to, dataDir), filepath.Join(to, runsDir)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return built, fmt.Errorf("write site: %w", err)
		}
	}
	// index.html comes first, because it marks a folder as a site: an interrupted one is continued.
	for name, data := range map[string][]byte{"index.html": app.Index(app.Site),
		app.Script: app.File(app.Script), app.Style: app.File(app.Style)} {
		if err := files.Put(filepath.Join(to, name), data); err != nil {
			return built, fmt.Errorf("write site: %w", err)
		}
	}
	pages, err := writeRuns(ctx, s, list.Entries, to, o)
	if err != nil {
		return built, err
	}
	var entries []runs.Entry
	var series [][]history.Series
	for i, p := range pages {
		if p.lost != nil {
			id := list.Entries[i].ID
			built.Left = append(built.Left, runs.LeftOut{ID: id, Why: p.lost.Error()})
			continue
		}
		entries, series = append(entries, list.Entries[i]), append(series, p.series)
		if p.fresh {
			built.Fresh++
		}
	}
	built.Runs = len(entries)
	if err := writePairs(ctx, s, entries, to); err != nil {
		return built, err
	}
	if err := writeData(to, entries, series); err != nil {
		return built, err
	}
	if err := writeFeed(filepath.Join(to, "feed.xml"), entries, o.URL); err != nil {
		return built, err
	}
	return built, sweep(to, entries)
}

// ours refuses folders with other contents, because writing would mix with these and sweeping would
// delete them.
func ours(s *runs.Shelf, to string) error {
	dir, err := filepath.Abs(to)
	if err != nil {
		return fmt.Errorf("write site: %w", err)
	}
	if dir == s.Dir() {
		return fmt.Errorf("write site: %s contains the runs themselves; choose another folder", to)
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("write site: %w", err)
	}
	page, err := files.Read(filepath.Join(dir, "index.html"), files.Page)
	if err != nil || !bytes.Contains(page, []byte(`name="prony-source" content="site"`)) {
		return fmt.Errorf("write site: %s is not empty and is not a site of Prony; choose a new "+
			"or empty folder", to)
	}
	return nil
}

// writeRuns writes the runs in parallel; its results are in the order of the entries.
func writeRuns(ctx context.Context, s *runs.Shelf, entries []runs.Entry, to string,
	o Options) ([]page, error) {
	pages := make([]page, len(entries))
	failed := make([]error, len(entries))
	var all errgroup.Group
	all.SetLimit(runtime.GOMAXPROCS(0))
	for i, e := range entries {
		all.Go(func() error {
			if ctx.Err() == nil {
				pages[i], failed[i] = writeRun(s, e.ID, filepath.Join(to, runsDir, e.ID), o)
			}
			return nil
		})
	}
	_ = all.Wait() // one that fails does not stop the others
	return pages, errors.Join(append(failed, ctx.Err())...)
}

// writeData writes the index in parts, and a history for each suite and machine.
func writeData(to string, entries []runs.Entry, series [][]history.Series) error {
	x := index{Version: indexVersion, Total: len(entries)}
	x.Runs = entries[:min(firstRuns, len(entries))]
	for part := range slices.Chunk(entries[len(x.Runs):], partRuns) {
		x.Parts++
		if err := give(to, fmt.Sprintf("%s/runs-%d", dataDir, x.Parts), part); err != nil {
			return err
		}
	}
	for i := len(entries) - 1; i >= 0; i-- { // histories begin with the oldest run
		if len(series[i]) > 0 {
			x.add(entries[i], series[i])
		}
	}
	slices.SortFunc(x.Groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(a.Suite, b.Suite), cmp.Compare(a.Key, b.Key))
	})
	for _, g := range x.Groups {
		t := history.Join(g.runs, history.Options{})
		if err := give(to, dataDir+"/trend-"+g.Key, t); err != nil {
			return err
		}
	}
	if err := give(to, dataDir+"/index", x); err != nil {
		return err
	}
	// The complete index is for other programs.
	return files.Write(filepath.Join(to, dataDir, "index.json"), func(w io.Writer) error {
		return format.JSON(w, struct {
			Version int          `json:"version"`
			Runs    []runs.Entry `json:"runs"`
		}{indexVersion, entries})
	})
}

// add adds a run to its group.
func (x *index) add(e runs.Entry, series []history.Series) {
	sum := sha256.Sum256([]byte(e.Suite + "\n" + e.Machine.Key))
	key := hex.EncodeToString(sum[:])[:12]
	i := slices.IndexFunc(x.Groups, func(g group) bool { return g.Key == key })
	if i < 0 {
		m := e.Machine
		words := fmt.Sprintf("%s, %d cores, %s", m.CPUModel, m.Cores, m.Kernel)
		i, x.Groups = len(x.Groups), append(x.Groups, group{Key: key, Suite: e.Suite,
			Machine: words})
	}
	x.Groups[i].runs = append(x.Groups[i].runs, series)
}

// give writes a document as a script that passes it to the app under its name, the file's without
// .js.
func give(to, name string, document any) error {
	data, err := compact(document)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	script := fmt.Sprintf("prony.put(%q,%s);\n", name, data)
	return put(filepath.Join(to, filepath.FromSlash(name+".js")), []byte(script))
}

// compact returns a document without spaces, with the values of format.JSON.
func compact(document any) ([]byte, error) {
	var b, out bytes.Buffer
	if err := format.JSON(&b, document); err != nil {
		return nil, err
	}
	if err := json.Compact(&out, b.Bytes()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// put writes a file that can be made again if it is lost. It does not wait for the disk, which
// takes minutes for thousands of files.
func put(name string, data []byte) error {
	if err := os.WriteFile(name, data, 0o644); err != nil {
		return fmt.Errorf("write site: %w", err)
	}
	return nil
}

// sweep removes the folders of runs that are no longer on the shelf. It only removes folders that a
// site wrote, which have a mark.
func sweep(to string, entries []runs.Entry) error {
	there, err := os.ReadDir(filepath.Join(to, runsDir))
	if err != nil {
		return fmt.Errorf("write site: %w", err)
	}
	for _, d := range there {
		dir := filepath.Join(to, runsDir, d.Name())
		known := slices.ContainsFunc(entries, func(e runs.Entry) bool { return e.ID == d.Name() })
		if _, err := os.Lstat(filepath.Join(dir, markFile)); known || err != nil {
			continue
		}
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("remove a run from the site: %w", err)
		}
	}
	return nil
}
