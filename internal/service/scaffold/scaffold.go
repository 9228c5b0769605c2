// Package scaffold creates a new service from one of the catalog: the same files under another
// name, and an entry in each list of services. The new service meets the contracts before any edit,
// and without separate templates that could become outdated.
//
// It plans all changes first, and then writes all or none. It does not build or start the service.
package scaffold

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"prony.example/internal/service"
)

// patterns are the simplest services of each language: with one build and the fewest lines.
var patterns = []struct{ language, service string }{
	{"go", "go-gin"}, {"rust", "rust-ntex"}, {"java", "java-jdk"}, {"node", "node-express"},
	{"python", "python-flask"},
}

// Languages returns the languages with which a name may begin.
func Languages() (all []string) {
	for _, p := range patterns {
		all = append(all, p.language)
	}
	return all
}

// The framework has no dash, because the target follows a second dash.
var validName = regexp.MustCompile(`^([a-z]+)-[a-z0-9]+$`)

// Pattern returns the service from which a service of this name is created.
func Pattern(name string) (string, error) {
	m := validName.FindStringSubmatch(name)
	if m == nil {
		return "", fmt.Errorf("%q must have the form LANGUAGE-FRAMEWORK in small letters and "+
			"digits, such as go-chi",
			name)
	}
	for _, p := range patterns {
		if p.language == m[1] {
			return p.service, nil
		}
	}
	return "", fmt.Errorf("there is no template for language %q; the languages are %s", m[1],
		strings.Join(Languages(), ", "))
}

// Layout holds the planned changes of a new service. File names are relative to the checkout's
// root, with slashes.
type Layout struct {
	Name, Like string
	Framework  string   // of the pattern, until the manifest is edited
	Folder     string   // services/NAME
	Files      []File   // new ones, below Folder
	Changed    []File   // files with lists of services
	Missing    []string // files with lists of services that this checkout lacks

	old []File // contents of Changed before
}

// File is the new content of a file.
type File struct {
	Path string
	Text []byte
	Mode fs.FileMode
}

// Plan reads the checkout at root and plans the service name after the service like. An existing
// folder of this name is an fs.ErrExist.
func Plan(root, name, like string) (*Layout, error) {
	l := &Layout{Name: name, Like: like, Folder: "services/" + name}
	wrong := func(err error) (*Layout, error) {
		return nil, fmt.Errorf("create %s from %s: %w", name, like, err)
	}
	if _, err := os.Lstat(filepath.Join(root, l.Folder)); err == nil {
		return nil, fmt.Errorf("create %s: %s exists: %w; Prony never overwrites existing files",
			name, l.Folder, fs.ErrExist)
	}
	pattern, err := service.Load(filepath.Join(root, "services", like))
	if err != nil {
		return wrong(err)
	}
	l.Framework = pattern.Framework
	sources, err := pattern.Sources()
	if err != nil {
		return wrong(err)
	}
	for _, file := range sources {
		if err := l.take(pattern.Dir, file); err != nil {
			return wrong(err)
		}
	}
	for _, p := range places {
		if err := l.list(root, p); err != nil {
			return wrong(err)
		}
	}
	return l, nil
}

// take plans one of the pattern's files. The README comes from a template, because the pattern's
// describes decisions of its authors.
func (l *Layout) take(dir, file string) error {
	f, err := read(dir, file)
	if err != nil {
		return err
	}
	switch path.Base(file) {
	case "README.md":
		var text bytes.Buffer
		if err := readmeTemplate.Execute(&text, l); err != nil {
			return err
		}
		f.Text = text.Bytes()
	case "Cargo.lock":
		f.Text = []byte(crates.move(string(f.Text), l.Like, l.Name))
	default:
		f.Text = []byte(renamed(string(f.Text), l.Like, l.Name))
	}
	f.Path = path.Join(l.Folder, file)
	l.Files = append(l.Files, f)
	return nil
}

//go:embed readme.tmpl
var readmeText string

var readmeTemplate = template.Must(template.New("readme").Parse(readmeText))

// list plans the new service's entries in a file with a list of services. It adds a missing file to
// Missing; a file that does not list the pattern stays unchanged.
func (l *Layout) list(root string, p place) error {
	index := slices.IndexFunc(l.Changed, func(f File) bool { return f.Path == p.file })
	if index < 0 {
		old, err := read(root, p.file)
		if errors.Is(err, fs.ErrNotExist) {
			if !slices.Contains(l.Missing, p.file) {
				l.Missing = append(l.Missing, p.file)
			}
			return nil
		}
		if err != nil {
			return err
		}
		if p.add(string(old.Text), l.Like, l.Name) == string(old.Text) {
			return nil
		}
		index = len(l.Changed)
		l.old, l.Changed = append(l.old, old), append(l.Changed, old)
	}
	text := &l.Changed[index].Text
	*text = []byte(p.add(string(*text), l.Like, l.Name))
	return nil
}

func read(root, file string) (File, error) {
	location := filepath.Join(root, filepath.FromSlash(file))
	info, err := os.Stat(location)
	if err != nil {
		return File{}, err
	}
	text, err := os.ReadFile(location)
	return File{file, text, info.Mode().Perm()}, err
}

// Write writes all changes into the checkout at root, or none.
func (l *Layout) Write(root string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("lay out %s: %w", l.Name, err)
		}
	}()
	draft, err := os.MkdirTemp(root, ".new-"+l.Name+"-") // not in services/, which is read
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(draft)) }()
	if err := os.Chmod(draft, 0o755); err != nil {
		return err
	}
	for _, f := range l.Files {
		inside := strings.TrimPrefix(f.Path, l.Folder+"/")
		if err := write(draft, File{inside, f.Text, f.Mode}); err != nil {
			return err
		}
	}
	// If the folder exists by now, the rename succeeds only if it is empty.
	folder := filepath.Join(root, l.Folder)
	if err := os.Rename(draft, folder); err != nil {
		return err
	}
	for i, f := range l.Changed {
		if err := write(root, f); err != nil {
			for _, was := range l.old[:i+1] {
				err = errors.Join(err, write(root, was))
			}
			return errors.Join(err, os.RemoveAll(folder))
		}
	}
	return nil
}

func write(dir string, f File) error {
	location := filepath.Join(dir, filepath.FromSlash(f.Path))
	if err := os.MkdirAll(filepath.Dir(location), 0o755); err != nil {
		return err
	}
	return os.WriteFile(location, f.Text, f.Mode)
}

// Next describes what was written and what is left to do.
func (l *Layout) Next() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d files, copied from %s\n", l.Folder, len(l.Files), l.Like)
	for _, f := range l.Changed {
		fmt.Fprintf(&b, "%s: lists the new service\n", f.Path)
	}
	for _, file := range l.Missing {
		fmt.Fprintf(&b, "%s: the file is not in this checkout, so it was not changed\n", file)
	}
	fmt.Fprintf(&b, `
The new service still uses %[1]s. Next steps:

1. Run "prony verify %[2]s": all responses must follow the contracts.
2. Replace %[1]s by your framework: %[3]s/README.md lists the files to change.
3. Run "prony verify %[2]s" after each change. It names each response that differs.
4. Run "prony verify %[2]s --update docs/fairness.md" after responses changed.
5. Run "prony run --targets %[2]s,%[4]s --blocks 5" to compare both services.
`, l.Framework, l.Name, l.Folder, l.Like)
	return b.String()
}
