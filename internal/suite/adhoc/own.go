// Package adhoc makes targets of services that no catalog has: a user's own, named on a command
// line by the command that starts them or by a revision of a repository. What comes out are the
// same services and the same suite that a checkout would have had, so that a run of them is any
// other run:
//
//	Source ─ Services ─► ask each what it answers ─► Hold ─ Suite ─► internal/trial/lab
//
// Non-goals: nothing is started, built or measured here.
package adhoc

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"prony.example/internal/base/cli"
	"prony.example/internal/base/shellwords"
	"prony.example/internal/base/strictyaml"
	"prony.example/internal/observe/host"
	"prony.example/internal/service"
	"prony.example/internal/service/counters"
	"prony.example/internal/suite"
	"prony.example/load/engine/nethttp"
	"prony.example/record"
)

// Source is where a target comes from.
type Source struct {
	Name string // empty: made of what it is
	Way  Way    // how it is had
	// Dir is where it is started: of a revision, where the user works, until Clone.
	Dir      string
	Steps    [][]string // that build it, before a command is started
	Remote   []string   // hosts of URLs that are other machines, and may be loaded
	Env      map[string]string
	Wants    []service.Want
	Before   []service.Process // started before the command, in order
	Counters map[string]counters.Place
	// File is where it is described; empty: on the command line.
	File string
	// Built names what it is built as, for sources that share a build; empty: as it is called.
	Built string
	// Connections are those of its loads and its warm-up; 0: the suite's.
	Connections int
	// Body is the size of requests' bodies; 0: as the suite has them.
	Body strictyaml.Size
	// Again marks a second one of the same, beside the first: what differs between the two is
	// noise.
	Again bool

	checkout *service.Checkout // of the revision, from Clone on
}

// Way is how a target is had: a Command, a Revision, a URL, an Image or a Compose.
type Way interface {
	text() string  // that it is asked for by
	named() string // what a name is made of
}

// Command starts the service from the source's folder, as a shell does. The service listens at
// $PORT, or at {port} of the command.
type Command string

// Revision starts what a revision of the repository in the source's folder has, once it is built.
type Revision struct {
	Git   string
	Start Command
}

// URL is where the service runs already.
type URL string

// Image is one of the local Docker engine.
type Image struct {
	Name string
	Port int // where it listens; 0: where it exposes one, else $PORT
}

// Compose is a service of a Compose file, which is brought up.
type Compose struct {
	service.Compose
	Port int // where its container listens; 0: the one that the file names
}

func (c Command) text() string  { return string(c) }
func (r Revision) text() string { return string(r.Start) }
func (u URL) text() string      { return string(u) }
func (i Image) text() string    { return i.Name }
func (c Compose) text() string  { return c.Service }

func (c Command) named() string {
	return noPort.ReplaceAllString(folders.ReplaceAllString(string(c), "$1"), "")
}
func (r Revision) named() string { return r.Git }
func (u URL) named() string      { return scheme.ReplaceAllString(string(u), "") }
func (i Image) named() string    { return i.Name }
func (c Compose) named() string  { return c.Service }

// Stays says whether it cannot be moved to other cores: a container, and what runs already.
func (s Source) Stays() bool {
	switch s.Way.(type) {
	case URL, Image:
		return true
	}
	return false
}

// maxName keeps a name short enough for files, cgroups and the first column of a table.
const maxName = 32

// AgainSuffix ends the name of a service that runs a second time, as the control.
const AgainSuffix = record.AgainSuffix

var (
	notName = regexp.MustCompile(`[^A-Za-z0-9._]+`)
	folders = regexp.MustCompile(`(^|[ =])[^ =]*/`) // of a program or a file
	noPort  = regexp.MustCompile(`\{port\}|\$\{?PORT\}?`)
	scheme  = regexp.MustCompile(`^[a-z]+://`)
	isName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
)

