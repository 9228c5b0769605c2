package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"prony.example/internal/base/address"
	"prony.example/internal/base/cli"
	"prony.example/internal/base/files"
	"prony.example/internal/observe/host"
	"prony.example/internal/suite"
	"prony.example/internal/suite/importer"
)

type initFlags struct {
	from, as     string
	url, command string
	out          string
	writes       bool
	remote       []string // hosts of other machines that may be loaded
	believes     suite.TLS
}

const initAbout = `Init writes a prony.yaml for a service of your own: its target, requests and
loads. The requests come from an existing file: an OpenAPI 3 document, a HAR that a browser saved, a
Postman collection, curl commands, or an access log. With --from -, init reads them from standard
input. The paths of an access log become a weighted mix, and its times are replayed. Without --from,
the only request is the path of the URL. POST, PUT and PATCH of a document change data of the
service. They are comments in the file unless you pass --writes.

Pass --url for a service that runs, or --command to start one. You need neither if the file names
this machine, or a host of --remote. Over https, -k accepts any certificate, and --ca names the
certificates to trust.

Init leaves passwords, tokens, cookies and keys out of the file. It writes ${NAME} in their place,
and the value comes from the environment when a load begins. Init sends nothing and does not
overwrite files.`

func (a *app) initCmd() *cobra.Command {
	f := initFlags{out: "prony.yaml"}
	c := &cobra.Command{
		Use: "init", Short: "Write a prony.yaml for a service of your own",
		Long: initAbout, Args: cli.Arguments(0, 0),
		Example: `  prony init --url http://127.0.0.1:8080/items
  prony init --from openapi.yaml --command './app --port {port}'
  prony init --from shop.har --url http://127.0.0.1:8080
  prony init --url https://api.example.com/items --remote api.example.com
  pbpaste | prony init --from -
  prony init --from /var/log/nginx/access.log --url http://127.0.0.1`,
		RunE: func(c *cobra.Command, _ []string) error { return a.init(c.Context(), f) },
	}
	fs := c.Flags()
	fs.StringVar(&f.from, "from", "", "file with requests, or - for standard input")
	cli.OneOf(c, &f.as, "as", "", importer.Kinds...)
	fs.StringVar(&f.url, "url", "", "address of the running service, over http or https")
	fs.StringSliceVar(&f.remote, "remote", nil, remoteHelp)
	fs.BoolVarP(&f.believes.Insecure, "insecure", "k", false, "accept any certificate")
	fs.StringVar(&f.believes.CA, "ca", "",
		"file of the certificates to trust, in PEM, in or below the folder of --out")
	fs.StringVar(&f.command, "command", "",
		"command that starts the service; {port} or $PORT is its port")
	fs.BoolVar(&f.writes, "writes", false,
		"also request POST, PUT and PATCH of an OpenAPI document")
	fs.StringVar(&f.out, "out", f.out, "file to write")
	return c
}

// traceEnding is the suffix of the file beside a draft with a log's arrivals.
const traceEnding = ".trace"

