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
	"prony.example/internal/base/cmdlog"
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
	only, tags   []string
	remote       []string // hosts that are other machines, and may be loaded
	believes     suite.TLS
}

const initAbout = `Init writes a prony.yaml for a service of your own: its target, requests and
loads. The requests come from an existing file: an OpenAPI or Swagger document, a HAR that a browser
saved, a Postman collection, curl commands, or an access log. With --from -, init reads them from
standard input. The paths of an access log become a weighted mix, and its times are replayed.
Without --from, the only request is the path of the URL. POST, PUT and PATCH of a document change
data of the service. These requests are comments in the file unless you pass --writes. --only and
--tag choose requests of a large file.

Pass --url for a service that runs, or --command to start one. You need neither if the file names
this machine, or a host of --remote. Over https, -k accepts any certificate, and --ca names the
certificates to trust.

Init leaves passwords, tokens, cookies and keys out of the file. Init writes ${NAME} in place of a
secret, and the value comes from the environment when a load begins. Init sends nothing and does not
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
		RunE: func(c *cobra.Command, _ []string) error {
			if err := refuse(c.Flags().Changed, noEffect{f.from == "", "writes only tag as",
				"needs --from with the file of requests"}); err != nil {
				return err
			}
			return a.init(c.Context(), f)
		},
	}
	fs := c.Flags()
	fs.StringVar(&f.from, "from", "", "file with requests, or - for standard input")
	cli.OneOf(c, &f.as, "as", "", importer.Kinds...)
	fs.StringVar(&f.url, "url", "", "address of the running service, over http or https")
	fs.StringSliceVar(&f.remote, "remote", nil, remoteHelp)
	fs.BoolVarP(&f.believes.Insecure, "insecure", "k", false, "accept any certificate")
	fs.StringVar(&f.believes.CA, "ca", "",
		"PEM file with the certificates to trust, in or below the folder of --out")
	fs.StringVar(&f.command, "command", "",
		"command that starts the service; {port} or $PORT is its port")
	fs.BoolVar(&f.writes, "writes", false,
		"also include POST, PUT and PATCH requests of an OpenAPI document")
	fs.StringArrayVar(&f.only, "only", nil,
		"path to include, in which * is any text, such as '/users*'; repeatable")
	fs.StringSliceVar(&f.tags, "tag", nil,
		"tag of the operations to include of an OpenAPI document; repeatable")
	fs.StringVar(&f.out, "out", f.out, "file to write")
	return c
}

// traceEnding is the suffix of the file beside a draft with a log's arrivals.
const traceEnding = ".trace"

func (a *app) init(ctx context.Context, f initFlags) error {
	if f.from == "" && f.url == "" && f.command == "" {
		return cli.Usagef("nothing to measure: name a file of requests with --from, or a running " +
			"service with --url")
	}
	if f.url != "" && f.command != "" {
		return cli.Usagef("--url names a running service and --command starts one: set only one " +
			"of them")
	}
	trace := strings.TrimSuffix(f.out, filepath.Ext(f.out)) + traceEnding
	for _, name := range []string{f.out, trace} {
		if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() {
			return cli.Usagef("file %s already exists; move it away, or write to another file "+
				"with --out", name)
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
			return cli.Usagef("%s does not contain the address of the service; %s", f.from, orYours)
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
		return cli.Usagef("-k and --ca need an https URL")
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
			err = fmt.Errorf("%w; if you may load this host, add --remote %s", err, name)
		}
		switch {
		case err != nil && f.url == "":
			return cli.Usagef("the requests in %s are for %s, which is not this machine: %w; or "+
				"%s", f.from,
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
		return "", cli.Usagef("--ca: %s is not in or below the folder of %s, where a run looks "+
			"for it; copy it there", name, out)
	}
	return path, nil
}

func (f *initFlags) draft(origin, path string) (*importer.Draft, error) {
	if f.from == "" {
		return importer.Alone(path), nil
	}
	if path != "" && path != "/" {
		return nil, cli.Usagef("--url: the file of --from already contains the paths; write only "+
			"%s", origin)
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
	o := importer.Options{Kind: f.as, Origin: origin, Only: f.only, Tags: f.tags,
		ReadOnly: !f.writes}
	if f.from == "-" {
		name = "standard input"
	} else if folder, err := os.OpenRoot(filepath.Dir(name)); err == nil { // else none is read
		defer folder.Close()
		o.Files = folder.FS()
	}
	d, err := o.Read(name, data)
	switch {
	case err != nil:
		return nil, err
	case d.Kind != importer.OpenAPI && len(f.tags) > 0:
		return nil, cli.Usagef("--tag needs an OpenAPI document; choose paths of %s with --only",
			d.Kind)
	case d.Kind == importer.Log && len(f.only) > 0:
		return nil, cli.Usagef("--only is not possible for logs, because their times are those " +
			"of all paths; choose lines with grep")
	case d.Kind != importer.OpenAPI && f.writes:
		return nil, cli.Usagef("--writes is only for OpenAPI documents; of format %s, all "+
			"requests are included without it", d.Kind)
	}
	return d, nil
}

// orYours is the hint for a file whose host is unknown or another machine.
const orYours = "name your service with --url http://127.0.0.1:8080, or the command that starts " +
	"it with --command './app --port {port}'"

// told prints what was imported, what was left out and why, and the next step.
func (a *app) told(f initFlags, d *importer.Draft, trace, remote string) {
	p := func(format string, args ...any) { fmt.Fprintf(a.stdout, format+"\n", args...) }
	kinds := "1 kind of request"
	if n := len(d.Requests); n != 1 {
		kinds = fmt.Sprintf("%d kinds of requests", n)
	}
	p("%s: %s", f.out, kinds)
	if d.Kind != "" {
		p("from     %s, read as %s: %s found", f.from, d.Kind, importer.Counted(d.Found))
	}
	if d.Origin != "" && f.url+f.command != "" && !strings.HasPrefix(f.url, d.Origin) {
		p("host     %s; requests go to %s instead", d.Origin, cmp.Or(f.url,
			"the service of --command"))
	}
	if len(d.Arrivals) > 0 {
		outside := ""
		if d.Outside > 0 {
			outside = fmt.Sprintf("; %s outside of the busiest five minutes are not replayed",
				importer.Counted(d.Outside))
		}
		p("arrivals %s: %d arrivals in %s%s", trace, len(d.Arrivals), d.Span, outside)
	}
	for _, why := range d.Left {
		p("left out %s", why)
	}
	for _, note := range d.Changed {
		p("changed  %s", note)
	}
	if n := importer.Total(d.Held); n > 0 {
		p("left out %s, which would change data of the service; see the comments in the file, or "+
			"pass --writes", importer.Counted(n))
	}
	if n := importer.Total(d.Unknown); n > 0 {
		p("left out %s, because a required value has no example; see the comments in the file",
			importer.Counted(n))
	}
	var names []string
	for _, s := range d.Secrets {
		p("secret   ${%s}: %s", s.Name, s.About)
		names = append(names, s.Name+"=…")
	}
	run := "prony run"
	if dir := filepath.Dir(f.out); dir != "." {
		run = "cd " + cmdlog.Quote(dir) + " && " + run
	}
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
