package cli_test

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
)

// A number of a flag is what is written, or an error.
func TestExact(t *testing.T) {
	var whole int
	var long int64
	var seed uint64
	var share float64
	parse := func(arg string) error {
		whole, long, seed, share = 7, 7, 7, 7
		root := &cobra.Command{Use: "root"}
		c := &cobra.Command{Use: "verb", Run: func(*cobra.Command, []string) {},
			SilenceErrors: true, SilenceUsage: true}
		root.PersistentFlags().Int64Var(&long, "long", 7, "")
		c.Flags().IntVarP(&whole, "whole", "w", 7, "")
		c.Flags().Uint64Var(&seed, "seed", 7, "")
		c.Flags().Float64Var(&share, "share", 7, "")
		root.SetFlagErrorFunc(cli.FlagError)
		root.AddCommand(c)
		cli.Exact(root)
		root.SetArgs([]string{"verb", arg})
		return root.Execute()
	}
	for _, arg := range []string{"--whole=3", "-w=-3", "--long=3", "--seed=18446744073709551615",
		"--share=0.5", "--share=1e3", "--share=.5", "--share=-2", "--share=08.5"} {
		if err := parse(arg); err != nil || whole == 7 && long == 7 && seed == 7 && share == 7 {
			t.Errorf("%s: %d %d %d %v, error %v", arg, whole, long, seed, share, err)
		}
	}
	const form, decimal = "must be a whole number in decimal digits", "must be a decimal number"
	for arg, want := range map[string]string{"-w=010": form, "--whole=0x10": form,
		"--whole=1_0": form, "--whole=1e1": form, "--whole=2.5": form, "--whole=": form,
		"--whole=9223372036854775808": "is too large", "--long=08": form, "--seed=-1": form,
		"--seed=18446744073709551616": "is too large", "--share=NaN": decimal,
		"--share=inf": decimal, "--share=0x1p4": decimal, "--share=.": decimal, "--share=": decimal,
		"--share=1e999": "is too large"} {
		err := parse(arg)
		if err == nil || !strings.Contains(err.Error(), want) || cli.Code(err) != cli.Misused ||
			strings.Contains(err.Error(), "strconv") {
			t.Errorf("%s: error %v, want %q", arg, err, want)
		}
	}
}
