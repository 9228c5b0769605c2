package agents

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"prony.example/internal/base/files"
	"prony.example/internal/service"
)

// mavenCopy is the goal that copies one artifact, with a fixed version of the plugin, because the
// default version depends on the installed Maven.
const mavenCopy = "org.apache.maven.plugins:maven-dependency-plugin:3.9.0:copy"

// fetchLimit is the timeout of one fetch; a slow registry takes a minute or two.
const fetchLimit = 15 * time.Minute

// tailLines is the number of a tool's last lines in an error.
const tailLines = 12

// install says what to install if a tool is missing.
var install = map[string]string{
	"mvn": "install Apache Maven", "npm": "install npm", "python": "install CPython",
}

// programs are the possible names of a tool. The first that is installed is used.
var programs = map[string][]string{
	"mvn": {"mvn"}, "npm": {"npm"}, "python": {"python3", "python"},
}

// way is one way to fetch an agent: its key, and the tool that fetches.
type way struct{ key, value, tool string }

// ways returns the given ways: at most one for an agent that was checked.
func (f Fetch) ways() []way {
	all := []way{{"maven", f.Maven, "mvn"}, {"npm", f.Npm, "npm"}, {"pip", f.Pip, "python"},
		{"path", f.Path, ""}, {"build", f.Build, ""}}
	return slices.DeleteFunc(all, func(w way) bool { return w.value == "" })
}

// Tool returns the tool that fetches the agent: mvn, npm or python; empty: nothing is fetched.
func (a Agent) Tool() string {
	for _, w := range a.Fetch.ways() {
		return w.tool
	}
	return ""
}

// Source returns where the agent comes from, such as "maven:GROUP:ARTIFACT:VERSION"; empty if there
// is nothing to fetch.
func (a Agent) Source() string {
	for _, w := range a.Fetch.ways() {
		return w.key + ":" + w.value
	}
	return ""
}

// folder returns the folder of pinned versions, for npm and pip.
func (a Agent) folder() string { return a.Fetch.Npm + a.Fetch.Pip }

// fileName returns the name of Maven's file in the cache.
func (a Agent) fileName() string {
	parts := strings.Split(a.Fetch.Maven, ":")
	return strings.Join(parts[1:], "-") + ".jar"
}

// Version returns the agent's version, from Maven's coordinates or the pinned packages below root;
// empty: unknown before it is fetched.
func (a Agent) Version(root string) (string, error) {
	switch {
	case a.Fetch.Maven != "":
		return strings.Split(a.Fetch.Maven, ":")[2], nil
	case a.Fetch.Npm != "":
		return a.npmVersion(root)
	case a.Fetch.Pip != "":
		return a.pipVersion(root)
	}
	return "", nil
}

func (a Agent) npmVersion(root string) (string, error) {
	name := filepath.Join(root, filepath.FromSlash(a.Fetch.Npm), "package-lock.json")
	data, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("read pinned versions: %w", err)
	}
	var file struct {
		Packages map[string]struct{ Version string }
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return "", fmt.Errorf("read pinned versions: %s: %w", name, err)
	}
	version := file.Packages["node_modules/"+a.Fetch.Package].Version
	if version == "" {
		return "", fmt.Errorf("read pinned versions: lock file %s does not contain package "+
			"%s", name, a.Fetch.Package)
	}
	return version, nil
}

func (a Agent) pipVersion(root string) (string, error) {
	name := filepath.Join(root, filepath.FromSlash(a.Fetch.Pip), requirements)
	data, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("read pinned versions: %w", err)
	}
	version := ""
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		subject, is, pinned := strings.Cut(line, "==")
		if !pinned {
			return "", fmt.Errorf("read pinned versions: %s:%d: %q has no version; write name==1.2",
				name, i+1, line)
		}
		if subject == a.Fetch.Package {
			version = is
		}
	}
	if version == "" {
		return "", fmt.Errorf("read pinned versions: %s does not contain package "+
			"%s", name, a.Fetch.Package)
	}
	return version, nil
}

// Missing returns, in words for the user, what an agent lacks here: the tool that fetches it, or
// variables of the user's environment.
func (f *Fetcher) Missing(a Agent) (missing []string) {
	if tool := a.Tool(); tool != "" && f.program(tool) == "" {
		missing = append(missing, fmt.Sprintf("needs %s, which was not found "+
			"(%s)", tool, install[tool]))
	}
	missing = append(missing, unset(a.Fetch.Path, f.lookup)...)
	if Platform() == "" && a.uses("platform") {
		missing = append(missing, fmt.Sprintf("has no release for %s on %s", runtime.GOOS,
			runtime.GOARCH))
	}
	return missing
}

// Lacks returns which variables of the user's environment a level needs that are not set.
func (f *Fetcher) Lacks(r Ride) []string { return r.lacks(f.lookup) }

func (f *Fetcher) program(tool string) string {
	for _, name := range programs[tool] {
		if path, err := f.look(name); err == nil {
			return path
		}
	}
	return ""
}

// order is one call of a tool.
type order struct {
	program, dir string
	args         []string
	log          string // file for its output
}

