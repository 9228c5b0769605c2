// Command prony-home takes in what services tell about themselves and answers queries about it. It
// is the other half of prony's verbs "telemetry serve", "query", "store" and, where Parquet is
// asked for, "report", which start it: a program of its own, so that what measures links no
// database, no receiver, no bucket's client and no format that few need.
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

// program is where the verbs read and write.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
}

// run is the whole program but for its end. It speaks as prony, which people have called.
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
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errs)
	err := root.ExecuteContext(ctx)
	if err != nil && !cli.Told(err) && !errors.Is(err, syscall.EPIPE) { // the reader has enough
		fmt.Fprintf(errs, "prony: %s\n", format.Clip(cmdlog.Hush(err.Error())))
	}
	if cut := errors.Join(out.Close(), errs.Close()); cut != nil {
		return errors.Join(err, cut)
	}
	return err
}
