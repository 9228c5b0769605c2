package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/jsontree"
	"prony.example/internal/base/strictyaml/formattest"
)

// filler gives each field a different value, so that no field can be lost or mixed up.
type filler int64

func (n *filler) fill(v reflect.Value) {
	*n++
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 11, 21, 3, 40, 11, int(*n), time.UTC)))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			n.fill(v.Field(i))
		}
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		n.fill(v.Elem())
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		n.fill(v.Index(0))
		n.fill(v.Index(1))
	case v.Kind() == reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		n.fill(key)
		n.fill(value)
		v.SetMapIndex(key, value)
	case v.Kind() == reflect.String:
		v.SetString(fmt.Sprintf("<%d µs & \"more\">\n", *n))
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(greatest/2 - 1 - int64(*n)) // a float64 is too small for larger values
	case v.CanUint():
		v.SetUint(math.MaxUint64 - uint64(*n))
	case v.CanFloat():
		v.SetFloat(1 / float64(*n))
	default:
		panic("a field of type " + v.Type().String() + ": teach the filler to fill it")
	}
}

// same compares two structs field by field.
func same(t *testing.T, got, want any) {
	t.Helper()
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range w.NumField() {
		if a, b := g.Field(i).Interface(), w.Field(i).Interface(); !reflect.DeepEqual(a, b) {
			t.Errorf("%s is\n%+v, want\n%+v", w.Type().Field(i).Name, a, b)
		}
	}
}

