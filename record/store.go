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
)

// Files in a run's folder.
const (
	TrialsFile = "trials.ndjson" // one record a line
	RunFile    = "run.json"      // what was planned
	LabelsFile = "labels.json"   // labels in place of the head's, put on later
)

// AgainSuffix ends the name of a target that is the baseline a second time, as the control of a
// comparison.
const AgainSuffix = "-again"

// Run is the head of a run's folder: what was asked for, before anything was measured.
type Run struct {
	Version  int       `json:"version"`
	ID       string    `json:"id"`
	Suite    string    `json:"suite"`
	Question string    `json:"question"`
	File     string    `json:"file"` // of the suite
	Baseline string    `json:"baseline"`
	Blocks   int       `json:"blocks"` // at most, where the run goes on for a time
	Seed     uint64    `json:"seed"`
	PlanHash string    `json:"planHash"`
	Trials   []string  `json:"trials"` // ids, in order; none where the run goes on for a time
	Planned  []Planned `json:"planned,omitempty"`
	// Reserve are the trials of further starts: those that a precision may take, and those that run
	// if others lost a target.
	Reserve []Planned `json:"reserve,omitempty"`
	Skipped []Skipped `json:"skipped,omitempty"`
	Command []string  `json:"command"`
	AA      bool      `json:"aa,omitempty"`      // every target against itself
	ForNs   int64     `json:"forNs,omitempty"`   // the run goes on for so long, instead of blocks
	Host    *Grading  `json:"host,omitempty"`    // what prony doctor said before the first trial
	Columns []string  `json:"columns,omitempty"` // that the suite wants in its table, too
	// Resumed are the times at which a run that had ended was gone on with.
	Resumed []Resumption `json:"resumed,omitempty"`
	// Requests are what each scenario sends, as the suite has it, for readers of reports.
	Requests map[string][]string `json:"requests,omitempty"`
	Notes    []string            `json:"notes,omitempty"` // that every report is to say
	// Labels are what its user knows of it: a branch, a number of a pull request.
	Labels map[string]string `json:"labels,omitempty"`
}

// Planned is one of the trials to come, as Run.Trials lists them, for those who look for what is
// missing.
type Planned struct {
	Trial    string `json:"trial"`
	Row      string `json:"row"` // what tables call its target
	Scenario string `json:"scenario"`
	Block    int    `json:"block"`
	Role     string `json:"role,omitempty"`
}

// Missing are the planned trials that have no record: the run was ended before them, or their
// records are lost. Of a run whose head is older than Planned only the ids are known.
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

// Resumption is a time at which the trials that had no record were begun.
type Resumption struct {
	Time    time.Time `json:"time"`
	Trials  int       `json:"trials"` // that had a record by then
	Command []string  `json:"command"`
}

// Skipped is a target that could not take part, with the reason.
type Skipped struct {
	Target string `json:"target"`
	Reason string `json:"reason"`
}

// Writer appends records to a run's folder, each safe on disk before the next trial starts.
type Writer struct {
	f    *os.File
	run  string
	size int64
}

// Create makes a run's folder with its head and an empty list of records. A folder that has one
// already is left as it is; the error is fs.ErrExist then.
func Create(dir string, r Run) (*Writer, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create run: %w", err)
	}
	r.Version = Version
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("create run: %w", err)
	}
	// The records come first: whoever makes their file owns the folder, and no other's head is
	// written over. They are appended, so that a record after one taken back leaves no hole.
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
			_ = os.Remove(location) // what there is of it is empty or torn
		}
		return nil, fmt.Errorf("create run: %w", errors.Join(err, f.Close(), os.Remove(f.Name())))
	}
	return &Writer{f: f, run: r.ID}, nil
}

// Resume opens a run's folder for the records that it lacks, and writes its head anew. A torn one
// at the end stays what it is, on a line of its own.
func Resume(dir string, r Run) (*Writer, error) {
	f, err := os.OpenFile(filepath.Join(dir, TrialsFile), os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, fmt.Errorf("resume run: %w", err)
	}
	w := &Writer{f: f, run: r.ID}
	r.Version = Version // the records to come are of it
	if err = w.endLine(); err == nil {
		err = putHead(dir, r)
	}
	if err != nil {
		return nil, fmt.Errorf("resume run: %w", errors.Join(err, f.Close()))
	}
	return w, nil
}

// putHead writes a head in the place of the one that there is, and not over it: without a head no
// record can be read.
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

// writeSynced writes a file that a power cut must not take, and its folder's entries with it:
// records without their head could not be read (fsync(2): the folder needs a sync of its own).
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

