package service

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"prony.example/internal/base/lazyregexp"
	"prony.example/internal/base/runtimes"
)

// placeholder is a word in braces; other braces, as those of JSON, are left alone.
// That of another process's port has a dot.
var placeholder = lazyregexp.New(`\{([A-Za-z][A-Za-z0-9_-]*(?:\.[a-z]+)?)\}`)

var (
	buildPlaceholders = []string{"dir", "java", "python", "node"}
	envPlaceholders   = append(slices.Clone(buildPlaceholders),
		"postgres", "host", "port", "cpus", "memoryMiB", "heapMiB")
	runPlaceholders = append(slices.Clone(envPlaceholders), "jvm")
)

// jvmOptions are what the argument {jvm} stands for: the same for every JVM of the catalog, so that
// no framework's number is that of its heap. By itself the JVM would take the serial collector on
// one core and G1 on two (JDK 25, "Ergonomics"). AlwaysPreTouch pays for the heap's pages when it
// grows, not in the requests that first touch them.
var jvmOptions = []string{
	"-Xms64m", "-Xmx{heapMiB}m", "-XX:+UseG1GC", "-XX:+AlwaysPreTouch",
	"-XX:ActiveProcessorCount={cpus}", "-XX:+ExitOnOutOfMemoryError",
}

// containedJVM tells the JVM of an image, whose entry point is its own, what {jvm} says of sizes. A
// JVM in a container sees the limits of the whole container, a system's process only its share. The
// java launcher reads the variable (JDK 9 and later, "JDK_JAVA_OPTIONS").
const (
	containedJVM = "-Xmx{heapMiB}m -XX:ActiveProcessorCount={cpus}"
	jdkOptions   = "JDK_JAVA_OPTIONS"
)

// passedOn is all of the lab's own environment that a target sees: what programs need to find each
// other and their files, and nothing that could tune one target by accident.
var passedOn = []string{"PATH", "HOME", "LANG", "TMPDIR"}

// Values are the placeholders that a trial decides.
type Values struct {
	Host string // where processes of the target find each other
	// Listen is where a process in a container takes requests; empty: at Host.
	Listen      string
	Ports       []int   // one for each process of the target
	CPUs        float64 // processor time per second; a service is told whole cores, rounded up
	MemoryBytes int64   // of all processes together, and of each backing one that has cores
	Backing     int     // cores of backing processes; 0: they share what the others have
	// Env rides along, over what the manifest says, with the processes On, or with all.
	Env map[string]string
	On  []string
	// Words are further placeholders of Env, for all processes; {service}, {part} and {metricsPort}
	// are each process's own.
	Words        map[string]string
	MetricsPorts []int // one for each process, where there are any
	// Append is put behind what a variable holds, after a blank, for all processes: the lab's own
	// options. It has the same placeholders.
	Append map[string]string
	// Pad is the length of the variable PadVariable, in bytes, by which the stack begins elsewhere:
	// its place alone can change a program's speed (Mytkowicz et al., "Producing Wrong Data Without
	// Doing Anything Obviously Wrong!", 2009). 0: there is none.
	Pad int
}

// PadVariable means nothing to a target.
const PadVariable = "PRONY_PAD"

// backs says whether a process has the cores of backing ones.
func (v Values) backs(p Process) bool { return p.Backing && v.Backing > 0 }

func (v Values) env(process string) map[string]string {
	if len(v.On) > 0 && process != "" && !slices.Contains(v.On, process) {
		return nil
	}
	return v.Env
}

// Start is how one process of a target is started, for the working directory b.Dir.
type Start struct {
	Name        string   // of the process in its system; empty: the target is no system
	Image       string   // that its container is started from; empty: it is a plain process
	Args        []string // the program is a name to look up in PATH or an absolute path
	Written     []string // Args with every port as its placeholder: equal from start to start
	Env         []string // the whole of it, "NAME=value", sorted
	Port        int
	MemoryBytes int64  // its share
	Backing     bool   // it has cores of its own, and no part in the limits
	Ready       string // path that answers 200; empty: ready when it accepts a connection
}