func create(t *testing.T, dir string, head Run) *Writer {
	t.Helper()
	w, err := Create(dir, head)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func TestEveryFieldComesBack(t *testing.T) {
	var n filler
	var head Run
	n.fill(reflect.ValueOf(&head).Elem())
	full, empty := &Record{}, &Record{Trial: "b1-02-empty"}
	n.fill(reflect.ValueOf(full).Elem())
	head.Trials = []string{full.Trial, empty.Trial}
	dir := filepath.Join(t.TempDir(), "results", "run") // neither exists
	w := create(t, dir, head)
	for _, r := range []*Record{full, empty} {
		if err := w.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	keepsTheSchemas(t, dir)
	got, records, bad, err := ReadUnchecked(dir)
	if err != nil || len(bad) > 0 || len(records) != 2 {
		t.Fatalf("%d records, bad %v, error %v", len(records), bad, err)
	}
	// Write sets the version of the format, whatever the caller has set.
	head.Version, full.Version = Version, Version
	full.Run, empty.Run = head.ID, head.ID
	same(t, got, head)
	same(t, *records[0], *full)
	same(t, *records[1], *empty)
}

func TestReadRecords(t *testing.T) {
	planned := false // the head lists the planned trials
	check := func(name, text, trials string, bad ...string) {
		t.Run(name, func(t *testing.T) {
			head := Run{}
			if planned {
				head = Run{ID: "r", Trials: []string{"a", "b"}}
			}
			records, badOnes, err := readRecords("dir/t.ndjson", strings.NewReader(text),
				head.belongs(head.Plan()))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range records {
				got = append(got, r.Trial)
			}
			if s := strings.Join(got, " "); s != trials {
				t.Errorf("records are %q, want %q", s, trials)
			}
			if len(badOnes) != len(bad) {
				t.Fatalf("bad are %v, want %q", badOnes, bad)
			}
			for i, b := range badOnes {
				if b.Error() != "dir/t.ndjson:"+bad[i]+"; it is left out" {
					t.Errorf("bad is %q, want %q", b, bad[i])
				}
			}
		})
	}
	line := func(trial string) string { return `{"version":1,"trial":"` + trial + `"}` + "\n" }
	check("nothing", "", "")
	check("whole", line("a")+line("b"), "a b")
	check("whole but for the line's end", line("a")+strings.TrimSpace(line("b")), "a b")
	check("torn in a key", line("a")+`{"version":1,"tri`, "a",
		"2: not a record: unexpected end of JSON input")
	check("torn before the brace", line("a")+strings.TrimSuffix(line("b"), "}\n"), "a",
		"2: not a record: unexpected end of JSON input")
	check("garbage", line("a")+"\x00\x00\n"+line("b"), "a b",
		`2: not a record: invalid character '\x00' looking for beginning of value`)
	check("two in a line", strings.TrimSpace(line("a"))+line("b")+line("c"), "c",
		"1: not a record: invalid character '{' after top-level value")
	check("empty lines", "\n"+line("a")+"\n", "a",
		"1: not a record: unexpected end of JSON input",
		"3: not a record: unexpected end of JSON input")
	check("newer", line("a")+`{"version":3,"trial":"x"}`+"\n"+line("b"), "a b",
		"2: not a record: version 3, this prony knows 2")
	check("no version", "{}\nnull\n"+line("a"), "a",
		"1: not a record: version 0, this prony knows 2",
		"2: not a record: version 0, this prony knows 2")
	check("another type", `{"version":1,"block":"one"}`+"\n"+line("a"), "a",
		"1: not a record: block must be a whole number, not string")
	check("a fraction of a request", `{"version":1,"loads":[{"done":1.5}]}`+"\n"+line("a"), "a",
		"1: not a record: loads.done must be a whole number, not number 1.5")
	check("a list", "[]\n"+line("a"), "a", "1: not a record: the value must be an object, not list")
	// Duplicate and foreign records would narrow every interval.
	check("twice", line("a")+line("b")+line("a"), "a b",
		"3: a second record of trial a, after line 1")
	planned = true
	of := func(run, trial string) string {
		return `{"version":1,"run":"` + run + `","trial":"` + trial + `"}` + "\n"
	}
	check("strangers", of("r", "a")+of("r", "c")+of("q", "b")+of("r", "b"), "a b",
		`2: a record of trial "c", which is not in the plan of run.json`,
		`3: a record of run "q", not of this one (r)`)
	planned = false
	// A line of 3 MiB, possible with many histograms, exceeds the limit of bufio.Scanner.
	long := strings.Repeat("x", 3<<20)
	check("long", line(long)+line("b"), long+" b")
}

func TestReadRecordsKeepsWhatItGot(t *testing.T) {
	broken := errors.New("input/output error")
	first := strings.NewReader(`{"version":1,"trial":"a"}` + "\n")
	records, bad, err := readRecords("t.ndjson", io.MultiReader(first, iotest.ErrReader(broken)),
		Run{}.belongs(Run{}.Plan()))
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "read t.ndjson: ") {
		t.Errorf("error is %v", err)
	}
	if len(records) != 1 || records[0].Trial != "a" || len(bad) != 0 {
		t.Errorf("%d records, bad %v; want the one before the error", len(records), bad)
	}
}

func TestBadRecordHasItsCause(t *testing.T) {
	_, bad, err := readRecords("t.ndjson", strings.NewReader("{\n"), Run{}.belongs(Run{}.Plan()))
	var cause *json.SyntaxError
	if err != nil || len(bad) != 1 || !errors.As(bad[0], &cause) {
		t.Errorf("bad is %v, error %v; want a syntax error within", bad, err)
	}
}

func TestReadRefusesAFolder(t *testing.T) {
	check := func(name string, files map[string]string, want string) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			_, records, bad, err := ReadUnchecked(dir)
			if err == nil || len(records)+len(bad) > 0 {
				t.Fatalf("%d records, bad %v, error %v; want only an error", len(records), bad, err)
			}
			if got := strings.ReplaceAll(err.Error(), dir, "DIR"); got != want {
				t.Errorf("error is\n%s, want\n%s", got, want)
			}
		})
	}
	const line = `{"version":1,"trial":"a"}` + "\n"
	check("no head", map[string]string{TrialsFile: line},
		"read run DIR: it has no run.json; is it a folder below results/?")
	check("newer head", map[string]string{TrialsFile: line, RunFile: `{"version":3}`},
		"read run DIR: it has version 3 and this prony knows 2; use a newer one")
	check("head of something else", map[string]string{TrialsFile: line, RunFile: `{"name":"x"}`},
		"read run DIR: its run.json has no version; is it a folder below results/?")
	check("torn head", map[string]string{TrialsFile: line, RunFile: `{"version":1`},
		"read run DIR/run.json: unexpected end of JSON input")
	check("no records", map[string]string{RunFile: `{"version":1}`},
		"read run: open DIR/trials.ndjson: no such file or directory")
}

