package service

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const checkout = "../.."

// locked says where a language pins its framework's version, and what stands there before and after
// it. The JDK's own server is as new as the JDK, Go's as new as the language.
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
		if err != nil || found != 1 {
			t.Errorf("%s: %d files lorem.txt, %v", s.Name, found, err)
		}
	}
}
