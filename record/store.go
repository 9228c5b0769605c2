package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"prony.example/internal/base/files"
	"prony.example/internal/base/jsontree"
)

// Files in a run's folder.
const (
	TrialsFile = "trials.ndjson" // one record per line
	RunFile    = "run.json"      // the run's plan
	LabelsFile = "labels.json"   // labels added later; they replace those of the head
)

// AgainSuffix ends the name of the A/A control: the baseline as a target a second time.
const AgainSuffix = "-again"

// Run is the head of a run's folder, written before anything is measured: the plan.
type Run struct {
	Version  int    `json:"version"`
	ID       string `json:"id"`
	Suite    string `json:"suite"`
	Question string `json:"question"`
	File     string `json:"file"` // of the suite
	Baseline string `json:"baseline"`
	// Decides is the metric that decides the comparison: cpu, throughput, p99 or capacity; empty:
	// the one that ranks the targets.
	Decides  string    `json:"decides,omitempty"`
	Blocks   int       `json:"blocks"` // the maximum, if the run has a time limit
	Seed     uint64    `json:"seed"`
	PlanHash string    `json:"planHash"`
	Trials   []string  `json:"trials"` // ids, in order; none if the run has a time limit
	Planned  []Planned `json:"planned,omitempty"`
	Loads    []string  `json:"loads,omitempty"` // names of the loads of each compared trial
	// Reserve are the trials of further starts, which run to reach a precision, or if other starts
	// lost a target.
	Reserve []Planned `json:"reserve,omitempty"`
	Skipped []Skipped `json:"skipped,omitempty"`
	Command []string  `json:"command"`
	AA      bool      `json:"aa,omitempty"`      // A/A: every target against itself
	ForNs   int64     `json:"forNs,omitempty"`   // time limit, instead of a number of blocks
	Host    *Grading  `json:"host,omitempty"`    // result of prony doctor before the first trial
	Columns []string  `json:"columns,omitempty"` // additional columns that the suite requests
	// Resumed are the times at which the run was resumed.
	Resumed []Resumption `json:"resumed,omitempty"`
	// Requests are the requests of each scenario, as in the suite, for readers of reports.
	Requests map[string][]string `json:"requests,omitempty"`
	Notes    []string            `json:"notes,omitempty"` // for every report
	// Labels are given by the user, for example a branch or the number of a pull request.
	Labels map[string]string `json:"labels,omitempty"`
}

// Planned is a planned trial, as in Run.Trials, for programs that look for missing ones.
type Planned struct {
	Trial    string `json:"trial"`
	Row      string `json:"row"` // name of its target in tables
	Scenario string `json:"scenario"`
	Block    int    `json:"block"`
	Role     string `json:"role,omitempty"`
}

// Missing returns the planned trials without a record: the run ended before them, or their records
// were lost. If the head has no Planned, only their ids are known.
func (r Run) Missing(records []*Record) (out []Planned) {
	all := r.Planned
	if len(all) == 0 {
		for _, id := range r.Trials {
			all = append(all, Planned{Trial: id})
		}
	}
	theirs := map[string]bool{}
	for _, rec := range records {
		theirs[rec.Trial] = true
	}
	return slices.DeleteFunc(slices.Clone(all), func(p Planned) bool { return theirs[p.Trial] })
}

// Resumption is a moment at which the trials without a record were started.
type Resumption struct {
	Time    time.Time `json:"time"`
	Trials  int       `json:"trials"` // number of trials with a record that counts by then
	Command []string  `json:"command"`
	// Repeats are the trials that were run again, because they or their start were interrupted. The
	// later record of such a trial counts.
	Repeats []string `json:"repeats,omitempty"`
}

// repeats reports whether a record is the one of a repeated trial.
func (r Run) repeats(rec *Record) bool {
	n := rec.Resumed
	return 1 <= n && n <= len(r.Resumed) && slices.Contains(r.Resumed[n-1].Repeats, rec.Trial)
}