func (a *app) init(ctx context.Context, f initFlags) error {
	if f.from == "" && f.url == "" && f.command == "" {
		return cli.Usagef("init: name a file of requests with --from, or a running service with " +
			"--url")
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
	var origin, path string
	if f.url != "" {
		var err error
		if origin, path, err = importer.Local(f.url); err != nil {
			return cli.Usagef("--url %q: %w", address.Shown(f.url), err)
		}
	}
	d, err := f.draft(origin, path)
	if err != nil {
		return err
	}
	to := importer.File{URL: origin, Command: f.command, Trace: filepath.Base(trace)}
	if to.From = filepath.Base(f.from); f.from == "-" {
		to.From = "standard input"
	} else if f.from == "" {
		to.From = ""
	}
	if origin == "" && f.command == "" {
		if to.URL = d.Origin; to.URL == "" {
			return cli.Usagef("%s does not say where the service is; %s", f.from, orYours)
		}
	}
	if err := f.reach(ctx, &to); err != nil {
		return err
	}
	if len(d.Arrivals) > 0 {
		if err := files.Write(trace, d.WriteTrace); err != nil {
			return err
		}
	}
	var text bytes.Buffer
	d.Print(&text, to)
	if err := files.Put(f.out, text.Bytes()); err != nil {
		if len(d.Arrivals) > 0 { // nothing refers to it
			err = errors.Join(err, os.Remove(trace))
		}
		return err
	}
	a.told(f, d, trace, to.Remote)
	return nil
}

// reach checks that a run may load the URL, and adds the settings for it: only this machine and
// named hosts may be loaded.
func (f *initFlags) reach(ctx context.Context, to *importer.File) error {
	secure := strings.HasPrefix(to.URL, "https:")
	if f.believes != (suite.TLS{}) && !secure {
		return cli.Usagef("-k and --ca are of certificates; only https URLs have some")
	}
	var u address.Address
	var err error
	if to.URL != "" {
		if u, err = address.Parse(to.URL, "http", "https"); err != nil {
			return cli.Usagef("--url: %w", err)
		}
	}
	if name := u.Name; slices.Contains(f.remote, name) {
		to.Remote = name
	} else if name != "" {
		at, err := u.Resolve(ctx, "80")
		if err == nil {
			err = host.MayLoad(name, at[0].Addr())
		} else {
			err = fmt.Errorf("%w; where you may load it, say so: --remote %s", err, name)
		}
		switch {
		case err != nil && f.url == "":
			return cli.Usagef("%s is of %s, which is not this machine: %w; or %s", f.from,
				to.URL, err, orYours)
		case err != nil:
			return cli.Usagef("--url %s: %w", to.URL, err)
		}
	}
	to.TLS = f.believes
	if to.TLS.CA == "" {
		return nil
	}
	to.TLS.CA, err = beside(f.out, f.believes.CA)
	return err
}

// beside returns a file's path relative to the draft's folder, which must contain it.
func beside(out, name string) (string, error) {
	if _, err := os.Stat(name); err != nil {
		return "", cli.Usagef("--ca: %w", err)
	}
	folder, err := filepath.Abs(filepath.Dir(out))
	if err != nil {
		return "", err
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	if path, err = filepath.Rel(folder, path); err != nil || !filepath.IsLocal(path) {
		return "", cli.Usagef("--ca: %s is not in the folder of %s, where a run looks for it; "+
			"copy it there", name, out)
	}
	return path, nil
}

func (f *initFlags) draft(origin, path string) (*importer.Draft, error) {
	if f.from == "" && f.writes {
		return nil, cli.Usagef("--writes is of OpenAPI documents; name one by --from")
	}
	if f.from == "" {
		return importer.Alone(path), nil
	}
	if path != "" && path != "/" {
		return nil, cli.Usagef("--url: with --from the paths are the file's; pass only %s", origin)
	}
	name := f.from
	if name == "-" {
		name = "/dev/stdin"
	}
	bound := int64(files.Page)
	if f.as == importer.Log || f.as == "" {
		bound = files.Results
	}
	data, err := files.Text(name, bound)
	if err != nil {
		return nil, fmt.Errorf("--from: %w", err)
	}
	if f.from == "-" {
		name = "standard input"
	}
	d, err := importer.Read(name, data, f.as, origin)
	switch {
	case err != nil:
		return nil, err
	case d.Kind != importer.OpenAPI && f.writes:
		return nil, cli.Usagef("--writes is of OpenAPI documents; of %s all is taken", d.Kind)
	case d.Kind == importer.OpenAPI && !f.writes:
		if err := d.Hold(); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
	}
	return d, nil
}

// orYours is the hint for a file whose host is unknown or another machine.
const orYours = "say where yours runs, as --url http://127.0.0.1:8080, or what starts it, as " +
	"--command './app --port {port}'"

// told prints what was imported, what was left out and why, and the next step.
func (a *app) told(f initFlags, d *importer.Draft, trace, remote string) {
	p := func(format string, args ...any) { fmt.Fprintf(a.stdout, format+"\n", args...) }
	kinds := "1 kind of request"
	if n := len(d.Requests); n != 1 {
		kinds = fmt.Sprintf("%d kinds of requests", n)
	}
	p("%s: %s", f.out, kinds)
	if d.Kind != "" {
		p("from     %s, read as %s: %d found", f.from, d.Kind, d.Found)
	}
	if d.Origin != "" && f.url+f.command != "" && !strings.HasPrefix(f.url, d.Origin) {
		p("host     %s; it goes to %s instead", d.Origin, cmp.Or(f.url, "the service of the "+
			"command"))
	}
	if len(d.Arrivals) > 0 {
		p("arrivals %s: %d in %s", trace, len(d.Arrivals), d.Span)
	}
	for _, why := range d.Left {
		p("left out %s", why)
	}
	if n := len(d.Held); n > 0 {
		p("left out %d, which would change data of the service; they are comments in the file, "+
			"and --writes includes them", n)
	}
	if n := len(d.Unknown); n > 0 {
		p("left out %d: no example of a value that is required; they are comments in the file", n)
	}
	var names []string
	for _, s := range d.Secrets {
		p("secret   ${%s}: %s", s.Name, s.About)
		names = append(names, s.Name+"=…")
	}
	run := "prony run"
	if remote != "" {
		run += " --remote " + remote
	}
	if len(names) > 0 {
		p("\nnext: export %s", strings.Join(names, " "))
		p("      %s", run)
		return
	}
	p("\nnext: %s", run)
}
