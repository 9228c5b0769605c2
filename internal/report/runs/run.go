package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/cmdlog"
	"prony.example/internal/base/files"
	"prony.example/internal/base/jsontree"
	"prony.example/internal/base/units"
	"prony.example/internal/report/compare"
	"prony.example/internal/suite"
	"prony.example/record"
)

// Run has the contents of a run's folder: head, records, and lines that were left out.
type Run struct {
	Dir     string
	Head    record.Run // with its current labels
	Records []*record.Record
	Bad     []*record.BadRecord
	// Missing are the planned trials without a record.
	Missing []record.Planned
	// Unfinished marks a run with a time budget (--for) that ended before its time. Missing then
	// has trials of the first block only, because such a run plans no number of blocks.
	Unfinished bool
}

// Read reads a run's folder. Lines that are not records are in Bad; it fails only if the folder
// cannot be read at all.
func Read(dir string) (*Run, error) {
	head, records, bad, err := record.Read(dir)
	if err != nil {
		return nil, err
	}
	switch now, err := readLabels(dir); {
	case err != nil:
		head.Notes = append(head.Notes, "Labels that were changed later are missing: "+err.Error())
	case now != nil:
		head.Labels = now
	}
	r := &Run{Dir: dir, Head: head, Records: records, Bad: bad, Missing: head.Missing(records)}
	if s, err := record.ReadSchedule(dir); err != nil || s != nil {
		r.Unfinished = s != nil && s.Ended == ""
		// Which blocks follow the first one was decided while it ran.
		r.Missing = slices.DeleteFunc(r.Missing, func(p record.Planned) bool {
			return p.Block > 1
		})
	}
	return r, nil
}

// Options returns the baseline, notes and command for a report of the run.
func (r *Run) Options() table.Options {
	head := r.Head
	o := table.Options{Baseline: head.Baseline, Columns: head.Columns, Slices: SlicesIn(r.Dir),
		Reproduce: Reproduce(head), Missing: r.Missing, Unfinished: r.Unfinished,
		Skipped: head.Skipped}
	for _, again := range head.Resumed {
		note := fmt.Sprintf("The run was resumed on %s, when %s had a record",
			again.Time.UTC().Format("2006-01-02 15:04 UTC"), units.Plural(again.Trials, "trial"))
		if table.RepeatOf(r.Records...) == "block" { // an interrupted start is run again as a whole
			note += ": the trials of the interrupted block are further apart in time than those " +
				"of other blocks"
		}
		o.Notes = append(o.Notes, note+".")
	}
	for _, b := range r.Bad {
		o.Damaged = append(o.Damaged, fmt.Sprintf("line %d: %v", b.Line, b.Err))
	}
	o.Notes = append(o.Notes, head.Notes...)
	if len(head.Labels) > 0 {
		var pairs []string
		for _, name := range slices.Sorted(maps.Keys(head.Labels)) {
			pairs = append(pairs, name+"="+head.Labels[name])
		}
		o.Notes = append(o.Notes, "Labels: "+strings.Join(pairs, ", ")+".")
	}
	return o
}

// SlicesIn reads the raw slices of starts from a run's folder.
func SlicesIn(dir string) table.SlicesReader {
	return func(file string) (record.SlicesHead, []record.Slice, error) {
		return record.ReadSlices(dir, file)
	}
}

// Study groups and summarizes the run's records.
func (r *Run) Study(o table.Options) table.Study {
	return table.Analyze(r.Records, o)
}

// Side returns the run as a side of a comparison, without trials outside the comparison. Target is
// as in compare.Side.
func (r *Run) Side(target string) compare.Side {
	return compare.Side{Dir: r.Dir, Head: r.Head, Records: record.Compared(r.Records),
		Target: target, Reproduce: Reproduce(r.Head), Slices: SlicesIn(r.Dir), Missing: r.Missing,
		Bad: r.Bad, Unfinished: r.Unfinished}
}

// Endpoints returns the requests of each scenario, in a line.
func (r *Run) Endpoints() map[string]string {
	out := map[string]string{}
	for scene, requests := range r.Head.Requests {
		out[scene] = strings.Join(requests, ", ")
	}
	return out
}

// Samples reads the probe's series of some trials for the page's plots, and skips missing ones.
func (r *Run) Samples(trials map[string]bool) (out []record.Samples) {
	for _, name := range files.Glob(r.Dir, "series/*.json") {
		data, err := files.Read(name, files.Page)
		var s record.Samples
		if err != nil || json.Unmarshal(data, &s) != nil || !trials[s.Trial] {
			continue
		}
		out = append(out, s)
	}
	return out
}

// Reproduce returns the command that repeats a run: the original one with explicit suite, seed and
// blocks, without the folder of its results.
func Reproduce(head record.Run) string {
	words := cmdlog.Hushed(cmdlog.Repeatable(head.Command))
	if head.File == "" { // all of it is on the command line
		return cmdlog.Join(words)
	}
	args := []string{"prony", "run"}
	ofProject := slices.Contains(suite.ProjectFiles, filepath.Base(head.File))
	if !ofProject { // otherwise the line has the name of an experiment, or none
		args = append(args, head.File)
	}
	verb := false // passed
	for i := 1; i < len(words); i++ {
		name, _, joined := strings.Cut(words[i], "=")
		switch {
		case name == "--seed" || name == "--blocks" || name == "--for":
			if !joined {
				i++
			}
		case !verb && name == "run":
			verb = true
		case ofProject || filepath.Base(words[i]) != filepath.Base(head.File):
			args = append(args, words[i])
		}
	}
	length := fmt.Sprintf("--blocks %d", head.Blocks)
	if head.ForNs > 0 {
		length = fmt.Sprintf("--for %v", time.Duration(head.ForNs))
	}
	return fmt.Sprintf("%s --seed %d %s", cmdlog.Join(args), head.Seed, length)
}

// readLabels reads the labels that were set after a run had begun; nil: none.
func readLabels(dir string) (map[string]string, error) {
	b, err := files.Kept(filepath.Join(dir, record.LabelsFile), maxLabels)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	labels := map[string]string{}
	if err := jsontree.Decode(b, &labels); err != nil {
		return nil, fmt.Errorf("read %s: %w", filepath.Join(dir, record.LabelsFile), err)
	}
	return labels, CheckLabels(labels)
}
