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

// placeholder is a word in braces; with a dot it is the port of another process. Other braces, such
// as those of JSON, stay.
var placeholder = lazyregexp.New(`\{([A-Za-z][A-Za-z0-9_-]*(?:\.[a-z]+)?)\}`)

var (
	buildPlaceholders = []string{"dir", "java", "python", "node"}
	envPlaceholders   = append(slices.Clone(buildPlaceholders),
		"postgres", "host", "port", "cpus", "memoryMiB", "heapMiB")
	runPlaceholders = append(slices.Clone(envPlaceholders), "jvm", "native")
)

// options replace an argument of its own, such as {jvm}. They are the same for every JVM or native
// image of the catalog, so that heap sizes do not distort the comparison of frameworks.
type options struct {
	argument string
	base     []string
	// dumps follow if there is a folder for dumps: the heap of a JVM or native image that ran
	// out of memory, and the report of a JVM that crashed. They change nothing before that, so
	// Written does not contain them.
	dumps []string
}

// optionLists are the arguments that become several. By default the JVM would choose the serial
// collector on one core and G1 on two (JDK 25, "Ergonomics"). AlwaysPreTouch pays for the heap's
// pages when it grows, not in the requests that first touch them.
var optionLists = []options{
	{"{jvm}", []string{
		"-Xms64m", "-Xmx{heapMiB}m", "-XX:+UseG1GC", "-XX:+AlwaysPreTouch",
		"-XX:ActiveProcessorCount={cpus}", "-XX:+ExitOnOutOfMemoryError",
	}, []string{
		"-XX:+HeapDumpOnOutOfMemoryError", "-XX:HeapDumpPath={dumps}", "-XX:HeapDumpGzipLevel=1",
		"-XX:ErrorFile={dumps}/hs_err_pid%p.log",
	}},
	{"{native}", []string{
		"-Xms64m", "-Xmx{heapMiB}m", "-XX:ActiveProcessorCount={cpus}",
		"-XX:+ExitOnOutOfMemoryError",
	}, []string{"-XX:+HeapDumpOnOutOfMemoryError", "-XX:HeapDumpPath={dumps}"}},
}

// ImageDumps is the folder into which JVMs and native images of the catalog write their heap dumps.
const ImageDumps = "/dumps"

// containedJVM passes the sizes of {jvm} to the JVM of an image, which has its own entry point. A
// JVM in a container detects the limits of the whole container, but a system's process has only its
// share. The java launcher reads the variable (JDK 9 and later, "JDK_JAVA_OPTIONS").
const (
	containedJVM = "-Xmx{heapMiB}m -XX:ActiveProcessorCount={cpus}"
	jdkOptions   = "JDK_JAVA_OPTIONS"
)

// passedOn are the only variables that a target inherits. Programs need them to find each other and
// their files, and they tune no target by accident.
var passedOn = []string{"PATH", "HOME", "LANG", "TMPDIR"}

// Values are the placeholders that a trial determines.
type Values struct {
	Host string // address at which processes of the target reach each other
	// Listen is the address at which a process in a container listens; empty: Host.
	Listen      string
	Ports       []int   // one for each process of the target
	CPUs        float64 // processor time per second; rounded up to cores for a service
	MemoryBytes int64   // of all processes together, and of each backing one with its own cores
	Backing     int     // cores of backing processes; 0: they share the others' cores
	// Env overrides the manifest's variables for the processes On, or for all.
	Env map[string]string
	On  []string
	// Words are more placeholders of Env, for all processes; {service}, {part} and {metricsPort}
	// differ for each process.
	Words        map[string]string
	MetricsPorts []int // one for each process, if any
	// Append is appended to the values of variables, after a blank, for all processes: Prony's own
	// options. It has the same placeholders.
	Append map[string]string
	Dumps  string // folder in which JVMs leave dumps if they fail; empty: they leave none
	// Pad is the length of the variable PadVariable in bytes, which shifts the stack: its address
	// alone can change a program's speed (Mytkowicz et al., "Producing Wrong Data Without Doing
	// Anything Obviously Wrong!", 2009). 0: no variable.
	Pad int
}

// PadVariable is ignored by targets.
const PadVariable = "PRONY_PAD"

// backs reports whether a process has cores of its own, as a backing process.
func (v Values) backs(p Process) bool { return p.Backing && v.Backing > 0 }

