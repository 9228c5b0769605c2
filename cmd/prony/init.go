package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"prony/internal/cli"
	"prony/internal/draft"
	"prony/internal/file"
	"prony/internal/shell"
)

type initFlags struct {
	from, as     string
	url, command string
	out          string
	writes       bool
}

const initAbout = `Init writes a prony.yaml for a service of your own: which target is measured, by
which requests, under which loads. The requests come from what there is already: an OpenAPI 3
document, a HAR that a browser saved, curl lines (- reads them from standard input), a Postman
collection, or an access log, whose paths become a weighted mix and whose moments are replayed.
Without --from it asks for the path of the URL alone. What a document has of POST, PUT and PATCH
changes what the service holds, and is a comment in the file unless --writes asks for it.

Where the service is, --url says, or --command what starts it. A file that names this machine itself
needs neither.

Passwords, tokens, cookies and keys are left out of the file: ${NAME} stands in their place and is
taken from the environment when a load begins. Nothing is sent, and what is there is not
overwritten.`

func (a *app) initCmd() *cobra.Command {
	f := initFlags{out: "prony.yaml"}
	c := &cobra.Command{
		Use: "init", Short: "Write a prony.yaml for a service of your own",
		Long: initAbout, Args: cli.Arguments(0, 0),
		Example: `  prony init --url http://127.0.0.1:8080/items
  prony init --from openapi.yaml --command './app --port {port}'
  prony init --from shop.har --url http://127.0.0.1:8080
  pbpaste | prony init --from -
  prony init --from /var/log/nginx/access.log --url http://127.0.0.1`,
		RunE: func(*cobra.Command, []string) error { return a.init(f) },
	}
	fs := c.Flags()
	fs.StringVar(&f.from, "from", "", "file with requests, or - for standard input")
	cli.OneOf(c, &f.as, "as", "", draft.Kinds...)
	fs.StringVar(&f.url, "url", "", "where the service runs already, on this machine")
	fs.StringVar(&f.command, "command", "",
		"what starts it; it is told its port by {port} or $PORT")
	fs.BoolVar(&f.writes, "writes", false,
		"ask for an OpenAPI document's POST, PUT and PATCH, too")
	fs.StringVar(&f.out, "out", f.out, "file to write")
	return c
}

// traceEnding is of the file beside a draft that holds a log's moments.
const traceEnding = ".trace"

func (a *app) init(f initFlags) error {
	if f.from == "" && f.url == "" && f.command == "" {
		return cli.Usagef("init: there is nothing to begin with; name a file of requests by " +
			"--from, or where the service runs by --url")
	}
	if f.url != "" && f.command != "" {
		return cli.Usagef("--url is of what runs already, --command starts it; give one")
	}
	trace := strings.TrimSuffix(f.out, filepath.Ext(f.out)) + traceEnding
	for _, name := range []string{f.out, trace} {
		if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() {
			return cli.Usagef("init: %s is there already; move it away, or write elsewhere "+
				"by --out", name)
		}
	}
	origin, path, err := at(f.url)
	if err != nil {
		return err
	}
	d, err := f.draft(origin, path)
	if err != nil {
		return err
	}
	to := draft.File{URL: origin, Command: f.command, Trace: filepath.Base(trace)}
	if to.From = filepath.Base(f.from); f.from == "-" {
		to.From = "standard input"
	} else if f.from == "" {
		to.From = ""
	}
	if origin == "" && f.command == "" {
		if to.URL = d.Origin; !here(d.Origin) {
			return elsewhere(f.from, d.Origin)
		}
	}
	if len(d.Arrivals) > 0 {
		if err := file.Write(trace, d.WriteTrace); err != nil {
			return err
		}
	}
	var text bytes.Buffer
	d.Print(&text, to)
	if err := file.Put(f.out, text.Bytes()); err != nil {
		return errors.Join(err, undo(trace, len(d.Arrivals) > 0))
	}
	a.told(f, d, trace)
	return nil
}