// Raw data survive every later command: a folder with records is never written to again.
func TestCreateRefusesAFolderWithRecords(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, Run{ID: "first"})
	if err := w.Append(&Record{Trial: "a"}); err != nil {
		t.Fatal(err)
	}
	_, err := Create(dir, Run{ID: "second"})
	if !errors.Is(err, os.ErrExist) || !strings.HasSuffix(err.Error(), "; choose another folder") {
		t.Errorf("error is %v", err)
	}
	head, records, bad, err := ReadUnchecked(dir)
	if err != nil || len(records) != 1 || len(bad) > 0 {
		t.Errorf("%d records, bad %v, error %v; want the one of before", len(records), bad, err)
	}
	if head.ID != "first" {
		t.Errorf("the head is that of %q now", head.ID)
	}
}

// A folder that could not be created leaves nothing that prevents the next attempt.
func TestCreateCleansUp(t *testing.T) {
	dir := t.TempDir()
	obstacle := filepath.Join(dir, RunFile)
	if err := os.Mkdir(obstacle, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(dir, Run{}); !errors.Is(err, unix.EISDIR) {
		t.Errorf("error is %v, want is a directory", err)
	}
	if err := os.Remove(obstacle); err != nil {
		t.Fatal(err)
	}
	create(t, dir, Run{})
}

// wantWhole checks that the folder has exactly these records, to the byte.
func wantWhole(t *testing.T, dir string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(dir, TrialsFile))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the file holds\n%.300q, error %v; want\n%.300q", got, err, want)
	}
}

// twoTrials returns a folder with two records, and its bytes.
func twoTrials(t *testing.T) (w *Writer, dir string, bytes []byte) {
	t.Helper()
	dir = t.TempDir()
	w = create(t, dir, Run{ID: "r"})
	for _, trial := range []string{"a", "b"} {
		if err := w.Append(&Record{Trial: trial}); err != nil {
			t.Fatal(err)
		}
	}
	bytes, err := os.ReadFile(filepath.Join(dir, TrialsFile))
	if err != nil {
		t.Fatal(err)
	}
	return w, dir, bytes
}

// Writing fails: the descriptor is replaced by /dev/full.
func TestAppendOnAFullDisk(t *testing.T) {
	w, dir, before := twoTrials(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("needs /dev/full: ", err)
	}
	defer full.Close()
	if err := unix.Dup3(int(full.Fd()), int(w.f.Fd()), unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	err = w.Append(&Record{Trial: "b1-03-c"})
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("error is %v, want no space left on device", err)
	}
	for _, words := range []string{"save record of b1-03-c: ", "; free some space"} {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("error is %q, want %q in it", err, words)
		}
	}
	wantWhole(t, dir, before)
}

// The disk fills up in the middle of a record: a part is written before the error. A limit on the
// file size, 100 bytes after the existing records, simulates it.
func TestAppendTakesBackATornRecord(t *testing.T) {
	w, dir, before := twoTrials(t)
	signal.Ignore(unix.SIGXFSZ) // otherwise the limit ends the program instead of the write
	defer signal.Reset(unix.SIGXFSZ)
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	tight := unix.Rlimit{Cur: uint64(len(before)) + 100, Max: old.Max}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &tight); err != nil {
		t.Fatal(err)
	}
	failed := w.Append(&Record{Trial: "c"})
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(failed, unix.EFBIG) {
		t.Fatalf("error is %v, want file too large", failed)
	}
	wantWhole(t, dir, before)
	// With space again, the next record follows the last complete one.
	if err := w.Append(&Record{Trial: "d"}); err != nil {
		t.Fatal(err)
	}
	_, records, bad, err := ReadUnchecked(dir)
	if err != nil || len(bad) > 0 || len(records) != 3 || records[2].Trial != "d" {
		t.Errorf("%d records, bad %v, error %v; want a, b and d", len(records), bad, err)
	}
}