// Starts gives how to start a target of a built service: one process, or those of a system in
// order, of which the last takes the requests. The environment is HOST, PORT, CPUS and MEMORY_MIB,
// what the manifest says, the target's before the process's before the service's, and of the lab's
// own only PATH, HOME, LANG and TMPDIR. A container has those of its image, and its entry point,
// behind which the arguments are.
func (s *Service) Starts(b *Built, t Target, v Values) ([]Start, error) {
	processes := s.Processes(t)
	if len(v.Ports) != len(processes) {
		return nil, fmt.Errorf("start %s: %d ports for %d processes", s.Full(t), len(v.Ports),
			len(processes))
	}
	shares := 0.0
	for _, p := range processes {
		if !v.backs(p) {
			shares += p.share()
		}
	}
	out := make([]Start, len(processes))
	for i, p := range processes {
		out[i] = Start{Name: p.Name, Port: v.Ports[i], Ready: p.Ready, Backing: v.backs(p),
			MemoryBytes: int64(float64(v.MemoryBytes) * p.share() / shares)}
		if out[i].Backing {
			out[i].MemoryBytes = v.MemoryBytes
		}
		values, err := b.valuesOf(v, out[i])
		if err == nil {
			for k, peer := range processes {
				values[peer.Name+".port"] = strconv.Itoa(v.Ports[k])
			}
			if s.Environ != nil {
				keepBraces(slices.AppendSeq(slices.Clone(p.Command),
					maps.Values(over(s.Run.Env, p.Env))), values)
			}
			maps.Copy(values, v.words(i, ProcessName(s, t, p), cmp.Or(p.Name, s.Name)))
			env := behind(over(s.Run.Env, p.Env, t.Env, v.env(p.Name)), v.Append)
			if v.Pad > 0 {
				env[PadVariable] = strings.Repeat("x", v.Pad)
			}
			if len(b.Images) > 0 {
				out[i].Image = b.Images[p.Name]
				err = out[i].contain(s, t, env, values)
			} else {
				err = out[i].fill(b.Dir, p.Command, s.passes(), env, values)
			}
			if err == nil {
				out[i].Written, err = written(b, t, p, values)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", s.Full(t), err)
		}
	}
	return out, nil
}

// keepBraces lets words in braces that mean nothing here stand for themselves: a command that was
// written for something else may have its own.
func keepBraces(command []string, values map[string]string) {
	for _, text := range command {
		for _, match := range placeholder.FindAllStringSubmatch(text, -1) {
			if _, ok := values[match[1]]; !ok {
				values[match[1]] = match[0]
			}
		}
	}
}

// words are the placeholders of what rides along with the i-th process, which is called name; part
// can be a file's name.
func (v Values) words(i int, name, part string) map[string]string {
	out := over(v.Words, map[string]string{"service": name, "part": part})
	if i < len(v.MetricsPorts) {
		out["metricsPort"] = strconv.Itoa(v.MetricsPorts[i])
	}
	return out
}

// valuesOf are the placeholders of one process.
func (b *Built) valuesOf(v Values, p Start) (map[string]string, error) {
	const mebibyte = 1 << 20
	memory := p.MemoryBytes / mebibyte
	if p.Port < 1 || p.Port > math.MaxUint16 || memory < 1 || !(v.CPUs > 0) {
		return nil, fmt.Errorf("port %d, %g CPUs, %d bytes of memory: a target needs a port, "+
			"processor time and at least 1 MiB of memory", p.Port, v.CPUs, p.MemoryBytes)
	}
	values := b.values()
	values["host"], values["port"] = v.Host, strconv.Itoa(p.Port)
	values[listenWord] = cmp.Or(v.Listen, v.Host)
	values["cpus"] = strconv.FormatFloat(math.Ceil(v.CPUs), 'f', 0, 64)
	if p.Backing {
		values["cpus"] = strconv.Itoa(v.Backing)
	}
	values["memoryMiB"] = strconv.FormatInt(memory, 10)
	values["heapMiB"] = strconv.FormatInt(memory*3/4, 10)
	return values, nil
}

// listenWord is a value that no placeholder can ask for: manifests need not know of containers.
const listenWord = "listen address"

// passes is what a process sees of the environment that its service is started from.
func (s *Service) passes() map[string]string {
	out := map[string]string{}
	for _, pair := range s.Environ {
		name, value, _ := strings.Cut(pair, "=")
		out[name] = value
	}
	for _, name := range passedOn {
		if value, ok := os.LookupEnv(name); ok && s.Environ == nil {
			out[name] = value
		}
	}
	return out
}

// fill sets arguments and environment, over what is passed on.
func (s *Start) fill(dir string, command []string, all, env, values map[string]string) (err error) {
	if err := s.setEnv(all, env, values); err != nil {
		return err
	}
	if s.Args, err = expandAll(command, values); err != nil {
		return err
	}
	if len(s.Args) == 0 {
		return errors.New("run.command is missing")
	}
	s.Args[0] = inside(dir, s.Args[0])
	return nil
}

// contain sets arguments and environment of a container.
func (s *Start) contain(service *Service, t Target, env, values map[string]string) (err error) {
	if runtimes.Of(t.Runtime).HotSpot {
		env = behind(env, map[string]string{jdkOptions: containedJVM})
	}
	if err := s.setEnv(map[string]string{}, env, values); err != nil {
		return err
	}
	if s.Image == "" {
		return fmt.Errorf("process %s of %s has no image", s.Name, service.Name)
	}
	s.Args, err = expandAll(t.Args, values)
	return err
}

// written gives the arguments with the ports, which the lab draws anew for each start, as the
// command has them, and with the folder of the build, of which each start may have a copy.
func written(b *Built, t Target, p Process, values map[string]string) ([]string, error) {
	values = maps.Clone(values)
	values["dir"] = cmp.Or(b.original, b.Dir)
	for name := range values {
		if name == "port" || strings.HasSuffix(name, ".port") || name == "metricsPort" {
			values[name] = "{" + name + "}"
		}
	}
	if len(b.Images) > 0 {
		return expandAll(t.Args, values)
	}
	out, err := expandAll(p.Command, values)
	if len(out) > 0 {
		out[0] = inside(values["dir"], out[0])
	}
	return out, err
}

// setEnv sets the environment over what is passed on.
func (s *Start) setEnv(all, env, values map[string]string) (err error) {
	for name, value := range env {
		if all[name], err = expand(value, values); err != nil {
			return err
		}
	}
	all["HOST"], all["PORT"], all["CPUS"] = values[listenWord], values["port"], values["cpus"]
	all["MEMORY_MIB"] = values["memoryMiB"]
	for _, name := range sortedKeys(all) {
		s.Env = append(s.Env, name+"="+all[name])
	}
	return nil
}

// over lays maps over each other, the last on top.
func over(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		maps.Copy(out, m)
	}
	return out
}

