package main

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime/debug"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/base/units"
	"prony.example/internal/report/runs"
	"prony.example/internal/server/site"
)

func (a *app) siteCmd() *cobra.Command {
	var o site.Options
	var to string
	c := &cobra.Command{
		Use: "site [DIR]", Short: "Write runs as a site of static files",
		Args: cli.Arguments(0, 1),
		Long: `Site writes all runs of a folder (default: results/) as static files: a list of the
findings, the report of each run, and its comparisons. Each run is compared with the run before it,
and with the newest run that has the label "baseline". Site also writes the changes of their
histories, a feed of news, and the raw records to download. The site needs no server: open
index.html from the disk, or publish the folder.

If you write a site again, site renews only the runs that have changed, and removes runs that no
longer exist.

Site publishes complete records: measurements, machine and command line. Check run.json and
trials.ndjson of a run before you publish it for the first time.`,
		Example: `  prony site
  prony site results -o public --url https://example.org/bench/`,
		RunE: func(c *cobra.Command, args []string) error {
			if u, err := url.Parse(o.URL); o.URL != "" && (err != nil || u.Host == "" ||
				u.Scheme != "http" && u.Scheme != "https") {
				return cli.Usagef("--url %s must be an address such as https://example.org/bench/",
					o.URL)
			}
			if to == "" {
				return cli.Usagef("--out is empty: set it to the folder for the site")
			}
			o.Program = version()
			return a.site(c.Context(), args, to, o)
		},
	}
	c.Flags().StringVarP(&to, "out", "o", "public", "folder to which the site is written")
	c.Flags().StringVar(&o.URL, "url", "", "address at which the site will be published, for "+
		"links of its feed")
	return c
}

// siteGarbage is the garbage collector's target for garbage, in percent of live memory.
const siteGarbage = 200

func (a *app) site(ctx context.Context, args []string, to string, o site.Options) error {
	if len(args) == 0 {
		dir, err := a.runs()
		if err != nil {
			return err
		}
		args = []string{dir}
	}
	dir := args[0]
	runList, err := runs.Open(dir, runs.Options{Program: o.Program})
	if err != nil {
		return err
	}
	// Each run is read, written and dropped: with the usual percentage, half of the time would be
	// garbage collection.
	defer debug.SetGCPercent(debug.SetGCPercent(siteGarbage))
	made, err := site.Write(ctx, runList, to, o)
	for _, l := range made.Left {
		fmt.Fprintf(a.stderr, "prony: run left out: %s\n", l.Why)
	}
	if err != nil {
		return err
	}
	if made.Runs == 0 {
		return fmt.Errorf("cannot write a site: there is no run in %s; name a folder with runs, "+
			"such as results/", dir)
	}
	fmt.Fprintf(a.stdout, "%s in the site (%d of them renewed): "+
		"%s\n", units.Plural(made.Runs, "run"), made.Fresh,
		filepath.Join(to, "index.html"))
	return nil
}
