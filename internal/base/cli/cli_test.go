package cli_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"prony.example/internal/base/cli"
)

func TestCode(t *testing.T) {
	check := func(want int, told bool, err error) {
		t.Helper()
		if got := cli.Code(err); got != want || cli.Told(err) != told {
			t.Errorf("%v: code %d, told %v; want %d, %v", err, got, cli.Told(err), want, told)
		}
	}
	check(cli.Fine, false, nil)
	check(cli.Fine, false, cli.Usage(nil))
	check(cli.Failed, false, errors.New("x"))
	check(cli.Misused, false, cli.Usagef("no %s", "x"))
	check(cli.Misused, false, fmt.Errorf("read: %w", cli.Usage(errors.New("x"))))
	check(cli.Invalid, true, fmt.Errorf("run: %w", cli.End(cli.Invalid, "%d trials", 3)))
	ended := cli.End(cli.Invalid, "the load is INVALID")
	check(cli.Invalid, true, errors.Join(ended, fmt.Errorf("a: %w", ended)))
	check(cli.Invalid, false, errors.Join(ended, io.EOF)) // something remains to be printed
	check(cli.Invalid, false, fmt.Errorf("b: %w", errors.Join(io.EOF, ended)))
	if err := cli.Usage(io.EOF); !errors.Is(err, io.EOF) || err.Error() != "EOF" {
		t.Errorf("it has become %v", err)
	}
}

// verb is a command that writes formats, with flags that have a list of allowed words.
type verb struct {
	format, file, view string
	kinds              []string
}

// say runs the command.
func (v *verb) say(args ...string) (help string, err error) {
	c := &cobra.Command{Use: "verb [A]", SilenceErrors: true, SilenceUsage: true,
		Args: cli.Arguments(0, 1), RunE: func(*cobra.Command, []string) error { return nil }}
	c.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		return cli.FollowSuffix(c.Flags())
	}
	c.SetFlagErrorFunc(cli.FlagError)
	v.view, v.kinds = "auto", []string{"cpu"}
	cli.Output(c, &v.format, &v.file, "text", "csv", "json")
	cli.OneOf(c, &v.view, "view,v", "meanwhile", "auto", "live")
	cli.SomeOf(c, &v.kinds, "kind", "what", "cpu", "alloc", "lock")
	var out strings.Builder
	c.SetOut(&out)
	c.SetArgs(args)
	err = c.Execute()
	return out.String(), err
}

func TestChoices(t *testing.T) {
	check := func(want verb, args ...string) {
		t.Helper()
		var got verb
		_, err := got.say(args...)
		if err != nil || got.format != want.format || got.view != want.view ||
			!slices.Equal(got.kinds, want.kinds) {
			t.Errorf("%q: %+v, %v; want %+v", args, got, err, want)
		}
	}
	cpu := []string{"cpu"}
	check(verb{format: "text", view: "auto", kinds: cpu})
	check(verb{format: "csv", view: "live", kinds: cpu}, "--format", "csv", "-v", "live")
	check(verb{format: "text", view: "auto", kinds: []string{"lock", "alloc", "cpu"}},
		"--kind", "lock,alloc", "--kind", "cpu")
	check(verb{format: "json", view: "auto", kinds: cpu}, "-o", "a.JSON")
	check(verb{format: "text", view: "auto", kinds: cpu}, "--format", "txt")
	check(verb{format: "text", view: "auto", kinds: cpu}, "-o", "a.log")
	check(verb{format: "csv", view: "auto", kinds: cpu}, "-o", "a.html", "--format", "csv")
}

func TestMisuse(t *testing.T) {
	check := func(want string, args ...string) {
		t.Helper()
		_, err := (&verb{}).say(args...)
		if cli.Code(err) != cli.Misused || err.Error() != want {
			t.Errorf("%q: %v, want %s", args, err, want)
		}
	}
	check(`--format "xml": there are text, csv, json; see verb --help`, "--format", "xml")
	check(`--kind "cpu,heat": there are cpu, alloc, lock; see verb --help`, "--kind", "cpu,heat")
	check(`--view "": there are auto, live; see verb --help`, "--view", "")
	check("--output a.md: this command has no format for .md; there are text, csv, json, or "+
		"choose a format with --format", "-o", "a.md")
	check("expected verb [A] [flags], got 2 arguments; see verb --help", "a", "b")
	check("unknown flag: --foo; see verb --help", "--foo")
}

// TestNotEmpty checks that an empty choice is an error with the flag's name, its value and what to
// write.
func TestNotEmpty(t *testing.T) {
	check := func(refused string, args ...string) {
		t.Helper()
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		fs.StringArray("git", nil, "")
		fs.StringSlice("metric", nil, "")
		fs.String("rate", "", "")
		fs.String("body", "", "")
		fs.String("connect-to", "", "")
		fs.String("unix", "", "")
		if err := fs.Parse(args); err != nil {
			t.Fatal(err)
		}
		err := cli.NotEmpty(fs)
		if refused == "" && err == nil {
			return
		}
		if cli.Code(err) != cli.Misused || !strings.HasPrefix(err.Error(), refused) ||
			!strings.HasSuffix(err.Error(), ", or leave the flag out") {
			t.Errorf("%q: %v, want %q", args, err, refused)
		}
	}
	check("")
	check("", "--git", "main", "--metric", "p99,mean", "--rate", "1", "--body", "")
	git := `--git "": the value is empty, perhaps because a variable of your script is not set; ` +
		`give a revision, such as main or HEAD~1, or`
	check(git, "--git", "")
	check(git, "--git", "main", "--git", " \t")
	check(`--metric "": `, "--metric=")
	check(`--metric "": `, "--metric", "p99,,mean")
	check(`--rate "": `, "--rate", "")
	check(`--connect-to "": `, "--connect-to", "")
	check(`--unix "": `, "--unix=")
}

func TestHelpAndCompletion(t *testing.T) {
	check := func(want string, args ...string) {
		t.Helper()
		if out, err := (&verb{}).say(args...); err != nil || !strings.Contains(out, want) {
			t.Errorf("%q says %s (%v), want %q", args, out, err, want)
		}
	}
	check(`--format string   text, csv or json (default "text")`, "--help")
	check(`-v, --view string     meanwhile: auto or live (default "auto")`, "--help")
	check("what: cpu, alloc or lock (default cpu)", "--help")
	check("cpu\nalloc\nlock\n:4\n", cobra.ShellCompNoDescRequestCmd, "--kind", "")
}

// TestUntilEnd checks that the context ends with its stream and not before.
func TestUntilEnd(t *testing.T) {
	r, w := io.Pipe()
	ctx, stop := cli.UntilEnd(t.Context(), r)
	defer stop()
	if _, err := w.Write([]byte("still here")); err != nil || ctx.Err() != nil {
		t.Fatal(err, ctx.Err())
	}
	w.Close()
	<-ctx.Done()
}