// Reserve makes a run's folder and finds out whether a run can be kept there, before anything is
// done for it; flag is the one that names another folder. What it returns takes the folders that it
// has made away again if nothing has come into them.
func Reserve(dir, flag string) (release func(), err error) {
	var built []string // the innermost first
	for location := dir; ; location = filepath.Dir(location) {
		if _, err := os.Stat(location); err == nil || location == filepath.Dir(location) {
			break
		}
		built = append(built, location)
	}
	release = func() {
		for _, location := range built {
			_ = os.Remove(location) // only an empty one goes
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

// Look finds out whether the run's folder still holds what was written, as nobody else writes
// there: to go on measuring for records that nobody can read any more would be in vain.
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

// Append writes a record as one of the run and syncs it. When that fails (a full disk, say), what
// was written of it is taken back, so that the file still ends with a whole record.
func (w *Writer) Append(r *Record) error {
	r.Version, r.Run = Version, w.run
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
			fmt.Errorf("save record of %s: %w; free some space and run again", r.Trial, err),
			w.f.Truncate(w.size))
	}
	w.size += int64(n)
	return nil
}

// Close closes the file.
func (w *Writer) Close() error { return w.f.Close() }

// BadRecord is a line that is no record, or none of the run's. Reading goes on after it.
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

// Read returns head and records of a run's folder. Lines that are no records come back in bad; the
// error is for a folder that cannot be read at all.
func Read(dir string) (head Run, records []*Record, bad []*BadRecord, err error) {
	if head, err = readHead(dir); err != nil {
		return head, nil, nil, err
	}
	path := filepath.Join(dir, TrialsFile)
	f, err := files.Open(path)
	if err != nil {
		return head, nil, nil, fmt.Errorf("read run: %w", err)
	}
	defer f.Close()
	records, bad, err = readRecords(path, f, head.belongs())
	return head, records, bad, err
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
	if err = json.Unmarshal(Upgrade(b), &head); err == nil {
		head.upgradeColumns()
		err = measurable(reflect.ValueOf(head))
	}
	if err != nil {
		return head, fmt.Errorf("read run %s: %w", filepath.Join(dir, RunFile), err)
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

// belongs tells the records of a run, each once, from others: a record that counts twice, or that
// comes from elsewhere, would narrow every interval. A head without ids, or without its own, is no
// lab's and tells nobody apart by them.
func (r Run) belongs() func(rec *Record, line int) error {
	lines := map[string]int{}
	inReserve := func(id string) bool {
		return slices.ContainsFunc(r.Reserve, func(p Planned) bool { return p.Trial == id })
	}
	return func(rec *Record, line int) error {
		switch first := lines[rec.Trial]; {
		case r.ID != "" && rec.Run != r.ID:
			return fmt.Errorf("a record of run %q, not of this one (%s)", rec.Run, r.ID)
		case len(r.Trials) > 0 && !slices.Contains(r.Trials, rec.Trial) && !inReserve(rec.Trial):
			return fmt.Errorf("a record of trial %q, which is not in the plan of %s", rec.Trial,
				RunFile)
		case first > 0:
			return fmt.Errorf("a second record of trial %s, after line %d", rec.Trial, first)
		}
		lines[rec.Trial] = line
		return nil
	}
}

// Bounds of what is read. A decoded record takes some KiB, however short its line is, and a trial
// some seconds: so many are weeks of measuring.
const (
	maxLine    = 16 << 20 // bytes of a line; the longest records have some hundred KiB
	maxRecords = 20_000
	maxBad     = 20 // lines that are told of; so many are no run's file
)

// readRecords reads NDJSON records that fit; name names the file in errors. One that goes beyond
// what a run may have is read no further, which is an error.
func readRecords(name string, in io.Reader, fits func(rec *Record, line int) error) (
	records []*Record, bad []*BadRecord, err error) {
	line := 0
	bad, err = ReadLines(name, in, func(b []byte) error {
		line++
		rec := &Record{}
		err := json.Unmarshal(Upgrade(b), rec)
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

// ReadLines gives each line of NDJSON to use, without a byte order mark. A line that use refuses is
// told and left out; one that is endless, or many that are refused, end the reading with an error.
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

// Compared are the records of the comparison, without those of trials beside it.
func Compared(records []*Record) []*Record {
	return slices.DeleteFunc(slices.Clone(records), func(r *Record) bool { return r.Role != "" })
}

func regular(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}

// NewFolder names a run's folder by its start; runs that begin within a second get a number.
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

// Kept is the folder of all that is kept beside a user's own files.
const Kept = ".prony"

// Keep makes such a folder, and has git ignore it.
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

// Samples are the probe's readings during one load, as columns; series/TRIAL.LOAD.json holds them.
type Samples struct {
	Trial    string    `json:"trial"`
	Load     string    `json:"load"`
	TimeNs   []int64   `json:"timeNs"`   // from about the window's opening
	CPUCores []float64 `json:"cpuCores"` // processors the service used since the sample before
	RSSBytes []int64   `json:"rssBytes"`
	Threads  []int64   `json:"threads"`
}