// undo takes a trace away that nothing refers to.
func undo(name string, written bool) error {
	if !written {
		return nil
	}
	return os.Remove(name)
}

// at splits --url.
func at(address string) (origin, path string, err error) {
	if address == "" {
		return "", "", nil
	}
	origin, path, err = draft.Local(address)
	switch {
	case err != nil:
		return "", "", cli.Usagef("--url %q: %w", shell.Hush(address), err)
	case !strings.HasPrefix(origin, "http://"):
		return "", "", cli.Usagef("--url %q: a service is measured over http://, behind what ends "+
			"TLS; prony load takes https, too", shell.Hush(address))
	}
	return origin, path, nil
}

func (f *initFlags) draft(origin, path string) (*draft.Draft, error) {
	if f.from == "" && f.writes {
		return nil, cli.Usagef("--writes is of OpenAPI documents; name one by --from")
	}
	if f.from == "" {
		return draft.Alone(path), nil
	}
	if path != "" && path != "/" {
		return nil, cli.Usagef("--url: with --from the paths are the file's; give %s alone", origin)
	}
	name := f.from
	if name == "-" {
		name = "/dev/stdin"
	}
	bound := int64(file.Page)
	if f.as == draft.Log || f.as == "" {
		bound = file.Results
	}
	data, err := file.Text(name, bound)
	if err != nil {
		return nil, fmt.Errorf("--from: %w", err)
	}
	if f.from == "-" {
		name = "standard input"
	}
	d, err := draft.Read(name, data, f.as, origin)
	switch {
	case err != nil:
		return nil, err
	case d.Kind != draft.OpenAPI && f.writes:
		return nil, cli.Usagef("--writes is of OpenAPI documents; of %s all is taken", d.Kind)
	case d.Kind == draft.OpenAPI && !f.writes:
		if err := d.Hold(); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
	}
	return d, nil
}

// here says whether an origin is this machine, by its name alone.
func here(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}

func elsewhere(name, origin string) error {
	const next = "say where yours runs, as --url http://127.0.0.1:8080, or what starts it, as " +
		"--command './app --port {port}'"
	if origin == "" {
		return cli.Usagef("%s does not say where the service is; %s", name, next)
	}
	return cli.Usagef("%s is of %s, which is not this machine over http; %s", name, origin, next)
}

// told prints what was taken, what was not and why, and what comes next.
func (a *app) told(f initFlags, d *draft.Draft, trace string) {
	p := func(format string, args ...any) { fmt.Fprintf(a.stdout, format+"\n", args...) }
	p("%s: %s", f.out, number(len(d.Requests), "kind of request", "kinds of requests"))
	if d.Kind != "" {
		p("from     %s, read as %s: %d found", f.from, d.Kind, d.Found)
	}
	if d.Origin != "" && f.url+f.command != "" && !strings.HasPrefix(f.url, d.Origin) {
		p("host     %s; it goes to %s instead", d.Origin, cmp.Or(f.url, "what the command starts"))
	}
	if len(d.Arrivals) > 0 {
		p("arrivals %s: %d in %s", trace, len(d.Arrivals), d.Span)
	}
	for _, why := range d.Left {
		p("left out %s", why)
	}
	if n := len(d.Held); n > 0 {
		p("left out %d: what the service holds would change; they are comments in the file, and "+
			"--writes asks for them", n)
	}
	if n := len(d.Unknown); n > 0 {
		p("left out %d: no example of a value that is required; they are comments in the file", n)
	}
	for _, s := range d.Secrets {
		p("secret   ${%s}: %s", s.Name, s.About)
	}
	names := make([]string, 0, len(d.Secrets))
	for _, s := range d.Secrets {
		names = append(names, s.Name+"=…")
	}
	if len(names) > 0 {
		p("\nnext: export %s", strings.Join(names, " "))
		p("      prony run")
		return
	}
	p("\nnext: prony run")
}

// number is a count with its word.
func number(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