// Services makes one of each source, in order. Environ is what they see of the user's environment,
// all of it, since what starts by hand must start here, too; ready is the path that answers 200
// once they serve, empty for a first connection. The error is a usage error that names the source.
func Services(sources []Source, environ []string, ready string) ([]*service.Service, error) {
	names, err := named(sources)
	if err != nil {
		return nil, err
	}
	out := make([]*service.Service, len(sources))
	for i, from := range sources {
		args, err := Words(from.Way.text())
		if err != nil {
			return nil, from.wrong(from.Way.text(), err)
		}
		s := &service.Service{Name: names[i], Contracts: []string{""},
			Dir: from.Dir, Environ: environ, Wants: from.Wants,
			Run:     service.Run{Command: args, Ready: ready, Env: from.Env},
			Build:   service.Build{Steps: from.Steps, Artifact: artifact(args)},
			BuiltAs: cmp.Or(from.Built, strings.TrimSuffix(names[i], AgainSuffix)),
			Only:    func(name string) bool { return name != ".git" && name != record.Kept }}
		if from.Again {
			s.ControlOf = names[0]
		}
		if s.Checkout = from.checkout; s.Checkout != nil {
			s.Environ = service.WithoutGit(environ)
		}
		target := service.Target{Name: names[i], Connections: from.Connections,
			Body: from.Body, Counters: from.Counters}
		if len(from.Before) > 0 {
			s.Run.Processes = append(slices.Clone(from.Before), service.Process{Name: names[i],
				Command: args, Ready: ready})
			s.Run.Command, s.Build.Artifact = nil, "." // of which several are started
		}
		if err := from.have(s, &target, args); err != nil {
			return nil, err
		}
		s.Targets = []service.Target{target}
		out[i] = s
	}
	return out, nil
}

// have says of a service how it is had, where nothing builds it.
func (s Source) have(to *service.Service, target *service.Target, args []string) (err error) {
	switch way := s.Way.(type) {
	case URL:
		to.Made = &service.Built{Dir: s.Dir}
		if to.Made.Attached, to.Made.Host, err = s.address(string(way)); err != nil {
			return s.wrong("--url "+string(way), err)
		}
	case Compose:
		to.Made = &service.Built{Dir: s.Dir, Front: way.Service, Port: way.Port,
			Compose: &way.Compose, Images: map[string]string{"": way.Service}}
	case Image:
		to.Made = &service.Built{Dir: s.Dir, Front: way.Name, Port: way.Port,
			Images: map[string]string{"": way.Name}}
	case Command:
		to.About = string(way)
		if len(s.Steps) > 0 {
			return nil
		}
		if to.Made, err = made(s.Dir, to.Processes(*target)); err != nil {
			return s.wrong(string(way), err)
		}
		target.Runtime = guess(s.Dir, args)
	case Revision:
		to.About = string(way.Start)
	}
	return nil
}

// wrong is what is wrong with a source: with the line, which calls it so, or with the file.
func (s Source) wrong(called string, err error) error {
	if s.File != "" {
		return fmt.Errorf("%s: target %s: %s: %w", s.File, s.Name, called, err)
	}
	return cli.Usagef("%s: %w", called, err)
}

// address is where the service of the URL listens, and the name that it is asked by; empty: its
// address. Another machine is one that Remote names: a load may harm whoever does not expect it.
func (s Source) address(subject string) (addr netip.AddrPort, name string, err error) {
	u, err := url.Parse(subject)
	switch {
	case err != nil:
		return addr, "", err
	case ports[u.Scheme] == "":
		return addr, "", errors.New("the URL must begin with http or https, such as " +
			"http://127.0.0.1:8081")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		return addr, "", errors.New("the URL must be only " + u.Scheme + "://HOST:PORT; set the " +
			"path with --get")
	}
	to, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(u.Hostname(),
		cmp.Or(u.Port(), ports[u.Scheme])))
	if err != nil {
		return addr, "", err
	}
	addr = netip.AddrPortFrom(to.AddrPort().Addr().Unmap(), uint16(to.Port))
	if _, err := netip.ParseAddr(u.Hostname()); err != nil {
		name = u.Host
	}
	if slices.Contains(s.Remote, u.Hostname()) {
		return addr, name, nil
	}
	return addr, name, host.MayLoad(u.Hostname(), addr.Addr())
}

