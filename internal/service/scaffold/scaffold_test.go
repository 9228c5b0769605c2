package scaffold

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"prony.example/internal/service"
)

const checkout = "../../.."

// copied makes a copy of the part of the checkout that a layout of name reads.
func copied(t *testing.T, name string) string {
	t.Helper()
	like, err := Pattern(name)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := os.CopyFS(filepath.Join(root, "services", like),
		os.DirFS(filepath.Join(checkout, "services", like))); err != nil {
		t.Fatal(err)
	}
	for _, p := range places {
		f, err := read(checkout, p.file)
		if err == nil {
			err = write(root, f)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// tree returns the text of every file below a folder.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		all[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The layout of each language is a service that the catalog can read, that has no name of the
// pattern, and that is in every list.
func TestLanguages(t *testing.T) {
	for _, language := range Languages() {
		t.Run(language, func(t *testing.T) {
			name := language + "-brandnew"
			root := copied(t, name)
			like, _ := Pattern(name)
			l, err := Plan(root, name, like)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Write(root); err != nil {
				t.Fatal(err)
			}
			s, err := service.Load(filepath.Join(root, "services", name))
			if err != nil {
				t.Fatal(err)
			}
			all := tree(t, root)
			for file, text := range all {
				if strings.HasPrefix(file, l.Folder) && strings.Contains(text, like) &&
					filepath.Base(file) != "README.md" {
					t.Errorf("%s still says %s", file, like)
				}
			}
			lists := map[string]string{"docs/fairness.md": "\n| " + name + " | "}
			for _, target := range s.Targets {
				full := "\n  " + name + "-" + target.Name + ":\n"
				lists["deploy/services.yaml"] = full
				lists["deploy/rain.yaml"] = " http://" + name + "-" + target.Name + ":8080"
			}
			if language == "java" {
				lists["services/pom.xml"] = "<module>" + name + "</module>"
			}
			const page = "docs/fairness.md"
			_, all[page], _ = strings.Cut(all[page], "\n## Deviations\n")
			for file, want := range lists {
				if n := strings.Count(all[file], want); n != 1 {
					t.Errorf("%s has %q %d times, want once", file, want, n)
				}
			}
			if want := len(lists); len(l.Changed) != want {
				t.Errorf("%d files are changed, want %d", len(l.Changed), want)
			}
		})
	}
}

// New entries go to the right places: between others, at a group's end, into a wrapped list, and
// into exactly the groups with the pattern.
func TestPlaces(t *testing.T) {
	row := places[1]
	check := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s:\n%s, want\n%s", what, got, want)
		}
	}
	const runs = "| go-a | x |\n| go-c | go-c |\n\n| go-a/v | 1 |\n| go-a/w | 2 |\n\n| go-c | y |\n"
	check("between", row.add(runs, "go-a", "go-b"),
		"| go-a | x |\n| go-b | x |\n| go-c | go-c |\n\n| go-a/v | 1 |\n| go-a/w | 2 |\n"+
			"| go-b/v | 1 |\n| go-b/w | 2 |\n\n| go-c | y |\n")
	check("nobody's pattern", row.add(runs, "go-x", "go-b"), runs)
	const list = "    profiles: [\n      ALL, java-a-p, java-a-v,\n" +
		"      java-c-p, java-pet-x\n    ]\n"
	check("a list", addToList(list, "java-a", "java-d"), "    profiles: [\n"+
		"      ALL, java-a-p, java-a-v, java-c-p, java-d-p, java-d-v, java-pet-x\n    ]\n")
	const lock = "# 4\n\n[[package]]\nname = \"a\"\nx = \"rust-c\"\n\n[[package]]\n" +
		"name = \"rust-c\"\n\n[[package]]\nname = \"serde\"\n"
	check("a lock file", crates.move(lock, "rust-c", "zebra-z"), "# 4\n\n[[package]]\n"+
		"name = \"a\"\nx = \"rust-c\"\n\n[[package]]\nname = \"serde\"\n\n[[package]]\n"+
		"name = \"zebra-z\"\n")
	check("names", renamed("java-a java-ab x/java-a-p JAVA_A_P JAVA_AB_P", "java-a", "java-z"),
		"java-z java-ab x/java-z-p JAVA_Z_P JAVA_AB_P")
}

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"go-x": "", "cobol-x": `no template for language "cobol"; the languages are go, rust, ` +
			`java, node, python`,
		"go":      "must have the form LANGUAGE-FRAMEWORK",
		"go-x-y":  "must have the form LANGUAGE-FRAMEWORK",
		"../go-x": "must have the form LANGUAGE-FRAMEWORK",
		"Go-X":    "must have the form LANGUAGE-FRAMEWORK",
	} {
		_, err := Pattern(name)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}

// Write writes everything or nothing: an existing folder, a missing pattern or a file that cannot
// be written leave the checkout unchanged.
func TestAllOrNothing(t *testing.T) {
	const name, like = "python-x", "python-flask"
	check := func(what, root string, err error, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: error %v, want %v", what, err, want)
		}
		if _, err := os.Stat(filepath.Join(root, "services", name, "app.py")); err == nil {
			t.Errorf("%s: something was written", what)
		}
	}
	root := copied(t, name)
	_, err := Plan(root, name, "python-gone")
	check("no pattern", root, err, fs.ErrNotExist)

	l, err := Plan(root, name, like)
	if err != nil {
		t.Fatal(err)
	}
	before := tree(t, root)
	l.Changed[2].Path = "docs/fairness.md/below" // a file, so no path below it can exist
	err = l.Write(root)
	if err == nil {
		t.Error("a file that cannot be written is not an error")
	}
	check("unwritable", root, err, err)
	for file, text := range tree(t, root) {
		if before[file] != text {
			t.Errorf("%s was left changed", file)
		}
	}

	mine := filepath.Join(root, "services", name, "mine")
	if err := write(root, File{"services/" + name + "/mine", []byte("x"), 0o644}); err != nil {
		t.Fatal(err)
	}
	check("made meanwhile", root, l.Write(root), fs.ErrExist)
	_, err = Plan(root, name, like)
	check("there", root, err, fs.ErrExist)
	if text, err := os.ReadFile(mine); err != nil || string(text) != "x" {
		t.Errorf("what was there is %q, %v", text, err)
	}
}

// A checkout with only services, without docs and deploy, gets the service, and Missing lists the
// rest.
func TestMissing(t *testing.T) {
	root := copied(t, "node-x")
	for _, dir := range []string{"deploy", "docs"} {
		if err := os.RemoveAll(filepath.Join(root, dir)); err != nil {
			t.Fatal(err)
		}
	}
	l, err := Plan(root, "node-x", "node-express")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Write(root); err != nil {
		t.Fatal(err)
	}
	said := l.Next()
	for _, want := range []string{" files, copied from node-express\n",
		"docs/fairness.md: the file is not in this checkout",
		"deploy/rain.yaml: the file is not in this checkout",
		"1. Run \"prony verify node-x\": ", "still uses Express. Next steps:"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
}
