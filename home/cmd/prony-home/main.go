// Command prony-home collects telemetry of services and answers queries on it. The commands
// "telemetry serve", "query", "store" and, for Parquet, "report" of prony start it. It is a
// separate program so that prony itself links no database, receiver, bucket client or rarely used
// format.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"prony.example/home/parquet"
	"prony.example/internal/base/cli"
	"prony.example/internal/base/cmdlog"
	"prony.example/internal/base/format"
	"prony.example/internal/telemetry"
	"prony.example/internal/telemetry/flags"
)

func main() {
	ctx, stop := cli.Context()
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(cli.Code(err))
}

const about = `Prony-home collects telemetry of services (traces, metrics and logs) and
serves queries on it. Prony starts it when it is needed; to start it by hand, run
"prony telemetry serve" or "prony query".`

// program holds the streams of the commands.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
}

// run runs the program except for its exit. Its messages name prony, the command that the user
// called.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	out, errs := format.NewScreen(stdout), format.NewScreen(stderr)
	p := &program{stdin, out, errs}
	root := &cobra.Command{Use: telemetry.HomeName, Long: about, SilenceErrors: true,
		SilenceUsage: true, CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true}}
	root.SetFlagErrorFunc(cli.FlagError)
	root.AddCommand(flags.Telemetry(p.serve), flags.Ask(p.query), flags.Bucket(p.store))
	root.AddCommand(&cobra.Command{
		Use: "version", Short: "Print the version of prony that this program belongs to, as JSON",
		Args: cli.Arguments(0, 0),
		RunE: func(*cobra.Command, []string) error {
			return json.NewEncoder(out).Encode(telemetry.OwnVersion())
		},
	})
	root.AddCommand(&cobra.Command{
		Use: telemetry.ParquetVerb, Short: "Store a table from standard input as Parquet",
		Args: cli.Arguments(0, 0),
		RunE: func(*cobra.Command, []string) error { return parquet.Write(stdout, stdin) },
	})
	cli.Exact(root)
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errs)
	err := root.ExecuteContext(ctx)
	if err != nil && !cli.Told(err) && !errors.Is(err, syscall.EPIPE) { // a closed pipe
		fmt.Fprintf(errs, "prony: %s\n", format.Clip(cmdlog.Hush(err.Error())))
	}
	if cut := errors.Join(out.Close(), errs.Close()); cut != nil {
		return errors.Join(err, cut)
	}
	return err
}
