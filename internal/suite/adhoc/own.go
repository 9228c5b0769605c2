// Package adhoc makes targets of a user's own services: named on a command line by the command that
// starts them, a revision of a repository, a URL, an image, or a service of a Compose file. The
// results are the same services and suites that a checkout has, so that all runs work the same way:
//
//	Source ─ Services ─► send each the requests ─► Hold ─ Suite ─► internal/trial/lab
//
// Non-goals: it starts, builds and measures nothing.
package adhoc

import (
	"cmp"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"prony.example/internal/base/address"
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

// Source describes where a target comes from.
type Source struct {
	Name string // empty: made of Way
	Way  Way    // how it is obtained
	// Dir is where the target is started: for a revision, the user's working directory until Clone.
	Dir      string
	Steps    [][]string // that build it before the command is started
	Remote   []string   // hosts of URLs on other machines that may be loaded
	Env      map[string]string
	Wants    []service.Want
	Before   []service.Process // started before the command, in order
	Counters map[string]counters.Place
	// File is the file that describes the target; empty: it is on the command line.
	File string
	// Port is the fixed port of a service that is started by a command; 0: assigned.
	Port int
	// Built is the name of its build, for sources that share one; empty: its own name.
	Built string
	// Connections is the number of connections of its loads and warm-up; 0: the suite's.
	Connections int
	// Body is the size of request bodies; 0: the suite's bodies.
	Body strictyaml.Size
	// Again marks an A/A control: a second copy beside the first, whose differences are noise.
	Again bool

	checkout *service.Checkout // of the revision; set by Clone
}

// Way is how a target is obtained: a Command, a Revision, a URL, an Image or a Compose.
type Way interface {
	text() string  // as the user named it
	named() string // basis of a default name
}

// Command starts the service from the source's folder, as a shell does. The service listens at
// $PORT, or at {port} of the command.
type Command string

// Revision builds a revision of the repository in the source's folder, and starts it.
type Revision struct {
	Git   string
	Start Command
}

// URL is the address of a running service.
type URL string

// Image is an image of the local Docker engine.
type Image struct {
	Name     string
	Port     int    // of the service; 0: the port that it exposes, otherwise $PORT
	Launcher string // of suite.Launchers; empty: docker
}

// Compose is a service of a Compose file, which is started.
type Compose struct {
	service.Compose
	Port int // of its container; 0: the port in the file
}

func (c Command) text() string  { return string(c) }
func (r Revision) text() string { return string(r.Start) }
func (u URL) text() string      { return string(u) }
func (i Image) text() string    { return i.Name }
func (c Compose) text() string  { return c.Service }

func (c Command) named() string {
	text := user.ReplaceAllString(string(c), "$1")
	return noPort.ReplaceAllString(folders.ReplaceAllString(text, "$1"), "")
}
func (r Revision) named() string { return r.Git }
func (u URL) named() string      { return scheme.ReplaceAllString(string(u), "") }
func (i Image) named() string    { return i.Name }
func (c Compose) named() string {
	folders := strings.TrimSuffix(c.File, filepath.Ext(c.File))
	return strings.TrimPrefix(folders+"-"+c.Service, composeFile+"-")
}

// Stays reports whether the target cannot be moved to other cores: containers and running services.
func (s Source) Stays() bool {
	switch s.Way.(type) {
	case URL, Image, Compose:
		return true
	}
	return false
}

// composeFile is the name of the default Compose file without its ending.
const composeFile = "compose"

// ParseCompose reads FILE:SERVICE, or a service of compose.yaml alone.
func ParseCompose(text string) (service.Compose, error) {
	file, name := composeFile+".yaml", text
	if colon := strings.LastIndexByte(text, ':'); colon >= 0 {
		file, name = text[:colon], text[colon+1:]
	}
	if file == "" || name == "" || strings.ContainsAny(name, "/ ") {
		return service.Compose{}, fmt.Errorf("%q is not a service of a Compose file: write "+
			"SERVICE or FILE:SERVICE, such as old/compose.yaml:web", text)
	}
	return service.Compose{File: file, Service: name}, nil
}

// maxName keeps names short enough for files, cgroups and the first column of a table.
const maxName = 32

// AgainSuffix ends the name of a service that runs a second time as the control.
const AgainSuffix = record.AgainSuffix

var (
	notName = regexp.MustCompile(`[^A-Za-z0-9._]+`)
	user    = regexp.MustCompile(`(://)[^/?#\s]*@`) // of a URL, perhaps with a password
	folders = regexp.MustCompile(`(^|[ =])[^ =]*/`) // folders before a program's or file's name
	noPort  = regexp.MustCompile(`\{port\}|\$\{?PORT\}?`)
	scheme  = regexp.MustCompile(`^[a-z]+://`)
	isName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
)

// Services makes a service of each source, in order. environ is the user's whole environment,
// because a command that works by hand must also work here. ready is the path that answers 200 once
// a service serves; empty: its first connection. Errors are usage errors that name the source.
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
		s := &service.Service{Name: names[i], Contracts: []string{""}, Port: from.Port,
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
			s.Run.Command, s.Build.Artifact = nil, "." // the folder: several programs
		}
		if err := from.have(s, &target, args); err != nil {
			return nil, err
		}
		s.Targets = []service.Target{target}
		out[i] = s
	}
	return out, nil
}