// Skipped is a target that could not take part, and why.
type Skipped struct {
	Target string `json:"target"`
	Reason string `json:"reason"`
}

// Writer appends records to a run's folder. Each is synced to disk before the next trial starts.
type Writer struct {
	f    *os.File
	head Run
	plan *Plan
	size int64
}

// Create makes a run's folder with its head and an empty list of records. It fails with fs.ErrExist
// if the folder already has records, and leaves them unchanged.
func Create(dir string, r Run) (*Writer, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create run: %w", err)
	}
	r.Version = Version
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("create run: %w", err)
	}
	// The records file comes first: its creator owns the folder, so no head of another run is
	// overwritten. O_APPEND avoids a hole in the file after a record was taken back.
	const flags = os.O_CREATE | os.O_EXCL | os.O_WRONLY | os.O_APPEND
	f, err := os.OpenFile(filepath.Join(dir, TrialsFile), flags, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("create run: %w; choose another folder", err)
	}
	if err != nil {
		return nil, fmt.Errorf("create run: %w", err)
	}
	if err := writeSynced(dir, RunFile, append(b, '\n')); err != nil {
		if location := filepath.Join(dir, RunFile); regular(location) {
			_ = os.Remove(location) // an empty or incomplete file
		}
		return nil, fmt.Errorf("create run: %w", errors.Join(err, f.Close(), os.Remove(f.Name())))
	}
	describe(dir, r.ID)
	return &Writer{f: f, head: r, plan: r.Plan()}, nil
}

// Resume opens a run's folder to append missing records, and rewrites its head. An incomplete
// record at the end stays, on its own line.
func Resume(dir string, r Run) (*Writer, error) {
	f, err := os.OpenFile(filepath.Join(dir, TrialsFile), os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, fmt.Errorf("resume run: %w", err)
	}
	w := &Writer{f: f, head: r, plan: r.Plan()}
	r.Version = Version // the next records have this version
	if err = w.endLine(); err == nil {
		err = putHead(dir, r)
	}
	if err != nil {
		return nil, fmt.Errorf("resume run: %w", errors.Join(err, f.Close()))
	}
	return w, nil
}

// putHead replaces the head atomically instead of overwriting it, because records cannot be read
// without a head.
func putHead(dir string, r Run) error {
	return putJSON(filepath.Join(dir, RunFile), r)
}

func putJSON(name string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return files.Put(name, append(b, '\n'))
}

func (w *Writer) endLine() error {
	info, err := w.f.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	w.size = info.Size()
	last := make([]byte, 1)
	if _, err := w.f.ReadAt(last, w.size-1); err != nil || last[0] == '\n' {
		return err
	}
	w.size++
	_, err = w.f.Write([]byte{'\n'})
	return err
}

// writeSynced writes a file that must survive a power failure, together with its folder's entry:
// records without their head cannot be read (fsync(2): the folder needs its own sync).
func writeSynced(dir, name string, b []byte) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return files.SyncFolder(dir)
}

// Reserve makes a run's folder and tests whether it is writable, before any other work. Its error
// recommends flag to choose another folder. release removes the folders that Reserve made, if they
// are still empty.
func Reserve(dir, flag string) (release func(), err error) {
	var built []string // innermost first
	for location := dir; ; location = filepath.Dir(location) {
		if _, err := os.Stat(location); err == nil || location == filepath.Dir(location) {
			break
		}
		built = append(built, location)
	}
	release = func() {
		for _, location := range built {
			_ = os.Remove(location) // removes only empty folders
		}
	}
	if err = os.MkdirAll(dir, 0o755); err == nil {
		var f *os.File
		if f, err = os.CreateTemp(dir, ".prony-"); err == nil {
			err = errors.Join(f.Close(), os.Remove(f.Name()))
		}
	}
	if err != nil {
		release()
		return nil, fmt.Errorf("create run: %w; choose another folder with %s", err, flag)
	}
	return release, nil
}