// Protocol is what all sources are spoken with, where a scenario says asked; empty: HTTP/1.1.
func Protocol(sources []Source, requested string) (string, error) {
	var plain, secure []string
	for _, s := range sources {
		if place, is := s.Way.(URL); is && strings.HasPrefix(string(place), "https:") {
			secure = append(secure, string(place))
		} else {
			plain = append(plain, s.Way.text())
		}
	}
	switch {
	case len(secure) == 0 || nethttp.Secure(nethttp.Schemes[requested]):
		return requested, nil
	case requested != "":
		return "", fmt.Errorf("%s: the protocol %s has no TLS; choose https, h2, grpcs or wss, "+
			"or begin the URL with http", secure[0], requested)
	case len(plain) > 0:
		return "", fmt.Errorf("%s uses TLS and %s does not, but all services of a comparison "+
			"need the same protocol; use https if both services support it", secure[0],
			plain[0])
	}
	return "https", nil
}

// ports are the usual ones of the schemes that a URL may begin with.
var ports = map[string]string{"http": "80", "https": "443"}

// named gives each source a name of its own.
func named(sources []Source) ([]string, error) {
	var out []string
	for _, from := range sources {
		name := from.Name
		if name != "" && (!isName.MatchString(name) || len(name) > maxName) {
			return nil, cli.Usagef("-n %s: a name can have at most %d letters, digits, dots and "+
				"dashes", name,
				maxName)
		}
		if name == "" {
			text := from.Way.named()
			name = strings.Trim(notName.ReplaceAllString(text, "-"), ".-_")
			name = strings.TrimRight(name[:min(len(name), maxName-len(AgainSuffix))], ".-_")
		}
		if from.Again {
			name += AgainSuffix
		}
		base := name
		for n := 2; slices.Contains(out, name) || name == ""; n++ {
			name = strings.TrimPrefix(fmt.Sprintf("%s-%d", base, n), "-")
		}
		out = append(out, name)
	}
	return out, nil
}

// shells are programs that start another one, which is the service.
var shells = []string{"env", "sh", "exec", "nice", "taskset", "time"}

// made says what is started, for the record: the digest of the programs and of every file that the
// commands name, as a jar or a script.
func made(dir string, processes []service.Process) (*service.Built, error) {
	out := &service.Built{Dir: dir}
	sum := sha256.New()
	for _, p := range processes {
		n, err := digest(sum, dir, p.Command)
		if err == nil && n == 0 && p.Command[0] != "sh" {
			err = fmt.Errorf("program %s was not found in %s or on the PATH", program(p.Command),
				dir)
		}
		if err != nil && len(processes) > 1 {
			err = fmt.Errorf("process %s: %w", p.Name, err)
		}
		if err != nil {
			return nil, err
		}
		out.SizeBytes += n
	}
	out.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return out, nil
}

// digest writes the files that a command names into a sum, and gives their size in bytes.
func digest(sum io.Writer, dir string, args []string) (size int64, err error) {
	for _, path := range files(dir, args) {
		f, err := os.Open(path)
		if err != nil {
			return size, err
		}
		n, err := io.Copy(sum, f)
		_ = f.Close() // it was only read
		if err != nil {
			return size, fmt.Errorf("read %s: %w", path, err)
		}
		size += n
	}
	return size, nil
}

// files are those that a command names: the program, wherever the PATH has it, and arguments.
func files(dir string, args []string) (out []string) {
	for i, word := range args {
		if slices.Contains(shells, word) || strings.HasPrefix(word, "-") {
			continue
		}
		path := word
		if !strings.ContainsRune(word, filepath.Separator) && word == program(args) {
			path, _ = exec.LookPath(word)
		}
		if path != "" && !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			out = append(out, path)
		} else if i > 0 && args[0] == "sh" {
			out = append(out, files(dir, strings.Fields(word))...)
		}
	}
	return out
}

// program is the first word of a command that starts something itself; of a script, of its last
// command.
func program(args []string) string {
	script, commands := scripted(args)
	for _, word := range append(strings.Fields(commands[len(commands)-1]), args...) {
		if word == script {
			break
		}
		if !slices.Contains(shells, word) && !assignment.MatchString(word) &&
			!strings.HasPrefix(word, "-") {
			return word
		}
	}
	return args[0]
}

// between are what stands between the commands of a script.
var between = regexp.MustCompile(`\s*(?:&&?|\|\|?|[;\n])\s*`)