// behind appends to variables.
func behind(env, more map[string]string) map[string]string {
	for name, value := range more {
		env[name] = strings.TrimSpace(env[name] + " " + value)
	}
	return env
}

// inside makes a program that is named by a relative path one of the folder; a bare name is left
// for PATH. Without it the path would be relative to wherever the lab was called.
func inside(dir, program string) string {
	if strings.ContainsRune(program, filepath.Separator) && !filepath.IsAbs(program) {
		return filepath.Join(dir, program)
	}
	return program
}

func expandAll(texts []string, values map[string]string) ([]string, error) {
	for pos := slices.Index(texts, "{jvm}"); pos >= 0; pos = slices.Index(texts, "{jvm}") {
		texts = slices.Concat(texts[:pos], jvmOptions, texts[pos+1:])
	}
	out := make([]string, len(texts))
	for i, text := range texts {
		var err error
		if out[i], err = expand(text, values); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// expand puts values for placeholders, once: a value with braces in it stays as it is. The manifest
// was checked when it was loaded, so what has no value here is a tool that the build did not
// record.
func expand(text string, values map[string]string) (string, error) {
	var err error
	out := placeholder.ReplaceAllStringFunc(text, func(word string) string {
		value, ok := values[word[1:len(word)-1]]
		if !ok {
			err = fmt.Errorf("%s has no value in %q", word, text)
		}
		return value
	})
	return out, err
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
