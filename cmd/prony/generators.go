package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"prony/internal/cli"
	"prony/internal/file"
	"prony/internal/generators"
	"prony/internal/load"
	"prony/internal/shell"
)

// manyFlags say who offers a load together.
type manyFlags struct {
	number int
	listen string
	key    string
	as     string // folder of an identity
}

// generatorsMost is how many processes are started on one machine.
const generatorsMost = 256

func (m *manyFlags) add(c *cobra.Command) {
	fs := c.Flags()
	fs.IntVar(&m.number, "generators", 0, "processes that offer the one schedule together, each "+
		"every N-th arrival (default: none but this one)")
	fs.StringVar(&m.listen, "listen", "", "where generators elsewhere find this lab, as "+
		"10.0.0.5:7070: each is prony generate; none is started here")
	fs.StringVar(&m.key, "key", "", "file to write the key to that generators elsewhere need")
	fs.StringVar(&m.as, "identity", "", "folder of token, tls.crt and tls.key, made before, whose "+
		"key generators elsewhere have already")
}

// check finds what does not go together.
func (m *manyFlags) check(p *offer, o *outputFlags, given func(string) bool) error {
	for _, row := range []struct {
		wrong bool
		why   string
	}{
		{given("generators") && m.number < 1, "--generators: want at least 1"},
		{m.listen != "" && m.number < 1, "--listen is for generators elsewhere: say how many " +
			"there are by --generators"},
		{m.listen == "" && m.number > generatorsMost,
			fmt.Sprintf("--generators: up to %d are started on one machine; more are elsewhere, "+
				"see --listen", generatorsMost)},
		{given("key") && m.key == "", "--key: want a file to write it to"},
		{(m.listen == "") != (m.key == "" && m.as == ""), "--listen and --key go together: " +
			"generators elsewhere need the key; or --identity, whose key they have"},
		{m.key != "" && m.as != "", "--key is made for this load, that of --identity was before: " +
			"leave one out"},
		{m.listen != "" && len(p.spec.Cores) > 0, "--cores are this machine's: pin generators " +
			"elsewhere there"},
		{m.number > 0 && o.ceiling, "--ceiling is of one process; leave it out with --generators"},
		{m.number > p.spec.Connections, fmt.Sprintf("%d connections for %d generators; each "+
			"needs one: raise -c", p.spec.Connections, m.number)},
		{m.number > 0 && len(p.spec.Cores)%max(m.number, 1) != 0, "--cores: want as many for " +
			"each generator, " + fmt.Sprintf("a multiple of %d", m.number)},
	} {
		if row.wrong {
			return cli.Usagef("%s", row.why)
		}
	}
	return nil
}

// together leads generators through a load. A signal ends it with what there is; before it has
// begun there is nothing, and it ends at once.
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
	lab.Limits.Gather = 5 * time.Minute // somebody starts them
	switch {
	case m.listen == "":
		lab.Limits.Gather = 0
		started, err := startGenerators(ctx, lab, m.number, cancel)
		defer started.end(lab)
		if err != nil {
			return nil, err
		}
	case m.as != "":
		said.say(fmt.Sprintf("waits for %d generators at %s", m.number, lab.Addr()))
	default:
		if err := writeKey(m.key, lab.Key()); err != nil {
			return nil, err
		}
		defer os.Remove(m.key) //nolint:errcheck // it opens nothing any more
		said.say(fmt.Sprintf("waits for %d generators at %s: prony generate --of HOST:PORT "+
			"--index 0 to %d < %s", m.number, lab.Addr(), m.number-1, m.key))
	}
	return lab.Offer(ctx, generators.Order{Spec: s, By: p.by})
}

// open is the lab that the flags say, with an identity of its own or that of a folder, which the
// cluster mounts there from a Secret.
func (m *manyFlags) open() (*generators.Lab, error) {
	at := cmp.Or(m.listen, "127.0.0.1:0")
	if m.as == "" {
		return generators.Listen(at, m.number, version())
	}
	var parts [3][]byte
	for i, name := range []string{"token", "tls.crt", "tls.key"} {
		var err error
		if parts[i], err = file.Read(filepath.Join(m.as, name), identityMost); err != nil {
			return nil, fmt.Errorf("read the identity: %w", err)
		}
	}
	token := string(bytes.TrimSpace(parts[0]))
	id, err := generators.ParseIdentity(token, parts[1], parts[2])
	if err != nil {
		return nil, fmt.Errorf("read the identity in %s: %w", m.as, err)
	}
	return generators.ListenAs(id, at, m.number, version())
}

// identityMost bounds each of an identity's files.
const identityMost = 64 << 10

// remarks are lines that are said at once until the load has begun, and then after it: meanwhile
// the screen is the view's.
type remarks struct {
	now   func(string)
	begun func() bool
	mu    sync.Mutex
	kept  []string
}

// remarksMost bounds the lines that are kept. What bears on the load is in its verdict, too.
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

// writeKey writes a key where nobody else may read it. What is there already is somebody's.
func writeKey(name string, key generators.Key) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(f, key)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("write the key: %w", err)
	}
	return nil
}

// started are generators that are processes of this program's own.
type started struct {
	all  sync.WaitGroup
	kill context.CancelFunc
}

// endIn is how long a generator has to end by itself when its lab has.
const endIn = 5 * time.Second

// startGenerators starts them. One that ends in error before all have come ends the load, with its
// own words; later its connection tells.
func startGenerators(ctx context.Context, lab *generators.Lab, n int,
	cancel context.CancelCauseFunc) (*started, error) {
	ctx, kill := context.WithCancel(ctx)
	s := &started{kill: kill}
	self, err := os.Executable()
	if err != nil {
		return s, fmt.Errorf("start generators: %w", err)
	}
	for i := range n {
		cmd := exec.CommandContext(ctx, self, "generate", "--child", "--of", lab.Addr(),
			"--index", strconv.Itoa(i))
		// Not in the environment, which -x shows.
		cmd.Stdin = strings.NewReader(lab.Key().String() + "\n")
		errs := &tail{}
		cmd.Stderr = errs
		cmd.WaitDelay = endIn
		shell.Command(cmd)
		if err := cmd.Start(); err != nil {
			return s, fmt.Errorf("start generator %d: %w", i, err)
		}
		s.all.Go(func() {
			if err := cmd.Wait(); err != nil && !lab.Complete() {
				cancel(fmt.Errorf("generator %d: %w: %s", i, err, errs))
			}
		})
	}
	return s, nil
}

// end sends the generators home and waits for them; who does not go is killed.
func (s *started) end(lab *generators.Lab) {
	_ = lab.Close()
	defer time.AfterFunc(endIn, s.kill).Stop()
	s.all.Wait()
	s.kill()
}

// tail keeps the end of what a generator says.
type tail struct {
	mu sync.Mutex
	b  []byte
}

// tailMost is how much of it.
const tailMost = 4 << 10

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	t.b = bytes.Clone(t.b[max(len(t.b)-tailMost, 0):])
	return len(b), nil
}

// String is its last line.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimSpace(string(t.b))
	return text[strings.LastIndexByte(text, '\n')+1:]
}