// scripted gives what a shell is to do, and the commands of that; one empty one where there is no
// shell.
func scripted(args []string) (script string, commands []string) {
	if len(args) > 2 && args[0] == "sh" && args[1] == "-c" {
		script = args[2]
	}
	return script, between.Split(strings.Trim(script, "&|; \t\n"), -1)
}

// special are the characters that mean something to a shell outside of quotes.
const special = "|&;<>()$`*?[#~\n"

// artifact is what a build must have made: the program, where the command names one of the folder.
func artifact(args []string) string {
	p := program(args)
	_, commands := scripted(args) // of which the first may be cd
	if len(commands) == 1 && !strings.ContainsAny(p, special) &&
		strings.ContainsRune(p, filepath.Separator) && filepath.IsLocal(p) {
		return filepath.Clean(p)
	}
	return "."
}

// guess is the runtime of a program, where it shows: what compiles while it serves is warmed up for
// longer, and what is not known is taken for such a one.
func guess(dir string, args []string) string {
	name := filepath.Base(program(args))
	for _, known := range []struct{ prefix, runtime string }{
		{"java", "jvm"}, {"node", "node"}, {"python", "cpython"},
	} {
		if strings.HasPrefix(name, known.prefix) {
			return known.runtime
		}
	}
	for _, path := range files(dir, args) {
		if _, err := buildinfo.ReadFile(path); err == nil { // a Go program
			return "native"
		}
	}
	return ""
}

// wayOf is how a target of a project's file is had, which has one way.
func wayOf(t suite.Source) Way {
	switch {
	case t.Compose.Service != "":
		return Compose{service.Compose{File: t.Compose.File, Service: t.Compose.Service},
			t.Compose.Port}
	case t.URL != "":
		return URL(t.URL)
	case t.Image != "":
		return Image{t.Image, t.Port}
	case t.Git != "":
		return Revision{t.Git, Command(t.Command)}
	}
	return Command(t.Command)
}

// Sources are the targets of a project's file, in its order; dir is its folder.
func Sources(p *suite.Project, dir string) (out []Source, err error) {
	for _, name := range p.Names {
		t := p.Targets[name]
		from := Source{Name: name, File: p.File, Way: wayOf(t), Dir: filepath.Join(dir, t.Dir),
			Env: map[string]string{}}
		if t.Dir != "" && !filepath.IsLocal(t.Dir) {
			return nil, fmt.Errorf("%s: target %s: dir %s is not below the file's folder", p.File,
				name, t.Dir)
		}
		from.Built, from.Connections, from.Body = t.Built, t.Connections, t.Body
		if t.Build != "" {
			from.Steps = [][]string{{"sh", "-c", t.Build}}
		}
		for key, value := range t.Env {
			from.Env[key] = string(value)
		}
		for _, p := range t.Processes {
			args, err := Words(p.Command)
			if err != nil {
				return nil, from.wrong("process "+p.Name, err)
			}
			before := service.Process{Name: p.Name, Command: args, Ready: p.Ready, Share: p.Share,
				Backing: p.Backing, Env: map[string]string{}}
			for key, value := range p.Env {
				before.Env[key] = string(value)
			}
			from.Before = append(from.Before, before)
		}
		from.Counters = t.Counters
		for _, need := range slices.Concat(p.Needs, t.Needs) {
			request := []string{need.Tool, "--version"}
			if need.Version != "" {
				if request, err = Words(need.Version); err != nil {
					return nil, fmt.Errorf("%s: command for the version of %s: "+
						"%w", p.File, need.Tool, err)
				}
			}
			from.Wants = append(from.Wants, service.Want{Tool: need.Tool, Ask: request})
		}
		out = append(out, from)
	}
	return out, nil
}

// assignment is a variable in front of a command.
var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// Words splits a command by POSIX' rules of quoting. Variables in front of it are set by env, so
// that no shell stands between the lab and the service. A command that does more than name a
// program and its arguments is handed to sh.
func Words(command string) ([]string, error) {
	words, err := shellwords.Split(command)
	switch {
	case errors.Is(err, shellwords.ErrNeedsShell):
		return []string{"sh", "-c", command}, nil
	case err != nil:
		return nil, err
	case len(words) == 0:
		return nil, errors.New("the command is empty")
	case assignment.MatchString(words[0]):
		return append([]string{"env"}, words...), nil
	}
	return words, nil
}