func (v Values) env(process string) map[string]string {
	if len(v.On) > 0 && process != "" && !slices.Contains(v.On, process) {
		return nil
	}
	return v.Env
}

// Start describes how to start one process of a target in the working directory b.Dir.
type Start struct {
	Name        string   // of the process in its system; empty: not a system
	Image       string   // of its container; empty: a plain process
	Args        []string // the program is a name in PATH or an absolute path
	Written     []string // Args with placeholders for ports: equal in all starts
	Env         []string // complete, "NAME=value", sorted
	Port        int
	MemoryBytes int64  // its share
	Backing     bool   // it has cores of its own, outside of the limits
	Ready       string // path that answers 200; empty: ready when it accepts a connection
}

// Starts returns how to start a target of a built service: one process, or those of a system in
// order, of which the last receives the requests. The environment has HOST, PORT, CPUS and
// MEMORY_MIB, the manifest's variables (the target's override the process's, and these the
// service's), and only PATH, HOME, LANG and TMPDIR of this program's own. A container has those of
// its image, and the arguments follow its entry point.
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

// keepBraces adds words in braces without a value as values of themselves, since commands that were
// written for other programs may contain braces.
func keepBraces(command []string, values map[string]string) {
	for _, text := range command {
		for _, match := range placeholder.FindAllStringSubmatch(text, -1) {
			if _, ok := values[match[1]]; !ok {
				values[match[1]] = match[0]
			}
		}
	}
}

// words returns the placeholders of Values.Env for the i-th process, called name; part is the name
// in a form for file names.
func (v Values) words(i int, name, part string) map[string]string {
	out := over(v.Words, map[string]string{"service": name, "part": part})
	if i < len(v.MetricsPorts) {
		out["metricsPort"] = strconv.Itoa(v.MetricsPorts[i])
	}
	return out
}

// valuesOf returns the placeholders of one process.
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
	values[dumpsWord] = v.Dumps
	return values, nil
}

// listenWord is a key that no placeholder can have: manifests need not distinguish containers.
const listenWord = "listen address"

// dumpsWord is the placeholder of options.dumps.
const dumpsWord = "dumps"

// passes returns the variables that a process inherits from the environment of its service.
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

// fill sets arguments and environment; env overrides the inherited variables in all.
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

// written returns the arguments with placeholders for the ports, which differ between starts, and
// with the folder of the build, since each start may use a copy.
func written(b *Built, t Target, p Process, values map[string]string) ([]string, error) {
	values = maps.Clone(values)
	values["dir"] = cmp.Or(b.original, b.Dir)
	for name := range values {
		if name == "port" || strings.HasSuffix(name, ".port") || name == "metricsPort" {
			values[name] = "{" + name + "}"
		}
	}
	values[dumpsWord] = ""
	if len(b.Images) > 0 {
		return expandAll(t.Args, values)
	}
	out, err := expandAll(p.Command, values)
	if len(out) > 0 {
		out[0] = inside(values["dir"], out[0])
	}
	return out, err
}

// setEnv sets the environment; env overrides the inherited variables in all.
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

// over merges maps; later maps override earlier ones.
func over(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		maps.Copy(out, m)
	}
	return out
}

// behind appends values to variables, after a blank.
func behind(env, more map[string]string) map[string]string {
	for name, value := range more {
		env[name] = strings.TrimSpace(env[name] + " " + value)
	}
	return env
}

// inside resolves a relative path of a program against the folder, not against the current
// directory of the caller. It returns a bare name unchanged, for PATH.
func inside(dir, program string) string {
	if strings.ContainsRune(program, filepath.Separator) && !filepath.IsAbs(program) {
		return filepath.Join(dir, program)
	}
	return program
}

func expandAll(texts []string, values map[string]string) ([]string, error) {
	for _, o := range optionLists {
		find := func() int { return slices.Index(texts, o.argument) }
		for pos := find(); pos >= 0; pos = find() {
			list := o.base
			if values[dumpsWord] != "" {
				list = slices.Concat(list, o.dumps)
			}
			texts = slices.Concat(texts[:pos], list, texts[pos+1:])
		}
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

// expand replaces placeholders by values, once: braces in values stay. The manifest was checked
// when it was loaded, so a missing value belongs to a tool that the build did not record.
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