// Removed or changed files are detected.
func TestLook(t *testing.T) {
	for what, harm := range map[string]func(dir string) error{
		"":            func(string) error { return nil },
		"the folder":  os.RemoveAll,
		"the records": func(dir string) error { return os.Remove(filepath.Join(dir, TrialsFile)) },
		"the head":    func(dir string) error { return os.Remove(filepath.Join(dir, RunFile)) },
		"their end": func(dir string) error {
			return os.Truncate(filepath.Join(dir, TrialsFile), 9)
		},
		"a copy": func(dir string) error {
			file := filepath.Join(dir, TrialsFile)
			b, err := os.ReadFile(file)
			return errors.Join(err, os.Remove(file), os.WriteFile(file, b, 0o644))
		},
	} {
		w, dir, _ := twoTrials(t)
		if err := harm(dir); err != nil {
			t.Fatal(err)
		}
		if err := w.Look(); (err == nil) != (what == "") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A resumed run appends to existing records; an incomplete record stays, on its own line.
func TestResume(t *testing.T) {
	_, dir, before := twoTrials(t)
	path := filepath.Join(dir, TrialsFile)
	torn := append(bytes.Clone(before), `{"version":1,"tri`...)
	if err := os.WriteFile(path, torn, 0o644); err != nil {
		t.Fatal(err)
	}
	w, err := Resume(dir, Run{Version: Version, ID: "r", Resumed: []Resumption{{Trials: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Append(&Record{Trial: "c"}), w.Close()); err != nil {
		t.Fatal(err)
	}
	head, records, bad, err := ReadUnchecked(dir)
	if err != nil || len(records) != 3 || len(bad) != 1 || bad[0].Line != 3 ||
		records[2].Trial != "c" || len(head.Resumed) != 1 {
		t.Errorf("head %+v, %d records, bad %v, error %v", head, len(records), bad, err)
	}
	if _, err := Resume(t.TempDir(), Run{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing to resume: %v", err)
	}
}

// The later record of a repeated trial counts. A second record without a repetition, or of the same
// resumption, is left out and reported.
func TestRepeatedTrials(t *testing.T) {
	head := Run{Version: Version, ID: "r", Trials: []string{"a", "b"}, Resumed: []Resumption{
		{Repeats: []string{"a"}}, {Repeats: []string{"a"}}}}
	check := func(want string, bad int, records ...Record) {
		t.Helper()
		dir := t.TempDir()
		w := create(t, dir, head)
		for i := range records {
			records[i].Order, records[i].Outcome = i, Failed
			if err := w.Append(&records[i]); err != nil {
				t.Fatal(err)
			}
		}
		_, got, wrong, err := Read(dir)
		text := ""
		for _, r := range got {
			text += fmt.Sprint(r.Trial, r.Order, " ")
		}
		if err != nil || text != want || len(wrong) != bad {
			t.Errorf("read %q, %v, %v; want %q and %d bad lines", text, wrong, err, want, bad)
		}
	}
	a, b := Record{Trial: "a"}, Record{Trial: "b"}
	a1, a2, b1 := Record{Trial: "a", Resumed: 1}, Record{Trial: "a", Resumed: 2},
		Record{Trial: "b", Resumed: 1}
	check("b1 a2 ", 0, a, b, a1)
	check("b1 a3 ", 0, a, b, a1, a2)
	check("b1 a2 ", 0, a, b, a2)
	check("a0 b1 ", 1, a, b, b1) // not repeated
	check("a0 b1 ", 1, a, b, a)
	check("b1 a2 ", 1, a, b, a1, a1)
	check("b1 a2 ", 1, a, b, a2, a1)
	check("a0 b1 ", 1, a, b, Record{Trial: "a", Resumed: 3}) // of no resumption
}

// endless returns one piece forever.
type endless string

func (e endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		n += copy(p[n:], e)
	}
	return n, nil
}

func all(*Record, int) error { return nil }

// Reading a file without an end, or with more than a run can have, fails with a message.
func TestReadingIsBounded(t *testing.T) {
	check := func(piece, want string) {
		t.Helper()
		_, bad, err := readRecords("f", endless(piece), all)
		if err == nil || !strings.Contains(err.Error(), want) || len(bad) > maxBad {
			t.Errorf("of %q: %v, %d bad, want %s", piece, err, len(bad), want)
		}
	}
	check("\x00", "f:1: beyond what is read: a line of more than 16 MiB")
	check("{\"version\":1}\n", "f:21: not a record: it names no trial")
	check("{\"version\":1,\"trial\":\"a\"}\n", "beyond what is read: more than 20000 records")
	check("x\n", "f:21: ")
	mark, _, err := readRecords("f", strings.NewReader(
		"\ufeff{\"version\":1,\"trial\":\"a\"}\n"), all)
	if len(mark) != 1 || err != nil {
		t.Errorf("with a byte order mark: %d, %v", len(mark), err)
	}
}

// A record and a head are on disk before anything follows, and so is the folder's entry of the
// head. If the kernel cannot sync, as for pipes and /proc (EINVAL, fsync(2)), writing fails,
// because no sync would take place.
func TestWritesAreSynced(t *testing.T) {
	w, _, _ := twoTrials(t)
	r, pipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer pipe.Close()
	if err := unix.Dup3(int(pipe.Fd()), int(w.f.Fd()), unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	if err := w.Append(&Record{Trial: "c"}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("a record was not synced: %v", err)
	}
	dir := t.TempDir()
	if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(filepath.Join(dir, "pipe"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := writeSynced(dir, "pipe", []byte("x")); !errors.Is(err, unix.EINVAL) {
		t.Errorf("a file was not synced: %v", err)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), RunFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// The file is on a disk, its folder is not.
	err = writeSynced("/proc/self/fd", fmt.Sprint(f.Fd()), []byte("x"))
	if b, read := os.ReadFile(f.Name()); !errors.Is(err, unix.EINVAL) || string(b) != "x" {
		t.Errorf("a folder was not synced: %v, %q, %v", err, b, read)
	}
}

// A key that occurs twice in one object, or is written in another case, is an error with its place,
// in each file of a run.
func TestRepeatedKeys(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(subject string, err error, place, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), place) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s %s", subject, err, place, want)
		}
	}
	says := func(subject string, err error, place, key string) {
		t.Helper()
		refused(subject, err, place, fmt.Sprintf(`the key "%s" occurs twice in one object`, key))
	}
	const good = `{"version":2,"trial":"a","block":1}` + "\n"
	write(RunFile, `{"version":2}`)
	write(TrialsFile, good+`{"version":2,"trial":"b","loads":[{"done":1,"done":2}]}`+"\n"+
		`{"version":2,"trial":"c","before":{},"hostBefore":{}}`+"\n") // its former and present name
	_, records, bad, err := ReadUnchecked(dir)
	if err != nil || len(records) != 1 || len(bad) != 2 {
		t.Fatalf("%d records, bad %v, error %v", len(records), bad, err)
	}
	says("the second record", bad[0], TrialsFile+":2: ", "done")
	says("the third record", bad[1], TrialsFile+":3: ", "hostBefore")
	write(RunFile, "{\"version\":2,\n\"blocks\":4,\n\"blocks\":5}")
	_, _, _, err = Read(dir)
	says("the head", err, RunFile+": line 3: ", "blocks")
	write(RunFile, `{"version":2,"blocks":-1}`)
	if _, _, _, err = Read(dir); err == nil || !strings.Contains(err.Error(), "blocks is -1") {
		t.Errorf("a negative number of blocks: error %v", err)
	}
	write("s", `{"version":1,"trials":["a"]}`+"\n"+`{"target":0,"requests":1,"requests":2}`+"\n")
	_, _, err = ReadSlices(dir, "s")
	says("a slice", err, "line 2: ", "requests")
	write(ScheduleFile, "{\"forNs\":1,\n\"forNs\":2}")
	_, err = ReadSchedule(dir)
	says("the schedule", err, "line 2: ", "forNs")

	write(RunFile, `{"version":2}`)
	write(TrialsFile, good+`{"version":2,"trial":"b","loads":[{"done":1,"Done":2}]}`+"\n"+
		`{"version":2,"trial":"c","verdict":{"Grade":"VALID"}}`+"\n")
	_, records, bad, err = ReadUnchecked(dir)
	if err != nil || len(records) != 1 || len(bad) != 2 {
		t.Fatalf("%d records, bad %v, error %v", len(records), bad, err)
	}
	refused("the second record", bad[0], TrialsFile+":2: ", `the key "Done" must be written "done"`)
	refused("the third record", bad[1], TrialsFile+":3: ", `"Grade" must be written "grade"`)
	write(RunFile, "{\"version\":2,\n\"Blocks\":4}")
	_, _, _, err = Read(dir)
	refused("the head", err, RunFile+": line 2: ", `the key "Blocks" must be written "blocks"`)
	write("s", `{"version":1,"trials":["a"]}`+"\n"+`{"target":0,"Requests":2}`+"\n")
	_, _, err = ReadSlices(dir, "s")
	refused("a slice", err, "line 2: ", `the key "Requests" must be written "requests"`)
}

// Every key of a run's files has one name.
func TestKeysHaveOneName(t *testing.T) {
	for _, v := range []any{&Run{}, &Record{}, &SlicesHead{}, &Slice{}, &Schedule{}} {
		formattest.Names(t, v, "json", jsontree.DecodeLine)
	}
}
