package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"prony.example/internal/analysis/verdict"
	"prony.example/internal/base/cli"
	"prony.example/internal/base/clock"
	"prony.example/internal/base/cmdlog"
	"prony.example/internal/base/files"
	"prony.example/internal/generator/summary"
	"prony.example/internal/observe/host"
	"prony.example/load"
	"prony.example/record"
)

// saveFlags are the settings for records of loads: --save, or -o with the name of a page.
type saveFlags struct {
	verb string
	dir  string // usualFolder: the default place
	page string
	name string
}

// usualFolder is the value of --save without a folder.
func (s *saveFlags) usualFolder() string { return filepath.Join(record.Kept, s.verb, "TIME") }

// add declares the flags. If the verb has an --output of formats, -o also accepts a page.
func (s *saveFlags) add(c *cobra.Command) {
	fs := c.Flags()
	s.verb = c.Name()
	fs.StringVar(&s.dir, "save", "", "store the results as a run in `DIR`, for report, compare, "+
		"trend and gate; write --save=DIR (default in a checkout: results/TIME)")
	fs.Lookup("save").NoOptDefVal = s.usualFolder()
	fs.StringVar(&s.name, "name", "", "name of the server in the stored run (default: from the "+
		"URL)")
	if f := fs.Lookup("output"); f != nil {
		f.Value = &pageOr{f.Value, &s.page}
		f.Usage += ", or a page such as page.html (also stores the run)"
		return
	}
	fs.StringVarP(&s.page, "output", "o", "",
		"HTML page to write, such as page.html; also stores the run")
}

// pageOr is a flag with a list of values that also accepts the name of a page.
type pageOr struct {
	pflag.Value
	page *string
}

// Set implements pflag.Value.
func (v *pageOr) Set(word string) error {
	if strings.HasSuffix(word, ".html") {
		*v.page = word
		return nil
	}
	return v.Value.Set(word)
}

// keeper writes the records of one command's loads. A nil keeper writes nothing.
type keeper struct {
	app     *app
	flags   *saveFlags
	dir     string
	results string // the folder of dir, if its name is made of the time
	head    record.Run
	release func()
	names   map[string]int // number of loads by target name
	out     *record.Writer
	err     error // first errors of writing, returned by close: results are printed all the same
}

// keep returns a keeper for the flags' folder, or nil. It fails before anything is offered if the
// folder cannot be used.
func (a *app) keep(s *saveFlags) (*keeper, error) {
	switch {
	case s.page != "" && !strings.HasSuffix(s.page, ".html"):
		return nil, cli.Usagef("-o %s must be an HTML page, such as page.html", s.page)
	case s.dir == "" && s.page == "" && s.name != "":
		return nil, cli.Usagef("--name needs --save")
	case s.dir == "" && s.page == "":
		return nil, nil
	}
	if s.page != "" {
		if err := files.CanWrite(s.page); err != nil {
			return nil, cli.Usagef("--output: %w", err)
		}
	}
	k := &keeper{app: a, flags: s, dir: s.dir, names: map[string]int{}}
	k.head = record.Run{ID: clock.Wall().Format("2006-01-02T15-04-05Z"), Suite: s.verb,
		Question: "How does the server respond under this load?", Blocks: 1,
		Command: a.command(), Requests: map[string][]string{},
		Notes: []string{"This run did not start the server, so its processes, CPU and memory are " +
			"unknown."}}
	if k.dir == "" || k.dir == s.usualFolder() {
		results, err := a.resultsOf(s.verb)
		if err != nil {
			return nil, fmt.Errorf("store the results: %w", err)
		}
		k.results = results
		k.head.ID, k.dir = record.NewFolder(results, k.head.ID)
	}
	if isRun(k.dir) {
		return nil, cli.Usagef("--save=%s already contains a run; choose another folder, or "+
			"print it with prony report", k.dir)
	}
	var err error
	if k.release, err = record.Reserve(k.dir, "--save"); err != nil {
		return nil, err
	}
	return k, nil
}

