package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/base/files"
	"prony.example/internal/generator"
	"prony.example/internal/generator/distributed"
	"prony.example/internal/generator/distributed/local"
	"prony.example/load"
	"prony.example/record"
)

// manyFlags are the settings of a load by several generators.
type manyFlags struct {
	number int
	listen string
	key    string
	as     string // folder of an identity
}

func (m *manyFlags) add(c *cobra.Command) {
	fs := c.Flags()
	fs.IntVar(&m.number, "generators", 0, "number of processes that send the requests of one "+
		"schedule; each sends every N-th request (default: only this process)")
	fs.StringVar(&m.listen, "listen", "", "address for workers that are started elsewhere with "+
		"prony generate, such as 10.0.0.5:7070")
	fs.StringVar(&m.key, "key", "", "file to which the key for these workers is written")
	fs.StringVar(&m.as, "identity", "", "folder with token, tls.crt and tls.key, if the workers "+
		"already have their key")
}

// generatorsHelp is the flag's help in verbs that start generators only on this machine.
const generatorsHelp = "number of processes on this machine that send the requests of each load; " +
	"each sends every N-th request (default: only this process)"

// checkGenerators checks the number of generators; 0 connections are not known yet.
func checkGenerators(number, connections int, given func(string) bool) error {
	switch {
	case !given("generators"):
	case number < 1 || number > local.Most:
		return cli.Usagef("--generators must be 1 to %[2]d, got %[1]d", number, local.Most)
	case connections > 0 && number > connections:
		return cli.Usagef("%d connections are too few for %d generators, because each generator "+
			"needs at least one: raise -c", connections,
			number)
	}
	return nil
}

// together offers a load by the number of local generators in its Part.
func (p *offer) together(
	ctx context.Context,
	by generator.Prony,
	s load.Spec,
) (*load.Result, error) {
	return local.Driver{Prony: by, Crew: &p.crew, Version: version()}.Offer(ctx, s)
}

// check reports contradictions of flags.
func (m *manyFlags) check(p *offer, o *outputFlags, given func(string) bool) error {
	for _, row := range []struct {
		wrong bool
		why   string
	}{
		{given("generators") && m.number < 1, "--generators must be at least 1"},
		{m.listen != "" && m.number < 1, "--listen needs --generators: set it to the number of " +
			"workers elsewhere"},
		{m.listen == "" && m.number > local.Most,
			fmt.Sprintf("--generators can start at most %d processes on one machine; start more "+
				"on other machines with --listen", local.Most)},
		{given("key") && m.key == "", "--key needs the name of a file to which the key is written"},
		{m.listen == "" && m.key+m.as != "", "--key and --identity need --listen: they are for " +
			"workers elsewhere"},
		{m.listen != "" && m.key+m.as == "", "--listen needs --key, because workers " +
			"elsewhere need the key, or --identity, if they already have it"},
		{m.key != "" && m.as != "", "--key and --identity exclude each other: --key writes a new " +
			"key, --identity uses an existing one"},
		{m.listen != "" && len(p.spec.Cores) > 0, "--cores cannot be combined with --listen: it " +
			"pins threads on this machine only; pin workers where you start them"},
		{m.number > 0 && o.ceiling, "--ceiling cannot be combined with --generators: it measures " +
			"the limit of one process"},
		{o.ceiling && p.spec.Model == record.Open, "--ceiling is for the closed model; leave out " +
			"--rate and --trace"},
		{m.number > p.spec.Connections, fmt.Sprintf("%d connections are too few for %d "+
			"generators, because each generator needs at least one: raise "+
			"-c", p.spec.Connections, m.number)},
		{m.number > 0 && len(p.spec.Cores)%max(m.number, 1) != 0, "--cores must have the same " +
			"number of cores for each generator: " + fmt.Sprintf("a multiple of %d", m.number)},
	} {
		if row.wrong {
			return cli.Usagef("%s", row.why)
		}
	}
	return nil
}

// together coordinates a load by several generators. After the load has begun, a signal ends it
// with the results so far; before, the signal ends it immediately.
func (a *app) together(ctx, signals context.Context, p *offer, s load.Spec) (*load.Result, error) {
	m := &p.many
	lab, err := m.open()
	if err != nil {
		return nil, err
	}
	defer lab.Close() //nolint:errcheck // the load is over
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(signals, func() {
		if !lab.Begun() {
			cancel(context.Canceled)
		}
	})()
	said := &remarks{now: a.say, begun: lab.Begun}
	defer said.rest()
	lab.Say = said.say
	lab.Limits.Gather = 5 * time.Minute // a person starts the generators
	order := distributed.Order{Spec: s, By: p.by}
	switch {
	case m.listen == "":
		lab.Limits.Gather = 0
		return new(local.Crew).Lead(ctx, lab, order)
	case m.as != "":
		said.say(fmt.Sprintf("waiting for %d generators at %s", m.number, lab.Addr()))
	default:
		if err := writeKey(m.key, lab.Key()); err != nil {
			return nil, err
		}
		defer os.Remove(m.key) //nolint:errcheck // the key is no longer valid
		said.say(fmt.Sprintf("waiting for %d generators at %s: prony generate --of HOST:PORT "+
			"--index 0 to %d < %s", m.number, lab.Addr(), m.number-1, m.key))
	}
	return lab.Offer(ctx, order)
}

// open opens the coordinator, with a new identity or that of a folder, which a cluster mounts from
// a Secret.
func (m *manyFlags) open() (*distributed.Lab, error) {
	at := cmp.Or(m.listen, "127.0.0.1:0")
	if m.as == "" {
		return distributed.Listen(at, m.number, version())
	}
	var parts [3][]byte
	for i, name := range []string{"token", "tls.crt", "tls.key"} {
		var err error
		if parts[i], err = files.Read(filepath.Join(m.as, name), identityMost); err != nil {
			return nil, fmt.Errorf("read the files of --identity: %w", err)
		}
	}
	token := string(bytes.TrimSpace(parts[0]))
	id, err := distributed.ParseIdentity(token, parts[1], parts[2])
	if err != nil {
		return nil, fmt.Errorf("read the files of --identity in %s: %w", m.as, err)
	}
	return distributed.ListenAs(id, at, m.number, version())
}

// identityMost limits each of an identity's files.
const identityMost = 64 << 10

// remarks are lines that are printed immediately before the load begins, and later after its end,
// because the view uses the screen meanwhile.
type remarks struct {
	now   func(string)
	begun func() bool
	mu    sync.Mutex
	kept  []string
}

// remarksMost limits the stored lines. The verdict also contains those that affect the load.
const remarksMost = 100

func (r *remarks) say(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !r.begun():
		r.now(line)
	case len(r.kept) < remarksMost:
		r.kept = append(r.kept, line)
	}
}

func (r *remarks) rest() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, line := range r.kept {
		r.now(line)
	}
	r.kept = nil
}

// writeKey writes a key that only its user can read. It overwrites no file.
func writeKey(name string, key distributed.Key) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(f, key)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("write the key file: %w", err)
	}
	return nil
}
