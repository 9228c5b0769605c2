package faults

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"prony.example/internal/base/cli"
	"prony.example/internal/base/files"
	"prony.example/internal/dev/testsets"
)

// programFiles are the sources of the program under test, and of its inputs.
var programFiles = testsets.Needs{
	Files: []string{"cmd", "home", "internal", "load", "record", "stats", "go.mod", "go.sum",
		"services/go-nethttp/service.yaml"},
}

// Every verb of the program is in the table, with tests or the reason for none.
func TestEveryVerbIsAsked(t *testing.T) {
	testsets.Whole(t, "every verb")
	s := newScene(t)
	has := []string{""}
	for at := 0; at < len(has); at++ {
		has = append(has, s.below(t, has[at])...)
	}
	if len(has) < 20 {
		t.Fatalf("the program has the verbs %q only", has)
	}
	var asked []string
	for _, v := range verbs {
		if v.none == "" && len(v.reads)+len(v.writes)+len(v.wrong) == 0 {
			t.Errorf("%s is asked nothing and does not say why", v.name)
		}
		if (len(v.prints) == 0) == (v.silent == "") {
			t.Errorf("%s has lines that print, or says why there is none: one of the two", v.name)
		}
		if !slices.Contains(has, v.name) {
			t.Errorf("the table has a verb %q, which the program lacks", v.name)
		}
		asked = append(asked, v.name)
	}
	for _, name := range has {
		if !slices.Contains(asked, name) && !strings.HasPrefix(name, "truth ") {
			t.Errorf("%s is a verb without a row: add it to table_test.go, with the lines that "+
				"read and write, or why there is nothing to ask", name)
		}
	}
}

// below returns the verbs below one, from the shell completion, which has a description for each.
func (s *scene) below(t *testing.T, verb string) (names []string) {
	t.Helper()
	e := s.try("", append(append([]string{"__complete"}, strings.Fields(verb)...), "")...)
	if e.code != 0 {
		t.Fatal(e.stderr)
	}
	for line := range strings.Lines(e.stdout) {
		if name, _, ok := strings.Cut(line, "\t"); ok && name != "help" {
			names = append(names, strings.TrimSpace(verb+" "+name))
		}
	}
	return names
}

// Any input may be read, also on a small machine.
func TestInputs(t *testing.T) {
	testsets.Once(t, "every verb with one bad input each", programFiles)
	more, lines := testsets.More(t, programFiles), 0
	for _, v := range verbs {
		for _, l := range v.reads {
			lines++
			for i, in := range inputs {
				if !more && i != lines%len(inputs) {
					continue
				}
				if strings.Contains(" "+l.open+" ", " "+in.name+" ") {
					continue
				}
				t.Run(l.args+" "+l.at+"/"+in.name, func(t *testing.T) {
					t.Parallel()
					s := newScene(t)
					s.spoil(l, in)
					before := s.look()
					e := s.try(s.confined(), s.arguments(l.args)...)
					e.check(t)
					if e.toil > toil && !strings.Contains(l.args, "URL") { // otherwise it measures
						t.Errorf("it took %v of processor time, want at most %v", e.toil, toil)
					}
					codes := append([]int{1}, l.codes...)
					fine := strings.Contains(" "+l.fine+" ", " "+in.name+" ")
					invalid := e.code == cli.Invalid && slices.Contains(codes, e.code)
					if fine && (e.code == 0 || invalid) { // a server may reject a request
						return
					}
					e.refused(t, codes...)
					same(t, before, s.lookAfter(l))
				})
			}
		}
	}
}