// Look fails if another program has changed or removed the run's files, because further records
// would be unreadable.
func (w *Writer) Look() error {
	ours, err := w.f.Stat()
	if err != nil {
		return fmt.Errorf("look at the records: %w", err)
	}
	_, err1 := os.Stat(filepath.Join(filepath.Dir(w.f.Name()), RunFile))
	theirs, err2 := os.Stat(w.f.Name())
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("read the records: %w; another program removed it during the run: run "+
			"again", err)
	}
	if !os.SameFile(ours, theirs) || ours.Size() != w.size {
		return fmt.Errorf("read the records: another program replaced or changed %s during the "+
			"run: run again", w.f.Name())
	}
	return nil
}

// Append writes a record of the run and syncs it. If its numbers contradict each other, the record
// becomes INVALID first, with a finding for each violated identity. If Append fails, for example
// because the disk is full, it removes the part written, so that the file ends with a complete
// record.
func (w *Writer) Append(r *Record) error {
	r.Version, r.Run = Version, w.head.ID
	r.Prove()
	if err := w.plan.Follows(r); err != nil {
		r.doubt(Violation{Err: err})
	}
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("save record of %s: %w", r.Trial, err)
	}
	n, err := w.f.Write(append(b, '\n'))
	if err == nil {
		err = w.f.Sync()
	}
	if err != nil {
		return errors.Join(
			fmt.Errorf("save record of %s: %w; free some space", r.Trial, err),
			w.f.Truncate(w.size))
	}
	w.size += int64(n)
	return nil
}

// Close closes the file.
func (w *Writer) Close() error { return w.f.Close() }

// BadRecord is a line that is not a valid record of the run. Reading continues after it.
type BadRecord struct {
	File string
	Line int
	Err  error
}

func (e *BadRecord) Error() string {
	return fmt.Sprintf("%s:%d: %v; it is left out", e.File, e.Line, e.Err)
}

// Unwrap returns the cause.
func (e *BadRecord) Unwrap() error { return e.Err }

// Read returns head and records of a run's folder: of a trial that was interrupted and repeated,
// the later one. Invalid lines, and records that Check refuses, are returned in bad; err is for
// folders that cannot be read.
func Read(dir string) (head Run, records []*Record, bad []*BadRecord, err error) {
	head, records, _, bad, err = read(dir, func(plan *Plan, rec *Record) error {
		if err := rec.Check(); err != nil {
			return fmt.Errorf("run %s, trial %s contradicts itself: %w", rec.Run, rec.Trial, err)
		}
		if err := plan.Follows(rec); err != nil {
			return fmt.Errorf("run %s, trial %s contradicts the plan: %w", rec.Run, rec.Trial, err)
		}
		return nil
	})
	return head, records, bad, err
}

// ReadUnchecked is Read without Check, for programs that look for contradictions themselves.
func ReadUnchecked(dir string) (head Run, records []*Record, bad []*BadRecord, err error) {
	head, records, _, bad, err = ReadNumbered(dir)
	return head, records, bad, err
}

// ReadNumbered is ReadUnchecked, and returns the line of each trial's record.
func ReadNumbered(dir string) (head Run, records []*Record, lines map[string]int,
	bad []*BadRecord, err error) {
	return read(dir, func(*Plan, *Record) error { return nil })
}

// read reads a run's folder, and leaves out records for which check returns an error.
func read(dir string, check func(*Plan, *Record) error) (head Run, records []*Record,
	lines map[string]int, bad []*BadRecord, err error) {
	if head, err = readHead(dir); err != nil {
		return head, nil, nil, nil, err
	}
	path := filepath.Join(dir, TrialsFile)
	f, err := files.Open(path)
	if err != nil {
		return head, nil, nil, nil, fmt.Errorf("read run: %w", err)
	}
	defer f.Close()
	plan := head.Plan()
	fits, lines := head.belongs(plan), map[string]int{}
	records, bad, err = readRecords(path, f, func(rec *Record, line int) error {
		if err := check(plan, rec); err != nil {
			return err // before fits, so that another record of the trial can replace it
		}
		err := fits(rec, line)
		if err == nil {
			lines[rec.Trial] = line
		}
		return err
	})
	return head, latest(records), lines, bad, err
}

