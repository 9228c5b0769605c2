package suite

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	yamlBlock = regexp.MustCompile("(?m)^```yaml\n((?:[^`].*\n|\n)*)```$")
	aside     = regexp.MustCompile(`(?m)^( +)# (\w+: \[.*\]) +#.*$`)
)

// TestDocumentedProjects checks that every project in the docs can be read, with requests if it has
// none, and also with the keys that stand in its comments.
func TestDocumentedProjects(t *testing.T) {
	n := 0
	for _, file := range []string{"ci.md", "project.md", "formats/project.md"} {
		text, err := os.ReadFile("../../docs/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
			project := m[1]
			if !strings.Contains(project, "targets:\n") {
				continue
			}
			if !strings.Contains(project, "requests:\n") {
				project += "requests: [{request: POST /, body: x}]\n"
			}
			for _, whole := range []string{project, aside.ReplaceAllString(project, "$1$2")} {
				if _, err := ReadProject(file, []byte(whole)); err != nil {
					t.Errorf("%v\n%s", err, whole)
				}
			}
			n++
		}
	}
	if n < 5 {
		t.Errorf("%d projects, want all of the docs", n)
	}
}