// get fetches into the folder content, and writes its log into folder.
func (f *Fetcher) get(ctx context.Context, a Agent, folder, content string) error {
	o := order{program: f.program(a.Tool()), dir: content, log: filepath.Join(folder, "fetch.log")}
	pinned := filepath.Join(f.Root, filepath.FromSlash(a.folder()))
	switch {
	case a.Fetch.Maven != "":
		parts := strings.Split(a.Fetch.Maven, ":")
		artifact := strings.Join(append(parts[:3:3], append([]string{"jar"}, parts[3:]...)...), ":")
		o.args = []string{"-B", "-q", mavenCopy, "-Dartifact=" + artifact,
			"-DoutputDirectory=" + content}
	case a.Fetch.Npm != "":
		for _, name := range []string{"package.json", "package-lock.json"} {
			data, err := os.ReadFile(filepath.Join(pinned, name))
			if err == nil {
				err = os.WriteFile(filepath.Join(content, name), data, 0o644)
			}
			if err != nil {
				return fmt.Errorf("copy pinned versions: %w", err)
			}
		}
		// Scripts of packages do not run: none of these packages needs one, and all code that runs
		// must be pinned.
		o.args = []string{"ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"}
	case a.Fetch.Pip != "":
		o.args = []string{"-m", "pip", "install", "-q", "--no-deps", "--target", content, "-r",
			filepath.Join(pinned, requirements)}
	}
	f.say("fetch agent %s: %s", a.Name, a.Source())
	if err := f.run(ctx, o); err != nil {
		return err
	}
	if a.Fetch.Pip != "" {
		return dropScripts(filepath.Join(content, "bin"))
	}
	if a.Fetch.Maven != "" {
		return a.check(content)
	}
	return nil
}

const requirements = "requirements.txt"

// dropScripts removes scripts whose first line names this machine's Python, so that the digest is
// equal on other machines. Nothing calls them. Programs stay.
func dropScripts(bin string) error {
	entries, err := os.ReadDir(bin)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		path := filepath.Join(bin, e.Name())
		data, readErr := os.ReadFile(path)
		err = errors.Join(err, readErr)
		if bytes.HasPrefix(data, []byte("#!")) {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}

// check compares Maven's file with its declared digest, and unpacks it if requested.
func (a Agent) check(content string) error {
	jar := filepath.Join(content, a.fileName())
	sum, err := files.Digest(jar)
	if err != nil {
		return fmt.Errorf("read downloaded file: %w", err)
	}
	if sum != a.SHA256 {
		return fmt.Errorf("%s has the SHA-256 digest %s, but agents.yaml requires %s: the file "+
			"was not used; check the repository from which your Maven downloads it",
			filepath.Base(jar), sum, a.SHA256)
	}
	if !a.Fetch.Unpack {
		return nil
	}
	if err := unpack(jar, content); err != nil {
		return fmt.Errorf("unpack %s: %w", filepath.Base(jar), err)
	}
	return os.Remove(jar)
}

// execute runs a tool in a process group of its own, so that the end of ctx also ends its children.
// The error contains the end of the output.
func execute(ctx context.Context, o order) (err error) {
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	log, err := os.Create(o.log)
	if err != nil {
		return fmt.Errorf("create the log file: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	cmd := service.Command(ctx, o.dir, os.Environ(), o.program, o.args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w; last lines of %s:\n  %s", filepath.Base(o.program),
			cmp.Or(context.Cause(ctx), err), o.log,
			strings.Join(files.Tail(o.log, tailLines), "\n  "))
	}
	return nil
}

// toolVersion returns a tool's version, which affects what npm and pip choose.
func toolVersion(ctx context.Context, program string) string {
	request := service.Command(ctx, "", os.Environ(), program, "--version")
	text, err := request.CombinedOutput()
	if err != nil {
		return "" // the fetch reports the problem
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return strings.TrimSpace(line)
}

// unpackBytes limits the unpacked size of one file: no agent's jar is near it.
const unpackBytes = 256 << 20

// unpack trusts the sizes in the jar's directory, because reading more of a file is an error.
func unpack(jar, to string) error {
	files, err := zip.OpenReader(jar)
	if err != nil {
		return err
	}
	defer files.Close()
	remaining := uint64(unpackBytes)
	for _, file := range files.File {
		if !filepath.IsLocal(file.Name) {
			return fmt.Errorf("%q is outside of the target folder", file.Name)
		}
		if file.UncompressedSize64 > remaining {
			return fmt.Errorf("unpacked files exceed %d bytes", int64(unpackBytes))
		}
		remaining -= file.UncompressedSize64
	}
	return os.CopyFS(to, files)
}

// manifestVersion returns the version in a jar's manifest; empty: there is none.
func manifestVersion(jar string) string {
	files, err := zip.OpenReader(jar)
	if err != nil {
		return ""
	}
	defer files.Close()
	file, err := files.Open(path.Join("META-INF", "MANIFEST.MF"))
	if err != nil {
		return ""
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if version, ok := strings.CutPrefix(lines.Text(), "Implementation-Version:"); ok {
			return strings.TrimSpace(version)
		}
	}
	return ""
}