// latest leaves out records of trials that were repeated.
func latest(records []*Record) []*Record {
	last := map[string]*Record{}
	for _, r := range records {
		last[r.Trial] = r
	}
	return slices.DeleteFunc(records, func(r *Record) bool { return last[r.Trial] != r })
}

func readHead(dir string) (head Run, err error) {
	b, err := files.Text(filepath.Join(dir, RunFile), files.Page)
	if errors.Is(err, fs.ErrNotExist) {
		return head, fmt.Errorf("read run %s: it has no %s; "+
			"is it a folder below results/?", dir, RunFile)
	}
	if err != nil {
		return head, fmt.Errorf("read run: %w", err)
	}
	if err = jsontree.Decode(Upgrade(b), &head); err == nil {
		head.upgradeColumns()
		err = measurable(reflect.ValueOf(head))
	}
	if err != nil {
		return head, fmt.Errorf("read run %s: %w", filepath.Join(dir, RunFile), err)
	}
	if head.Blocks < 0 || head.ForNs < 0 {
		return head, fmt.Errorf("read run %s: blocks is %d and forNs %d, but both must be at "+
			"least 0", filepath.Join(dir, RunFile), head.Blocks, head.ForNs)
	}
	if head.Version < 1 {
		return head, fmt.Errorf("read run %s: its %s has no version; "+
			"is it a folder below results/?", dir, RunFile)
	}
	if head.Version > Version {
		return head, fmt.Errorf("read run %s: it has version %d and this prony knows "+
			"%d; use a newer one", dir, head.Version, Version)
	}
	return head, nil
}

// belongs returns a check whether a record belongs to the run and is the first of its trial. A
// record that counts twice, or that comes from another run, would narrow every interval. If the
// head has no run id or no trial ids, the check cannot use them.
func (r Run) belongs(plan *Plan) func(rec *Record, line int) error {
	lines := map[string]int{}
	resumed := map[string]int{} // of the last record of each trial
	return func(rec *Record, line int) error {
		switch first := lines[rec.Trial]; {
		case r.ID != "" && rec.Run != r.ID:
			return fmt.Errorf("a record of run %q, not of this one (%s)", rec.Run, r.ID)
		case plan.listed != nil && !plan.listed[rec.Trial]:
			return fmt.Errorf("a record of trial %q, which is not in the plan of %s", rec.Trial,
				RunFile)
		case first > 0 && (!r.repeats(rec) || rec.Resumed <= resumed[rec.Trial]):
			return fmt.Errorf("a second record of trial %s, after line %d", rec.Trial, first)
		}
		lines[rec.Trial], resumed[rec.Trial] = line, rec.Resumed
		return nil
	}
}

// Bounds of input. A decoded record takes some KiB even if its line is short, and a trial takes
// some seconds, so maxRecords corresponds to weeks.
const (
	maxLine    = 16 << 20 // bytes of a line; the longest records have several hundred KiB
	maxRecords = 20_000
	maxBad     = 20 // reported lines; with more, the file is not a run's
)

// MaxTrials is the largest number of trials of a planned comparison. Observed and repeated trials
// may follow, and all of their records are read.
const MaxTrials = maxRecords * 4 / 5

