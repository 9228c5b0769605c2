package suite_test

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"prony.example/contract"
	"prony.example/internal/suite"
)

// golden is the part of a golden response that a suite's expectations need.
type golden struct {
	Request string
	Send    string
	Status  int
	Body    *string
	Length  *int64
}

func goldens(t *testing.T, name string) []golden {
	t.Helper()
	text, err := contract.Files.ReadFile(name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []golden }
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	return file.Cases
}

// right returns "" if the request's expectation equals the contract's response, or the reason.
func right(r suite.Request, cases []golden) string {
	if strings.Contains(r.Request, "{") && !strings.Contains(r.Request, "{mode}") ||
		r.Expect.Status != 200 || len(r.Checks) > 0 {
		return similar(r, cases)
	}
	if r.Request == "POST /load" {
		want := base64.StdEncoding.EncodeToString([]byte(r.Body))
		if r.Expect.Body == nil || *r.Expect.Body != want {
			return "want the body " + want
		}
		return ""
	}
	if n, ok := strings.CutPrefix(r.Request, "GET /file?size="); ok {
		if r.Expect.Lorem == nil || strconv.FormatInt(*r.Expect.Lorem, 10) != n {
			return "want lorem: " + n
		}
		return ""
	}
	fill := strings.NewReplacer("{key}", "1")
	for _, c := range cases {
		if c.Request != fill.Replace(r.Request) || c.Send != r.Body {
			continue
		}
		switch {
		case c.Status != r.Expect.Status:
			return "another status"
		case c.Body != nil && (r.Expect.Body == nil || fill.Replace(*r.Expect.Body) != *c.Body):
			return "want the body " + *c.Body
		case c.Length != nil && (r.Expect.Size == nil || *r.Expect.Size != *c.Length):
			return "want size: " + strconv.FormatInt(*c.Length, 10)
		}
		return ""
	}
	return "the contract has no such case"
}

// rightCall returns "" if a call's expectation equals the contract's response in gRPC, or the
// reason.
func rightCall(t *testing.T, c suite.Call, contract string) string {
	t.Helper()
	if c == (suite.Call{}) {
		return ""
	}
	fill := strings.NewReplacer("{key}", "31415")
	for _, g := range goldens(t, "grpc/"+contract) {
		if g.Request == "POST "+c.Method && g.Send == fill.Replace(c.Send) && g.Status == 200 &&
			*g.Body == fill.Replace(c.Expect) {
			return ""
		}
	}
	return "the contract has no such call"
}

// similar is right for requests that name earlier created objects, or check parts of their
// responses: a golden case must have the same method, path (except numbers) and status.
func similar(r suite.Request, cases []golden) string {
	number := regexp.MustCompile(`[0-9]+|\{[a-zA-Z]+\}`)
	plain := func(request string) string { return number.ReplaceAllString(request, "N") }
	for _, c := range cases {
		if plain(c.Request) == plain(r.Request) && c.Status == r.Expect.Status {
			return ""
		}
	}
	return fmt.Sprintf("no case of the contract is like it with status %d", r.Expect.Status)
}

// TestSuitesKeepTheContract compares every expectation of the suites with the golden responses, so
// that a conforming service cannot fail because of an error in a suite.
func TestSuitesKeepTheContract(t *testing.T) {
	files, err := filepath.Glob("../../suites/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no suites found: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s, err := suite.Read(file, text)
		if err != nil {
			t.Fatal(err)
		}
		for _, sc := range s.Scenarios {
			cases := goldens(t, cmp.Or(sc.Contract, s.Contract))
			for _, r := range sc.Requests {
				if why := rightCall(t, r.Call, cmp.Or(sc.Contract, s.Contract)); why != "" {
					t.Errorf("%s: scenario %s: %s: %s", file, sc.Name, r.Call.Method, why)
				}
				if why := right(r, cases); why != "" {
					t.Errorf("%s: scenario %s: %s: %s", file, sc.Name, r.Request, why)
				}
			}
		}
	}
}
