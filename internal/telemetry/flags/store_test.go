package flags

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"
)

// Args are parsed back to the same options, for any folder name.
func TestStore(t *testing.T) {
	ask := func(args []string) (got Store, err error) {
		c := Bucket(func(_ context.Context, s Store) error { got = s; return nil })
		c.SetArgs(args)
		c.SetOut(io.Discard)
		c.SetErr(io.Discard)
		err = c.Execute()
		return got, err
	}
	for _, want := range []Store{
		{Push: true, Dir: "results", Place: "s3://b/p"},
		{Dir: "-odd", Place: "s3://b", Newest: 3, LastGood: true, Every: time.Minute},
	} {
		// The root command handles the command's own name.
		if got, err := ask(want.Args()[1:]); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", want.Args(), got, err, want)
		}
	}
	for _, row := range []struct{ line, want string }{
		{"push results", "got 1 arguments"},
		{"push results b/p", "is not a location in a bucket"},
		{"push s3://b results", "is not a location in a bucket"},
		{"pull s3:// results", "is not a location in a bucket"},
		{"pull --newest=-1 s3://b results", "must not be negative"},
		{"pull --every=-1s s3://b results", "must not be negative"},
	} {
		_, err := ask(strings.Fields(row.line))
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %s", row.line, err, row.want)
		}
	}
}