// resultsOf returns the folder of a verb's runs: results/ in a checkout, otherwise as for versus.
func (a *app) resultsOf(verb string) (string, error) {
	if root, err := a.root(); err == nil {
		return filepath.Join(root, "results"), nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	kept := filepath.Join(dir, record.Kept)
	return filepath.Join(kept, verb), record.Keep(kept)
}

// unfit matches characters that a file name should not contain.
var unfit = regexp.MustCompile(`[^A-Za-z0-9.]+`)

// longestName keeps the names of a trial's files within the limit of file systems (255 bytes).
const longestName = 100

// fileName converts a text to a part of a file name.
func fileName(text string) string {
	name := strings.Trim(unfit.ReplaceAllString(text, "-"), "-.")
	return cmp.Or(name[:min(len(name), longestName)], "server")
}

// target returns the server's name: --name, otherwise its URL without scheme, query and user.
func (k *keeper) target(at string) string {
	name := k.flags.name
	if u, err := url.Parse(at); err == nil && name == "" {
		name = u.Host + strings.TrimSuffix(u.Path, "/")
	}
	if k.names[name]++; k.names[name] > 1 {
		name = fmt.Sprintf("%s-%d", name, k.names[name])
	}
	return name
}

// add records a load that began at a time: its report and result, or its error.
func (k *keeper) add(p *offer, began time.Time, report summary.Report, res *load.Result,
	failed error) {
	if k == nil {
		return
	}
	rec := k.record(p, began, report, failed)
	err := k.open(p)
	if err == nil {
		err = k.out.Append(rec)
	}
	if err == nil && failed == nil {
		err = summary.SaveHLog(k.dir, rec.Trial, res.Name, res.Intervals)
	}
	k.err = errors.Join(k.err, err)
}

// record returns a load's record as a trial.
func (k *keeper) record(p *offer, began time.Time, report summary.Report,
	failed error) *record.Record {
	n := 1
	for _, times := range k.names {
		n += times
	}
	name := k.target(p.url)
	rec := &record.Record{
		Trial: fmt.Sprintf("b1-%02d-%s", n, fileName(name)), Time: began, Suite: k.head.Suite,
		Block: 1, Order: n, Target: record.Target{Name: name, Variant: "none", URL: p.url},
		Scenario: k.scenario(p), Outcome: record.Measured,
		Limits: record.Limits{LoadCores: p.spec.Cores}, Warmup: p.warmed, Verdict: report.Verdict,
		DurationNs: int64(clock.Wall().Sub(began)),
		Provenance: record.Provenance{Prony: version(), Command: k.head.Command,
			Seed: p.spec.Seed, ScenarioHash: p.scene()},
	}
	host.Describe(&rec.Provenance)
	if failed != nil {
		rec.Outcome = record.Failed
		rec.Failure = &record.Failure{Step: "measure", Error: failed.Error()}
		rec.Verdict = verdict.Judge(rec)
	} else {
		rec.Loads = []record.Load{*report.Load}
	}
	return rec
}

// scenario returns a name of the requests, because different requests must not share a table.
func (k *keeper) scenario(p *offer) string {
	if r := p.spec.Scenario.Requests; len(r) == 1 {
		return r[0].Method + " " + r[0].Path
	}
	return k.flags.verb
}

// open creates the folder with the first record, so that a command without a result leaves none.
func (k *keeper) open(p *offer) (err error) {
	if k.out != nil {
		return nil
	}
	scene := k.scenario(p)
	for _, r := range p.spec.Scenario.Requests {
		k.head.Requests[scene] = append(k.head.Requests[scene], r.Method+" "+r.Path)
	}
	k.head.Seed = p.spec.Seed
	k.out, err = record.Create(k.dir, k.head)
	for k.results != "" && errors.Is(err, fs.ErrExist) { // of a load that began at the same moment
		k.head.ID, k.dir = record.NewFolder(k.results, k.head.ID)
		k.out, err = record.Create(k.dir, k.head)
	}
	return err
}

// close ends the run, and writes its reports and the page. It removes an empty folder.
func (k *keeper) close() error {
	if k == nil {
		return nil
	}
	defer k.release()
	if k.out == nil || k.err != nil {
		return k.err
	}
	if err := k.out.Close(); err != nil {
		return err
	}
	r, err := k.app.study(k.dir, reportFlags{save: true})
	if err == nil {
		err = r.save(k.dir)
	}
	if err == nil && k.flags.page != "" {
		err = k.app.write(k.flags.page, func(w io.Writer) error {
			return r.print(w, reportFlags{format: "html"})
		})
	}
	k.app.say("stored in " + k.dir + "; print it with prony report " + cmdlog.Quote(k.dir))
	return err
}

// scene returns a hash of the settings that two loads must share to be comparable, beside those in
// the record: requests, timeout, warm-up. The server's address does not matter.
func (o *offer) scene() string {
	s := &o.spec
	b, err := json.Marshal([]any{s.Scenario, o.file, s.Timeout, s.Lead, o.warmup, s.Most,
		s.Trace.Share})
	if err != nil {
		panic("scene: a scenario cannot be written as JSON: " + err.Error())
	}
	return fmt.Sprintf("%x", sha256.Sum256(b))
}
