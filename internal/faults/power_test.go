package faults

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"prony/internal/tests"
)

// A power cut leaves what was synced: a file's data before it has its name, the name itself after,
// and a record before its trial is told as done.
func TestOrderOfSyncs(t *testing.T) {
	tests.Once(t, "the order of syncs, by strace", tests.Needs{Files: programFiles.Files,
		Facts: []string{tests.Version("strace", "-V")}})
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	check := func(text string, want ...string) {
		t.Helper()
		s := newScene(t)
		p := s.begin("", s.arguments(text)...)
		calls := s.path("calls")
		p.cmd.Path = strace
		p.cmd.Args = append([]string{"strace", "-f", "-y", "-qq", "-o", calls, "-e",
			"trace=fsync,fdatasync,rename,renameat,renameat2,write"}, p.cmd.Args...)
		p.run(t)
		if e := p.wait(t); e.code != 0 && e.code != 4 {
			t.Fatalf("%s: exit %d: %s", text, e.code, e.stderr)
		}
		seen, err := os.ReadFile(calls)
		if err != nil {
			t.Fatal(err)
		}
		rest := string(seen)
		for _, call := range want {
			at := regexp.MustCompile(strings.ReplaceAll(call, "DIR", s.dir)).FindStringIndex(rest)
			if at == nil {
				t.Fatalf("%s: no %s after what came before it in\n%s", text, call, rest)
			}
			rest = rest[at[1]:]
		}
	}
	check("report RUN -o OUT.json", `write\(\d+<DIR/OUT\.json\.\d+\.new>`,
		`f(data)?sync\(\d+<DIR/OUT\.json\.\d+\.new>\) += 0`, `rename\w*\(.*OUT\.json"\) += 0`,
		`fsync\(\d+<DIR>\) += 0`)
	check("load URL -n 10 -c 1 --save=OUT", `write\(\d+<DIR/OUT/trials\.ndjson>`,
		`f(data)?sync\(\d+<DIR/OUT/trials\.ndjson>\) += 0`, `write\(1<`)
}
