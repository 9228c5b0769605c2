// Command prony compares the performance of HTTP services and reports whether a difference is real.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/base/cmdlog"
	"prony.example/internal/base/format"
)

func main() {
	w := begin()
	ctx, stop := cli.Context()
	err := run(ctx, w, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(cli.Code(err))
}

// run runs the whole program except for its exit, and writes all output to the writers.
func run(ctx context.Context, w world, args []string, stdout, stderr io.Writer) error {
	out, errs := format.NewScreen(stdout), format.NewScreen(stderr)
	root := newRoot(&app{world: w, args: cmdlog.Hushed(args), stdout: out, stderr: errs})
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errs)
	err := execute(cli.Interruptible(ctx), root, args)
	if err != nil && !cli.Told(err) && !errors.Is(err, syscall.EPIPE) { // the reader has enough
		fmt.Fprintf(errs, "prony: %s\n", format.Clip(cmdlog.Hush(err.Error())))
	}
	cut := out.Close()
	if cut != nil && err == nil && !errors.Is(cut, syscall.EPIPE) {
		fmt.Fprintf(errs, "prony: %v\n", cut)
	}
	if cut := errors.Join(cut, errs.Close()); cut != nil {
		return errors.Join(err, cut)
	}
	return err
}

// readers are the verbs that need no cleanup. They ignore the context, and may read a pipe that
// never ends, so a signal ends them immediately.
var readers = []string{"audit", "compare", "explain", "gate", "import", "init", "logs", "plan",
	"profile", "report", "services", "traces", "trend"}

func execute(ctx context.Context, root *cobra.Command, args []string) error {
	if dir := os.TempDir(); !filepath.IsAbs(dir) {
		return cli.Usagef("TMPDIR: %s is not an absolute path; services run in other folders", dir)
	}
	c, _, err := root.Find(args)
	// A command after -- may need cleanup.
	if err != nil || !slices.Contains(readers, c.Name()) || slices.Contains(args, "--") {
		return root.ExecuteContext(ctx)
	}
	return reading(ctx, c.Name(), func() error { return root.ExecuteContext(ctx) })
}

// reading waits for do, but not longer than until a signal.
func reading(ctx context.Context, verb string, do func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- do() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%s: ended by a signal before it was complete", verb)
	}
}

const about = `Prony compares the performance of HTTP services and reports whether a
difference is real. In a checkout, "prony" without a verb is "prony run".`

const examples = `  prony                              in a checkout: the canonical comparison
  prony versus ./old ./new --get /   services of your own: which is faster?
  prony init --from openapi.yaml     a first prony.yaml for a service of your own
  prony run --targets 'java-*'       only some targets
  prony plan suites/canonical.yaml   what would run, in which order
  prony services                     the catalog, and what is missing to run each here
  prony verify go-nethttp            do its responses follow the contract?
  prony load http://127.0.0.1:8080/  load any server
  prony report results/RUN           print the report again
  prony doctor                       is this machine fit to measure on?
  prony run --aa --blocks 10         noise: differences without a cause
  prony compare results/A results/B  what differs between two runs, and how sure that is
  prony gate results/RUN             pass, fail or inconclusive, for scripts
  prony audit results.md             can these published numbers be true?`

// formerFlags maps former names of flags to their current names.
var formerFlags = map[string]string{"lead": "lead-in", "unlike": "allow-mismatch", "again": "aa"}

// furtherCmds are verbs of builds with a build tag.
var furtherCmds []func() *cobra.Command

func newRoot(app *app) *cobra.Command {
	root := &cobra.Command{
		Use: "prony", Short: "Compare the performance of HTTP services", Long: about,
		Example:       examples,
		SilenceErrors: true, SilenceUsage: true, Version: version(),
	}
	root.Args = cobra.ArbitraryArgs
	root.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return app.bare(c)
		}
		c.SuggestionsMinimumDistance = 2
		hint := "see prony --help"
		if near := c.SuggestionsFor(args[0]); len(near) > 0 {
			hint = fmt.Sprintf("did you mean %q?", near[0])
		}
		return cli.Usagef("unknown command %q; %s", args[0], hint)
	}
	root.SetFlagErrorFunc(cli.FlagError)
	cli.FormerFlags(root, formerFlags)
	var show bool
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		cmdlog.Show(nil)
		if show {
			app.show()
		}
		if err := cli.NotEmpty(c.Flags()); err != nil {
			return err
		}
		return cli.FollowSuffix(c.Flags())
	}
	root.PersistentFlags().BoolVarP(&show, "show", "x", false, "print external actions, such as "+
		"commands, as shell lines")
	root.PersistentFlags().StringVar(&app.rootFlag, "root", os.Getenv("PRONY_ROOT"),
		"`FOLDER` with services/ and suites/ (default: found upwards)")
	root.AddCommand(app.loadCmd(), app.capacityCmd(), app.rainCmd(), app.reportCmd(),
		app.importCmd(), app.auditCmd(), app.compareCmd(), app.gateCmd(), app.trendCmd(),
		app.siteCmd(), app.profileCmd(), app.tracesCmd(), app.logsCmd(), app.explainCmd(),
		app.initCmd(), app.generateCmd())
	app.addTrials(root)
	root.AddCommand(removedCmds()...)
	root.AddCommand(topicCmds()...)
	for _, c := range furtherCmds {
		root.AddCommand(c())
	}
	app.addCompletion(root)
	group(root)
	cli.Exact(root)
	return root
}

// bare runs the program without a verb: as run if there is a catalog, otherwise it prints the help.
func (a *app) bare(c *cobra.Command) error {
	if _, err := a.root(); err != nil {
		return c.Help()
	}
	main, _, err := c.Find([]string{"run"})
	if err != nil {
		return err
	}
	main.SetContext(c.Context())
	return main.RunE(main, nil)
}