// Output is complete or missing, and earlier files stay.
func TestFullDisk(t *testing.T) {
	testsets.Once(t, "verbs that write, on a full disk", programFiles)
	more := testsets.More(t, programFiles)
	const old = "before\n<!-- prony:begin x -->\n<!-- prony:end x -->\nafter\n"
	for i, v := range verbs {
		for k, l := range v.writes {
			if !more && (i+k)%4 != 0 {
				continue
			}
			t.Run(l.args, func(t *testing.T) {
				t.Parallel()
				s := newScene(t)
				for _, word := range s.arguments(l.args) {
					if strings.HasPrefix(word, s.path("OUT")) && word != s.path("OUT") {
						s.put(filepath.Base(word), old)
					}
				}
				before := s.look()
				e := s.try("ulimit -f 0", s.arguments(l.args)...)
				e.check(t)
				e.refused(t, append([]int{1}, l.codes...)...)
				after := s.look()
				delete(after, s.path("OUT")) // the folder for all output
				same(t, before, after)
			})
		}
	}
}

// Output to a full standard output fails, as does every verb's help.
func TestFullOutput(t *testing.T) {
	testsets.Once(t, "verbs that print, into a full disk", programFiles)
	more := testsets.More(t, programFiles)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { full.Close() })
	for i, v := range verbs {
		for k, text := range append(v.prints, v.name+" --help") {
			if !more && (i+k)%4 != 0 {
				continue
			}
			t.Run(text, func(t *testing.T) {
				t.Parallel()
				s := newScene(t)
				s.furnish(text)
				p := s.begin("", s.arguments(text)...)
				p.cmd.Stdout = full
				p.run(t)
				e := p.wait(t)
				e.check(t)
				e.refused(t, 1)
				if !strings.Contains(e.stderr, "no space left on device") {
					t.Errorf("it fails of something else: %s", e.stderr)
				}
			})
		}
	}
}

// A program with too small a limit on open files names the number before it opens a connection.
func TestFewFiles(t *testing.T) {
	testsets.Once(t, "programs within a limit on open files", programFiles)
	for _, row := range []struct{ limit, args, says string }{
		{"10", "load URL -n 10 -c 8", "may have 10: raise the limit"},
		{"12", "load TLS -n 10 -c 8", "may have 12: raise the limit"},
		{"16", "load URL -n 10 -c 4 --generators 2 --listen 127.0.0.1:0 --key OUT", "may have 16"},
		{"16", "serve RUN --listen 127.0.0.1:0", "may have 16 open files, but it needs at least " +
			"80: raise the limit with ulimit -n 2112"},
		{"16", "telemetry serve --dir OUT", "may have 16 open files, but it needs at least 96"},
	} {
		t.Run(row.args, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.furnish(row.args)
			secure := strings.Replace(s.url, "http:", "https:", 1)
			e := s.try("ulimit -n "+row.limit,
				s.arguments(strings.ReplaceAll(row.args, "TLS", secure))...)
			e.check(t)
			e.refused(t, 1)
			if !strings.Contains(e.stderr, row.says) ||
				strings.Contains(e.stderr, "is the service running?") {
				t.Errorf("it says %s", e.stderr)
			}
		})
	}
}

// Invalid command lines are refused before any effect.
func TestWrongLines(t *testing.T) {
	testsets.Once(t, "command lines that make no sense", programFiles)
	more, lines := testsets.More(t, programFiles), 0
	check := func(name string, args func(*scene) []string) {
		if lines++; !more && lines%4 != 0 {
			return
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			before := s.look()
			e := s.try("", args(s)...)
			e.check(t)
			e.refused(t, 2)
			same(t, before, s.look())
		})
	}
	for _, v := range verbs {
		for _, text := range v.wrong {
			check(text, func(s *scene) []string { return s.arguments(text) })
		}
		check(v.name+" --no-such-flag", func(*scene) []string {
			return append(strings.Fields(v.name), "--no-such-flag")
		})
	}
}

// strange are unusual arguments.
var strange = map[string]string{
	"nothing": "", "escapes": "\x1b]0;gone\x07\x1b[2J", "no text": "\xff\xfe", "two lines": "a\nb",
	"long": strings.Repeat("a", 100<<10),
}

