package service

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const checkout = "../.."

// locked is the file in which a language pins its framework's version, with the text before and
// after it. The version of the JDK's server is the JDK's, that of Go's the language's.
var locked = map[string]struct{ file, before, after string }{
	"Go":         {"go.mod", `(?m)(^go |/NAME(/v\d+)? v)`, `(\.\d+)?$`},
	"Java":       {"pom.xml", `<(maven\.compiler\.release|[a-z.-]*version)>`, `</`},
	"JavaScript": {"package.json", `"NAME": "`, `"`},
	"Python":     {"requirements.txt", `(?m)^NAME==`, `$`},
	"Rust":       {"Cargo.toml", `"=`, `"`},
}

func TestServicesOfThisCheckout(t *testing.T) {
	services, err := Catalog(checkout)
	if err != nil {
		t.Error(err)
	}
	for _, s := range services {
		pin, ok := locked[s.Language]
		if !ok {
			t.Errorf("%s: say in this test where %s pins versions", s.Name, s.Language)
			continue
		}
		text, err := os.ReadFile(filepath.Join(s.Dir, pin.file))
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		before := strings.ReplaceAll(pin.before, "NAME", strings.ToLower(s.Framework))
		version := regexp.MustCompile(before + regexp.QuoteMeta(s.Version) + pin.after)
		if !version.Match(text) {
			t.Errorf("%s: version %s of the manifest is not in %s, searched as %s", s.Name,
				s.Version, pin.file, version)
		}
	}
}

func TestServicesAnswerWithTheContractsText(t *testing.T) {
	services, err := Catalog(checkout)
	if err != nil {
		t.Error(err)
	}
	for _, s := range services {
		found := 0
		err := filepath.WalkDir(s.Dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name, err := filepath.Rel(s.Dir, path)
			if err == nil && d.IsDir() && ignored(filepath.ToSlash(name)) {
				return filepath.SkipDir
			}
			if d.Name() != "lorem.txt" || err != nil {
				return err
			}
			found++
			text, err := os.ReadFile(path)
			if !bytes.Equal(text, lorem()) {
				t.Errorf("%s is not contract/lorem.txt", path)
			}
			return err
		})
		want := 0
		if slices.Contains(s.Contracts, "http") {
			want = 1
		}
		if err != nil || found != want {
			t.Errorf("%s: %d files lorem.txt, %v", s.Name, found, err)
		}
	}
}

// Without GraalVM, native images are skipped one by one, each with a message. Other builds of the
// same sources are not skipped. Builds that are unavailable are skipped with GraalVM, too.
func TestNativeImagesAreSkippedAlone(t *testing.T) {
	services, err := Catalog("../..")
	if err != nil {
		t.Fatal(err)
	}
	m := newMachine(t)
	m.jdk("25", "25.0.3")
	m.has("bin/mvn", "Apache Maven 3.9.16")
	without := m.tools()
	m.has("jvm/25/bin/native-image", "native-image 25.0.2 2026-01-20")
	with := m.tools()
	native, caches, unavailable := 0, 0, 0
	for _, s := range services {
		for _, target := range s.Targets {
			if !strings.HasPrefix(s.Name, "java-") {
				continue
			}
			missing := without.Missing(s)
			switch target.Runtime {
			case "native":
				native++
				want := []string{"needs native-image >= 25: not found (install a GraalVM JDK 25)"}
				beside := []string(nil)
				if s.Unavailable != "" {
					unavailable++
					beside = []string{"cannot be built: " + s.Unavailable}
					want = append(beside, want...)
				}
				if !slices.Equal(missing, want) {
					t.Errorf("%s lacks %q, want %q", s.Full(target), missing, want)
				}
				if missing := with.Missing(s); !slices.Equal(missing, beside) {
					t.Errorf("%s lacks %q beside GraalVM, want %q", s.Full(target), missing, beside)
				}
			case "aot":
				caches++
				fallthrough
			default:
				if len(missing) != 0 {
					t.Errorf("%s lacks %q", s.Full(target), missing)
				}
			}
		}
	}
	// Spring MVC in 2 modes and WebFlux, Quarkus and Micronaut in 3, Helidon SE and MP; the first
	// two frameworks also with caches, and Helidon without a library.
	if native != 11 || caches != 6 || unavailable != 2 {
		t.Errorf("%d native targets, %d with a cache and %d unavailable, want 11, 6 and 2", native,
			caches, unavailable)
	}
}
