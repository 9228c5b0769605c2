package service

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// placeholder is a word in braces; other braces, as those of JSON, are left alone.
var placeholder = regexp.MustCompile(`\{([A-Za-z][A-Za-z0-9_-]*)\}`)

var (
	buildPlaceholders = []string{"dir", "java", "python", "node"}
	runPlaceholders   = append(slices.Clone(buildPlaceholders),
		"host", "port", "cpus", "memoryMiB", "heapMiB", "jvm")
)

// jvmOptions are what the argument {jvm} stands for: the same for every JVM of the catalog, so that
// no framework's number is that of its heap. By itself the JVM would take the serial collector on
// one core and G1 on two (JDK 25, "Ergonomics"). AlwaysPreTouch pays for the heap's pages when it
// grows, not in the requests that first touch them.
var jvmOptions = []string{
	"-Xms64m", "-Xmx{heapMiB}m", "-XX:+UseG1GC", "-XX:+AlwaysPreTouch",
	"-XX:ActiveProcessorCount={cpus}", "-XX:+ExitOnOutOfMemoryError",
}

// passedOn is all of the lab's own environment that a target sees: what programs need to find each
// other and their files, and nothing that could tune one target by accident.
var passedOn = []string{"PATH", "HOME", "LANG", "TMPDIR"}

// Values are the placeholders that a trial decides.
type Values struct {
	Host        string
	Port        int
	CPUs        float64 // processor time per second; a service is told whole cores, rounded up
	MemoryBytes int64
}

// Command gives the argument list and the whole environment ("NAME=value", sorted) that start a
// target of a built service, for the working directory b.Dir. The program is a name to look up in
// PATH or an absolute path. The environment is HOST, PORT, CPUS and MEMORY_MIB, what the manifest
// says, the target's before the service's, and of the lab's own only PATH, HOME, LANG and TMPDIR.
func (s *Service) Command(b *Built, t Target, v Values) (args, env []string, err error) {
	const mebibyte = 1 << 20
	memory := v.MemoryBytes / mebibyte
	if v.Port < 1 || v.Port > math.MaxUint16 || memory < 1 || !(v.CPUs > 0) {
		return nil, nil, fmt.Errorf("start %s: port %d, %g CPUs, %d bytes of memory: "+
			"a target needs a port, processor time and at least 1 MiB", s.Full(t), v.Port, v.CPUs,
			v.MemoryBytes)
	}
	port := strconv.Itoa(v.Port)
	cpus := strconv.FormatFloat(math.Ceil(v.CPUs), 'f', 0, 64)
	values := b.values()
	values["host"], values["port"], values["cpus"] = v.Host, port, cpus
	values["memoryMiB"] = strconv.FormatInt(memory, 10)
	values["heapMiB"] = strconv.FormatInt(memory*3/4, 10)

	all := map[string]string{}
	for _, name := range passedOn {
		if value, ok := os.LookupEnv(name); ok {
			all[name] = value
		}
	}
	for _, more := range []map[string]string{s.Run.Env, t.Env} {
		for name, value := range more {
			if all[name], err = expand(value, values); err != nil {
				return nil, nil, fmt.Errorf("start %s: %w", s.Full(t), err)
			}
		}
	}
	all["HOST"], all["PORT"], all["CPUS"] = v.Host, port, cpus
	all["MEMORY_MIB"] = values["memoryMiB"]
	for _, name := range sortedKeys(all) {
		env = append(env, name+"="+all[name])
	}
	args, err = expandAll(slices.Concat(s.Run.Command, t.Args), values)
	if err == nil && len(args) == 0 {
		err = errors.New("run.command is missing")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("start %s: %w", s.Full(t), err)
	}
	args[0] = inside(b.Dir, args[0])
	return args, env, nil
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
	if at := slices.Index(texts, "{jvm}"); at >= 0 {
		texts = slices.Concat(texts[:at], jvmOptions, texts[at+1:])
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
