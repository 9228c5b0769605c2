package trial

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"prony.example/internal/service"
	"prony.example/internal/trial/processes"
	"prony.example/record"
)

// TestDumps checks that dumps are recorded until those of a run would be larger than allowed, and
// that later JVMs then write none. Files that are not regular are not the JVM's.
func TestDumps(t *testing.T) {
	dir := t.TempDir()
	check := func(id string, bytes int64, want string) {
		t.Helper()
		f := &life{lab: &Lab{Dir: dir}, rec: &record.Record{Failure: &record.Failure{Error: "x"}}}
		f.trial.ID = id
		f.trial.Subject = Subject{Service: &service.Service{},
			Target: service.Target{Runtime: "jvm"}}
		var o processes.Order
		if err := f.mayDump(&o); err != nil || o.Dumps != f.dumps {
			t.Fatalf("%s: folder %q, error %v", id, o.Dumps, err)
		}
		if f.dumps != "" && bytes > 0 {
			file := filepath.Join(f.dumps, "java_pid1.hprof.gz")
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(file, bytes); err != nil { // a file without blocks
				t.Fatal(err)
			}
			if err := os.Symlink("/", filepath.Join(f.dumps, "link")); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.collectDumps(); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(f.dumps != "", f.rec.Dumps, " ", f.rec.Failure.Error); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	check("none", 0, "true [] x")
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("without a dump, %v is left (%v)", left, err)
	}
	check("a", 7, "true [{dumps/a/java_pid1.hprof.gz 7 false}] x; the JVM left a dump: "+dir+
		"/dumps/a/java_pid1.hprof.gz")
	check("b", dumpsMost, "true [{dumps/b/java_pid1.hprof.gz 2147483648 true}] x; the JVM's dump "+
		"of 2147483648 bytes was removed, because the dumps of a run have at most 2147483648 bytes")
	check("c", dumpsMost-7, "true [{dumps/c/java_pid1.hprof.gz 2147483641 false}] x; the JVM "+
		"left a dump: "+dir+"/dumps/c/java_pid1.hprof.gz")
	check("d", 7, "false [] x")
}

// TestDumpsOfRuntimes checks which targets get a folder for dumps: JVMs and native images of Java.
func TestDumpsOfRuntimes(t *testing.T) {
	check := func(language, runtime string, want bool) {
		t.Helper()
		f := &life{lab: &Lab{Dir: t.TempDir()}, rec: &record.Record{}}
		f.trial.Subject = Subject{Service: &service.Service{Language: language},
			Target: service.Target{Runtime: runtime}}
		var o processes.Order
		if err := f.mayDump(&o); err != nil || (o.Dumps != "") != want {
			t.Errorf("%s, %s: folder %q, error %v, want one: %t", language, runtime, o.Dumps, err,
				want)
		}
	}
	check("Kotlin", "jvm", true)
	check("Java", "native", true)
	check("Go", "native", false)
}
