package result

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

	"prony/internal/file"
)

// Files in a run's folder.
const (
	TrialsFile = "trials.ndjson" // one record a line
	RunFile    = "run.json"      // what was planned
)

// Run is the head of a run's folder: what was asked for, before anything was measured.
type Run struct {
	Version  int       `json:"version"`
	ID       string    `json:"id"`
	Suite    string    `json:"suite"`
	Question string    `json:"question"`
	File     string    `json:"file"` // of the suite
	Baseline string    `json:"baseline"`
	Blocks   int       `json:"blocks"`
	Seed     uint64    `json:"seed"`
	PlanHash string    `json:"planHash"`
	Trials   []string  `json:"trials"` // ids, in order
	Skipped  []Skipped `json:"skipped,omitempty"`
	Command  []string  `json:"command"`
	AA       bool      `json:"aa,omitempty"`      // every target against itself
	Duet     bool      `json:"duet,omitempty"`    // targets two at a time, side by side
	Host     *Grading  `json:"host,omitempty"`    // what prony doctor said before the first trial
	Columns  []string  `json:"columns,omitempty"` // that the suite wants in its table, too
	// Requests are what each scenario sends, as the suite has it, for readers of reports.
	Requests map[string][]string `json:"requests,omitempty"`
}

// Skipped is a target that could not take part, with the reason.
type Skipped struct {
	Target string `json:"target"`
	Reason string `json:"reason"`
}

// Writer appends records to a run's folder, each safe on disk before the next trial starts.
type Writer struct {
	f    *os.File
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
		return nil, fmt.Errorf("create run: %w", errors.Join(err, f.Close(), os.Remove(f.Name())))
	}
	return &Writer{f: f}, nil
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
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Append writes a record and syncs it. When that fails (a full disk, say), what was written of it
// is taken back, so that the file still ends with a whole record.
func (w *Writer) Append(r *Record) error {
	r.Version = Version
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

// BadRecord is a line that is no record. Reading goes on after it.
type BadRecord struct {
	File string
	Line int
	Err  error
}

func (e *BadRecord) Error() string {
	return fmt.Sprintf("%s:%d: not a record: %v; it is left out", e.File, e.Line, e.Err)
}

// Unwrap returns the cause.
func (e *BadRecord) Unwrap() error { return e.Err }

// Read returns head and records of a run's folder. Lines that are no records come back in bad; the
// error is for a folder that cannot be read at all.
func Read(dir string) (head Run, records []*Record, bad []*BadRecord, err error) {
	b, err := file.Text(filepath.Join(dir, RunFile), file.Page)
	if errors.Is(err, fs.ErrNotExist) {
		return head, nil, nil, fmt.Errorf("read run %s: it has no %s; "+
			"is it a folder below results/?", dir, RunFile)
	}
	if err != nil {
		return head, nil, nil, fmt.Errorf("read run: %w", err)
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return head, nil, nil, fmt.Errorf("read run %s: %w", filepath.Join(dir, RunFile), err)
	}
	if head.Version < 1 {
		return head, nil, nil, fmt.Errorf("read run %s: its %s has no version; "+
			"is it a folder below results/?", dir, RunFile)
	}
	if head.Version > Version {
		return head, nil, nil, fmt.Errorf("read run %s: it has version %d and this prony knows "+
			"%d; use a newer one", dir, head.Version, Version)
	}
	path := filepath.Join(dir, TrialsFile)
	f, err := file.Open(path)
	if err != nil {
		return head, nil, nil, fmt.Errorf("read run: %w", err)
	}
	defer f.Close()
	records, bad, err = ReadRecords(path, f)
	return head, records, bad, err
}

// Bounds of what is read. A decoded record takes some KiB, however short its line is, and a trial
// some seconds: so many are weeks of measuring.
const (
	maxLine    = 16 << 20 // bytes of a line; the longest records have some hundred KiB
	maxRecords = 20_000
	maxBad     = 20 // lines that are told of; so many are no run's file
)

// ReadRecords reads NDJSON records; name names it in errors. A file that goes beyond what a run may
// have is read no further, which is an error.
func ReadRecords(name string, in io.Reader) (records []*Record, bad []*BadRecord, err error) {
	bad, err = ReadLines(name, in, func(b []byte) error {
		rec := &Record{}
		switch err := json.Unmarshal(b, rec); {
		case err != nil:
			return err
		case rec.Version < 1 || rec.Version > Version:
			return fmt.Errorf("version %d, this prony knows %d", rec.Version, Version)
		case rec.Trial == "":
			return errors.New("it names no trial")
		case len(records) == maxRecords:
			return fmt.Errorf("%w: more than %d records", errBound, maxRecords)
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
func Compared(records []*Record) (out []*Record) {
	for _, r := range records {
		if r.Role == "" {
			out = append(out, r)
		}
	}
	return out
}

// Values are the records themselves, for those who group and sort copies of them.
func Values(records []*Record) []Record {
	out := make([]Record, len(records))
	for i, r := range records {
		out[i] = *r
	}
	return out
}