// readRecords reads the NDJSON records that pass fits; name is for errors. It fails if a bound is
// exceeded.
func readRecords(name string, in io.Reader, fits func(rec *Record, line int) error) (
	records []*Record, bad []*BadRecord, err error) {
	line := 0
	bad, err = ReadLines(name, in, func(b []byte) error {
		line++
		rec := &Record{}
		err := jsontree.DecodeLine(Upgrade(b), rec)
		switch {
		case err != nil:
		case rec.Version < 1 || rec.Version > Version:
			err = fmt.Errorf("version %d, this prony knows %d", rec.Version, Version)
		case rec.Trial == "":
			err = errors.New("it names no trial")
		case len(records) == maxRecords:
			return fmt.Errorf("%w: more than %d records", errBound, maxRecords)
		default:
			err = measurable(reflect.ValueOf(rec))
		}
		if rec.Version == 1 {
			rec.upgrade()
		}
		rec.upgradeValues()
		if err != nil {
			return fmt.Errorf("not a record: %w", err)
		}
		if err := fits(rec, line); err != nil {
			return err
		}
		records = append(records, rec)
		return nil
	})
	return records, bad, err
}

// errBound ends the reading of a file.
var errBound = errors.New("beyond what is read")

// ReadLines passes each line of NDJSON, without a byte order mark, to use. Lines that use rejects
// are returned in bad. Reading fails if a line is too long or too many lines are rejected.
func ReadLines(name string, in io.Reader, use func([]byte) error) (bad []*BadRecord, err error) {
	r := bufio.NewReaderSize(in, 1<<16)
	var long []byte
	for line := 1; ; line++ {
		long = long[:0]
		b, err := r.ReadSlice('\n')
		for errors.Is(err, bufio.ErrBufferFull) && len(long) <= maxLine {
			long = append(long, b...)
			b, err = r.ReadSlice('\n')
		}
		if len(long) > 0 {
			long = append(long, b...)
			b = long
		}
		if line == 1 {
			b = bytes.TrimPrefix(b, []byte("\ufeff"))
		}
		var wrong error
		switch {
		case len(b) > maxLine:
			wrong = fmt.Errorf("%w: a line of more than %d MiB", errBound, maxLine>>20)
		case len(b) > 0:
			wrong = use(b)
		}
		if wrong != nil && (errors.Is(wrong, errBound) || len(bad) == maxBad) {
			return bad, fmt.Errorf("read %s:%d: %w; is it a file of prony's?", name, line, wrong)
		} else if wrong != nil {
			bad = append(bad, &BadRecord{name, line, wrong})
		}
		if errors.Is(err, io.EOF) {
			return bad, nil
		}
		if err != nil {
			return bad, fmt.Errorf("read %s: %w", name, err)
		}
	}
}

// Compared returns the records of the comparison, without trials that have a role.
func Compared(records []*Record) []*Record {
	return slices.DeleteFunc(slices.Clone(records), func(r *Record) bool { return r.Role != "" })
}

func regular(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}

// NewFolder returns the id and folder of a run by its start; runs that start in the same second get
// a number.
func NewFolder(results, start string) (id, dir string) {
	id = start
	for n := 2; ; n++ {
		dir = filepath.Join(results, id)
		if _, err := os.Stat(dir); err != nil {
			return id, dir
		}
		id = fmt.Sprintf("%s-%d", start, n)
	}
}

// Kept is the folder for what Prony keeps beside a user's own files.
const Kept = ".prony"

// Keep makes such a folder and makes git ignore it.
func Keep(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	ignore := filepath.Join(dir, ".gitignore")
	if _, err := os.Stat(ignore); err == nil {
		return nil
	}
	return files.Put(ignore, []byte("*\n"))
}

// Samples are the probe's readings during one load, as columns; the file is series/TRIAL.LOAD.json.
type Samples struct {
	Trial    string    `json:"trial"`
	Load     string    `json:"load"`
	TimeNs   []int64   `json:"timeNs"`   // from about the window's opening
	CPUCores []float64 `json:"cpuCores"` // CPU cores that the service used since the last sample
	RSSBytes []int64   `json:"rssBytes"`
	Threads  []int64   `json:"threads"`
}
