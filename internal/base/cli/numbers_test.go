package cli_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
)

// A number of a flag is what is written, or an error.
func TestExact(t *testing.T) {
	var whole int
	var long int64
	var seed uint64
	var share float64
	var after time.Duration
	var cores []int
	parse := func(arg string) error {
		whole, long, seed, share = 7, 7, 7, 7
		root := &cobra.Command{Use: "root"}
		c := &cobra.Command{Use: "verb", Run: func(*cobra.Command, []string) {},
			SilenceErrors: true, SilenceUsage: true}
		root.PersistentFlags().Int64Var(&long, "long", 7, "")
		c.Flags().IntVarP(&whole, "whole", "w", 7, "")
		c.Flags().Uint64Var(&seed, "seed", 7, "")
		c.Flags().Float64Var(&share, "share", 7, "")
		c.Flags().DurationVar(&after, "after", 0, "")
		c.Flags().IntSliceVar(&cores, "cores", nil, "")
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
	for arg, want := range map[string]time.Duration{"--after=0": 0, "--after=-1s": -time.Second,
		"--after=1m1.5s": 61500 * time.Millisecond, "--after=.5µs": 500} {
		if err := parse(arg); err != nil || after != want {
			t.Errorf("%s: %v, error %v, want %v", arg, after, err, want)
		}
	}
	if err := parse("--cores=2,13"); err != nil || !slices.Equal(cores, []int{2, 13}) {
		t.Errorf("cores %v, error %v", cores, err)
	}
	const form, decimal = "must be a whole number in decimal digits", "must be a decimal number"
	const timed, list = "must be a time with its unit, such as 10s", "such as 2,3"
	for arg, want := range map[string]string{"-w=010": form, "--whole=0x10": form,
		"--whole=1_0": form, "--whole=1e1": form, "--whole=2.5": form, "--whole=": form,
		"--whole=9223372036854775808": "is too large", "--long=08": form, "--seed=-1": form,
		"--seed=18446744073709551616": "is too large", "--share=NaN": decimal,
		"--share=inf": decimal, "--share=0x1p4": decimal, "--share=.": decimal, "--share=": decimal,
		"--share=1e999": "is too large", "--after=5": timed,
		"--after=": timed, "--after=1d": timed, "--after=1 s": timed,
		"--after=999999999h": "is too large", "--cores=": list, "--cores=1,,2": list,
		"--cores=1-3": list} {
		err := parse(arg)
		if err == nil || !strings.Contains(err.Error(), want) || cli.Code(err) != cli.Misused ||
			strings.Contains(err.Error(), "strconv") {
			t.Errorf("%s: error %v, want %q", arg, err, want)
		}
	}
}