// have sets how a service is obtained if nothing builds it.
func (s Source) have(to *service.Service, target *service.Target, args []string) (err error) {
	switch way := s.Way.(type) {
	case URL:
		to.Made = &service.Built{Dir: s.Dir}
		if err := s.attach(string(way), to.Made); err != nil {
			return s.wrong("--url "+address.Shown(string(way)), err)
		}
	case Compose:
		to.Made = &service.Built{Dir: s.Dir, Front: way.Service, Port: way.Port,
			Compose: &way.Compose, Images: map[string]string{"": way.Service}}
	case Image:
		to.Made = &service.Built{Dir: s.Dir, Front: way.Name, Port: way.Port,
			Images: map[string]string{"": way.Name}, Launcher: way.Launcher}
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

// wrong wraps an error of a source: with the command line's words for it, or with its file.
func (s Source) wrong(called string, err error) error {
	if s.File != "" {
		return fmt.Errorf("%s: target %s: %s: %w", s.File, s.Name,
			strings.TrimPrefix(called, "--"), err)
	}
	return cli.Usagef("%s: %w", called, err)
}

// attach finds the service of a URL, and its host name for requests; empty: its address. Of
// several addresses it takes the first that accepts a connection. Another machine must be in
// Remote, because a load may harm a machine that does not expect it.
func (s Source) attach(text string, to *service.Built) error {
	u, err := address.Parse(text, "http", "https")
	switch {
	case err != nil:
		return err
	case u.Basic != "":
		return errors.New("the URL has a user; remove it, and give the requests -H " +
			"'Authorization: Basic …', or ${NAME} of the environment instead of the value")
	case strings.Trim(u.Path, "/") != "":
		return errors.New("the URL must be only " + u.Scheme + "://HOST:PORT; set the " +
			"path in the requests")
	}
	all, err := u.Resolve(context.Background(), ports[u.Scheme])
	if err != nil {
		return err
	}
	may := func(addr netip.AddrPort) error {
		if slices.Contains(s.Remote, u.Name) {
			return nil
		}
		return host.MayLoad(u.Name, addr.Addr())
	}
	to.Attached, to.Note = u.Choose(all, func(addr netip.AddrPort) error {
		if may(addr) != nil {
			return errors.New("it is another machine")
		}
		conn, err := net.DialTimeout("tcp", addr.String(), reachBound)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	ip, err := netip.ParseAddr(u.Name)
	if err != nil {
		to.Host = u.Host
	} else if ip.Zone() != "" {
		to.Host = address.WithoutZone(to.Attached.String())
	}
	return may(to.Attached)
}

// reachBound bounds the connection to each address of a URL.
const reachBound = 2 * time.Second

// Protocol returns the protocol for all sources, given the one that the scenario requests; empty:
// HTTP/1.1.
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

// ports are the default ports of the schemes of URLs.
var ports = map[string]string{"http": "80", "https": "443"}

// named returns a different name for each source.
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

// shells are programs that start another program, which is the service.
var shells = []string{"env", "sh", "exec", "nice", "taskset", "time"}

// made describes for the record what is started: the digest of the programs and of every file that
// the commands name, such as a jar or a script.
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

// digest writes the files that a command names into a sum, and returns their size in bytes.
func digest(sum io.Writer, dir string, args []string) (size int64, err error) {
	for _, path := range files(dir, args) {
		f, err := os.Open(path)
		if err != nil {
			return size, err
		}
		n, err := io.Copy(sum, f)
		_ = f.Close() // nothing was written
		if err != nil {
			return size, fmt.Errorf("read %s: %w", path, err)
		}
		size += n
	}
	return size, nil
}

// files returns the files that a command names: its program, also on the PATH, and its arguments.
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

// program returns the program of a command that starts another; for a script, that of its last
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

// between matches the separators between the commands of a script.
var between = regexp.MustCompile(`\s*(?:&&?|\|\|?|[;\n])\s*`)

// scripted returns the script that a shell runs, and its commands. Without a shell, these are one
// empty command.
func scripted(args []string) (script string, commands []string) {
	if len(args) > 2 && args[0] == "sh" && args[1] == "-c" {
		script = args[2]
	}
	return script, between.Split(strings.Trim(script, "&|; \t\n"), -1)
}

// special are the characters that mean something to a shell outside of quotes.
const special = "|&;<>()$`*?[#~\n"

// artifact returns what a build must make: the command's program if it is in the folder, otherwise
// the folder.
func artifact(args []string) string {
	p := program(args)
	_, commands := scripted(args) // the first command may be cd
	if len(commands) == 1 && !strings.ContainsAny(p, special) &&
		strings.ContainsRune(p, filepath.Separator) && filepath.IsLocal(p) {
		return filepath.Clean(p)
	}
	return "."
}

// guess returns the runtime of a program, or "" if unknown. Services that compile at run time, and
// unknown ones, get a longer warm-up.
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

// wayOf returns how a target of a project file is obtained.
func wayOf(t suite.Source) Way {
	switch {
	case t.Compose.Service != "":
		return Compose{service.Compose{File: t.Compose.File, Service: t.Compose.Service},
			t.Compose.Port}
	case t.URL != "":
		return URL(t.URL)
	case t.Image != "":
		return Image{Name: t.Image, Port: t.Port}
	case t.Git != "":
		return Revision{t.Git, Command(t.Command)}
	}
	return Command(t.Command)
}

// Sources returns the targets of a project file, in its order; dir is its folder.
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
		if t.Command != "" {
			from.Port = t.Port
		}
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

// assignment matches a variable in front of a command.
var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// Words splits a command by POSIX rules of quoting. Variables in front of it are set by env, so
// that no shell runs between the lab and the service. If a command is more than a program and its
// arguments, sh runs it.
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
