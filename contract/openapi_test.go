package contract_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"prony.example/contract"
)

// description is the part of openapi.yaml that the test reads.
type description struct {
	OpenAPI string `yaml:"openapi"`
	Tags    []struct {
		Name string `yaml:"name"`
	} `yaml:"tags"`
	Paths map[string]map[string]any `yaml:"paths"`
}

func read(t *testing.T, file string, v any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(data, v)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// step follows a path of keys such as "responses 200 content".
func step(v any, keys ...string) any {
	for _, key := range keys {
		v, _ = v.(map[string]any)[key]
	}
	return v
}

func TestOpenAPIDescribesTheGoldenAnswers(t *testing.T) {
	var d description
	read(t, "openapi.yaml", &d)
	if !strings.HasPrefix(d.OpenAPI, "3.1.") {
		t.Errorf("openapi %q, want 3.1", d.OpenAPI)
	}
	var whole map[string]any
	read(t, "openapi.yaml", &whole)
	described := map[string]bool{} // "GET /file 200", true once it has a golden response
	for path, item := range d.Paths {
		for method, operation := range item {
			if method != "parameters" {
				for status := range step(operation, "responses").(map[string]any) {
					described[strings.ToUpper(method)+" "+path+" "+status] = false
				}
			}
		}
	}
	for _, tag := range d.Tags {
		var golden struct {
			Cases []goldenCase `yaml:"cases"`
		}
		read(t, tag.Name+".yaml", &golden)
		for _, c := range golden.Cases {
			checkCase(t, whole, d, tag.Name, c, described)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(described)) {
		if !described[key] {
			t.Errorf("no golden answer is %s", key)
		}
	}
}

type goldenCase struct {
	Request string `yaml:"request"`
	Status  int    `yaml:"status"`
	Type    string `yaml:"type"`
}

// checkCase requires a described operation for the case, with its status and media type. Without
// one, the response is 404.
func checkCase(t *testing.T, whole map[string]any, d description, tag string, c goldenCase,
	described map[string]bool) {
	method, target, _ := strings.Cut(c.Request, " ")
	path, _, _ := strings.Cut(strings.Replace(target, "{other}", "{mode}", 1), "?")
	path = template(d, path)
	operation := d.Paths[path][strings.ToLower(method)]
	if operation == nil {
		if c.Status != 404 {
			t.Errorf("%s answers %d, and openapi.yaml does not describe it", c.Request,
				c.Status)
		}
		return
	}
	if tags := step(operation, "tags").([]any); len(tags) != 1 || tags[0] != tag {
		t.Errorf("%s: tags %v, want %s", c.Request, tags, tag)
	}
	status := strconv.Itoa(c.Status)
	answer, _ := step(operation, "responses", status).(map[string]any)
	if answer == nil {
		t.Errorf("%s: openapi.yaml does not describe status %s", c.Request, status)
		return
	}
	described[method+" "+path+" "+status] = true
	if ref, ok := answer["$ref"].(string); ok {
		answer = step(whole, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...).(map[string]any)
	}
	// RFC 9110, 8.6: a 204 has none.
	if step(answer, "headers", "Content-Length") == nil && status != "204" {
		t.Errorf("%s: status %s is described without Content-Length", c.Request, status)
	}
	content, _ := answer["content"].(map[string]any)
	if _, ok := content[c.Type]; c.Type != "" && !ok {
		t.Errorf("%s: openapi.yaml does not describe %s", c.Request, c.Type)
	}
}

// template returns the described path that matches a request's, with the values of {names} in it;
// the path itself if none matches.
func template(d description, path string) string {
	if d.Paths[path] != nil {
		return path
	}
	name := regexp.MustCompile(`\\\{[^/]*\\\}`)
	for described := range d.Paths {
		pattern := "^" + name.ReplaceAllString(regexp.QuoteMeta(described), `[^/]+`) + "$"
		if regexp.MustCompile(pattern).MatchString(path) {
			return described
		}
	}
	return path
}

// All golden responses are embedded.
func TestFiles(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		_, err := contract.Files.ReadFile(f)
		if within := err == nil; within != (f != "openapi.yaml") {
			t.Errorf("%s is embedded: %v", f, within)
		}
	}
}

func TestReferencesOfOpenAPIResolve(t *testing.T) {
	var whole map[string]any
	read(t, "openapi.yaml", &whole)
	text, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	references := regexp.MustCompile(`\$ref: '#/([^']+)'`).FindAllSubmatch(text, -1)
	for _, match := range references {
		at := any(whole)
		for key := range strings.SplitSeq(string(match[1]), "/") {
			node, _ := at.(map[string]any)
			at = node[key]
		}
		if at == nil {
			t.Errorf("nothing is at #/%s", match[1])
		}
	}
	if len(references) < 10 { // every response refers to a header or a whole response
		t.Errorf("%d references were found", len(references))
	}
}
