package flags

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
)

const storeAbout = `Store copies runs to and from a bucket of S3's protocol: Amazon's, or your own
server's. A run is s3://BUCKET/PREFIX/RUN/, with an object for each file of its folder. Store
removes nothing on either side. It copies run.json last, so an incomplete run is never read as a
run. It skips files whose size and checksum are equal on both sides.

Credentials and server come from the usual variables: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
AWS_SESSION_TOKEN, AWS_REGION, and AWS_ENDPOINT_URL for a server that is not Amazon's.`

const storeExamples = `  prony store push results s3://bench/nightly
  prony store pull s3://bench/nightly results --newest 30
  AWS_ENDPOINT_URL=https://s3.example.com prony store push results/RUN s3://bench
  prony store keep s3://bench/nightly results -- gate results/RUN --last-good results/good`

// Store holds the flags and arguments of the command store.
type Store struct {
	Push     bool // false: pull
	Dir      string
	Place    string // s3://bucket/prefix
	Newest   int    // maximum number of runs; 0: all
	LastGood bool   // only the last good run
	Every    time.Duration
}

// Bucket returns the command store. It calls do with valid arguments.
func Bucket(do func(context.Context, Store) error) *cobra.Command {
	c := &cobra.Command{
		Use: "store", Short: "Copy runs to and from an S3 bucket", Long: storeAbout,
		Example: storeExamples, Args: cli.Arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	push := &cobra.Command{
		Use: "push RESULTS s3://BUCKET/PREFIX", Args: cli.Arguments(2, 2),
		Short: "Copy a run, or all runs of a folder, into a bucket",
		RunE: func(c *cobra.Command, args []string) error {
			s := Store{Push: true, Dir: args[0], Place: args[1]}
			return s.checked(c.Context(), do)
		},
	}
	var s Store
	pull := &cobra.Command{
		Use: "pull s3://BUCKET/PREFIX RESULTS", Args: cli.Arguments(2, 2),
		Short: "Copy runs from a bucket into a folder",
		RunE: func(c *cobra.Command, args []string) error {
			s.Place, s.Dir = args[0], args[1]
			return s.checked(c.Context(), do)
		},
	}
	fs := pull.Flags()
	fs.IntVar(&s.Newest, "newest", 0, "largest number of runs (default: all)")
	fs.BoolVar(&s.LastGood, "last-good", false,
		"copy only the last run that passed a gate with --last-good RESULTS/good")
	fs.DurationVar(&s.Every, "every", 0, "repeat at this interval until Ctrl-C")
	c.AddCommand(push, pull)
	return c
}

// CheckPlace returns an error if place is not s3://BUCKET/PREFIX.
func CheckPlace(place string) error {
	if tail, ok := strings.CutPrefix(place, "s3://"); !ok || strings.Trim(tail, "/") == "" {
		return cli.Usagef("%q is not a location in a bucket: use s3://BUCKET/PREFIX", place)
	}
	return nil
}

func (s Store) checked(ctx context.Context, do func(context.Context, Store) error) error {
	if err := CheckPlace(s.Place); err != nil {
		return err
	}
	if s.Newest < 0 || s.Every < 0 {
		return cli.Usagef("--newest and --every must not be negative")
	}
	return do(ctx, s)
}

// Args returns the arguments with which prony-home does the same.
func (s Store) Args() []string {
	if s.Push {
		return []string{"store", "push", "--", s.Dir, s.Place}
	}
	return []string{"store", "pull", "--newest=" + strconv.Itoa(s.Newest),
		"--last-good=" + strconv.FormatBool(s.LastGood), "--every=" + s.Every.String(), "--",
		s.Place, s.Dir}
}