// Strange arguments do no harm.
func TestStrangeArguments(t *testing.T) {
	testsets.Once(t, "every verb with one strange argument each", programFiles)
	more := testsets.More(t, programFiles)
	for k, v := range verbs {
		if v.name == "" || strings.HasPrefix(v.name, "completion") {
			continue // it takes no argument
		}
		for i, name := range slices.Sorted(maps.Keys(strange)) {
			if !more && i != k%len(strange) {
				continue
			}
			t.Run(v.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := newScene(t)
				args := append([]string{"--root", s.path("ROOT")}, strings.Fields(v.name)...)
				e := s.try("", append(args, strange[name])...)
				e.check(t)
				e.refused(t, 1, 2)
			})
		}
	}
}

// endings are the signals that end a program.
var endings = []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}

// A verb that waits for an input ends on a signal.
func TestSignals(t *testing.T) {
	testsets.Once(t, "verbs that read, ended by a signal each", programFiles)
	more, lines := testsets.More(t, programFiles), 0
	for _, v := range verbs {
		for _, l := range v.reads {
			lines++
			for i, sig := range endings {
				if !more && (i != lines%3 || lines%2 != 0) {
					continue
				}
				t.Run(l.args+" "+l.at+"/"+sig.String(), func(t *testing.T) {
					t.Parallel()
					s := newScene(t)
					s.spoil(l, input{make: func(path string, _ []byte) error {
						return syscall.Mkfifo(path, 0o644)
					}})
					at := s.path(l.at)
					if l.at == "" {
						at = s.path("BAD")
					}
					held, err := os.OpenFile(at, os.O_RDWR, 0) // so that it has a writer
					if err != nil {
						t.Fatal(err)
					}
					defer held.Close()
					before := s.look()
					p := s.begin("", s.arguments(l.args)...)
					p.run(t)
					time.Sleep(500 * time.Millisecond) // it reads, or has refused to
					began := time.Now()
					_ = syscall.Kill(p.cmd.Process.Pid, sig) // it may have ended
					e := p.wait(t)
					if took := time.Since(began); took > ending {
						t.Errorf("it ended %s after %s", took, sig)
					}
					e.check(t)
					if e.signal != sig {
						e.refused(t, append([]int{1}, l.codes...)...)
					}
					same(t, before, s.lookAfter(l))
				})
			}
		}
	}
}

// The output of another tool for each request is in memory once while it is read, up to its limit,
// from a file or from a pipe.
func TestLargeOutputs(t *testing.T) {
	testsets.Once(t, "a large output of another tool on a small machine", programFiles)
	more := testsets.More(t, programFiles)
	const jtl = "timeStamp,elapsed,label,responseCode,success,bytes,allThreads,Latency,Connect\n"
	const jtlRow = "1700000000000,12,GET /a/path/of/some/length,200,true,300,1,12,0\n"
	const hey = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read," +
		"status-code,offset\n"
	const heyRow = "0.0009,0.0004,0.0000,0.0000,0.0002,0.0002,200,0.0002\n"
	for i, of := range []struct{ verb, head, row string }{
		{"audit BAD", jtl, jtlRow}, {"audit BAD", hey, heyRow}, {"import BAD", jtl, jtlRow},
		{"import /dev/stdin", jtl, jtlRow},
	} {
		if !more && i > 0 {
			break
		}
		t.Run(of.verb, func(t *testing.T) {
			s := newScene(t)
			s.put("HEAD", of.head)
			rows := (files.Results - len(of.head)) / len(of.row)
			if err := holds(of.row, rows)(s.path("ROWS"), nil); err != nil {
				t.Fatal(err)
			}
			whole := "cat HEAD ROWS >BAD; rm ROWS; "
			if strings.Contains(of.verb, "stdin") {
				whole += "mkfifo PIPE; cat BAD >PIPE & exec <PIPE; "
			}
			if e := s.try(whole+s.confined(), s.arguments(of.verb)...); e.code != 0 {
				t.Errorf("exit %d %v: %s", e.code, e.signal, e.stderr)
			}
		})
	}
}
