package importer

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/dev/testsets"
)

// received are requests as a draft or a server shows them.
func received(method, target, body string, fields []Field) string {
	var lines []string
	for _, f := range fields {
		if f.Name = strings.ToLower(f.Name); f.Name != "accept" || f.Value != "*/*" {
			lines = append(lines, f.Name+": "+f.Value)
		}
	}
	slices.Sort(lines)
	return fmt.Sprintf("%s %s %q [%s]\n", method, pathOf(target), lines, body)
}

// recorder notes each request.
func recorder(got *strings.Builder) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var fields []Field
		for name, values := range r.Header {
			name = strings.ToLower(name)
			if single.MatchString(name) {
				values = values[:1]
			}
			if value := strings.Join(values, ", "); !noise.MatchString(name) {
				fields = append(fields, Field{name, value})
			}
		}
		got.WriteString(received(r.Method, r.RequestURI, string(body), fields))
	}
}

// A command that is taken gives the requests that curl itself sends, in a shell.
func TestCurlItself(t *testing.T) {
	testsets.Whole(t, "curl")
	// Other versions differ in small things, such as the case of percent escapes.
	if version, err := exec.Command("curl", "-V").Output(); !strings.HasPrefix(string(version),
		"curl 7.88.") {
		t.Skipf("curl 7.88 is not here: %.12s %v", version, err)
	}
	var got strings.Builder
	server := httptest.NewServer(recorder(&got))
	defer server.Close()
	const options = `-d a=1|-d 'b c'|-d ''|--data-raw @x|--data-binary $'\x41\n\u00e9'|-G|-I|` +
		`-X PUT|--json '{"a":1}'|--json 2|-H 'X: y'|-H 'x: z'|-H 'Accept: q'|` +
		`-H 'Content-Type: t/u'|-H 'Content-Type:'|-H 'Y;'|-H 'Accept;'|` +
		`-H "Z: \"q\" \\ $"|--url-query 'a=b c'|--url-query +d=%20|` +
		`--url-query '=e&f'|--data-urlencode 'g=h&i'|--data-urlencode 'k j'|-r 1-2|` +
		`-H 'Range: bytes=0-1'|-sS|--no-get|--next|--next http://a/n|` +
		`http://a/b?c=d#e|'http://a/f?g&'|a/h/../i/./j|http://a/k/..|'http://a?l'|` +
		`'http://a/f?g[]=h&[]'|` +
		`-g 'http://a/[m]?{n}'|-A ua|'http://a/\[o\]'|--proto =http|-m9|-sXPATCH|` +
		`-C 0|http://a/p\?q\=r|"http://a/s't"`
	words := strings.Split(options, "|")
	r := rand.New(rand.NewPCG(1, 11))
	taken := 0
	for range 150 {
		line := "curl"
		for range 1 + r.IntN(6) {
			line += " " + words[r.IntN(len(words))]
		}
		d, err := Options{Kind: Curl}.Read("f", []byte(line))
		if err != nil || len(d.Left) > 0 {
			continue
		}
		want := ""
		for _, q := range d.Requests {
			fields := q.Headers
			if q.Type != "" {
				fields = append(fields, Field{"content-type", q.Type})
			}
			unescaped := strings.NewReplacer("{{", "{", "}}", "}", "$$", "$")
			for i := range fields {
				fields[i].Value = unescaped.Replace(fields[i].Value)
			}
			request := received(q.Method, q.Path, unescaped.Replace(q.Body), fields)
			want += strings.Repeat(request, q.Weight)
		}
		got.Reset()
		to := "-sS -o /dev/null --connect-to ::" + server.Listener.Addr().String()
		script := strings.NewReplacer("curl ", "curl "+to+" ", "--next", "--next "+to).Replace(line)
		out, err := exec.Command("bash", "-c", script).CombinedOutput()
		sorted := func(s string) string {
			lines := strings.Split(s, "\n")
			slices.Sort(lines)
			return strings.Join(lines, "\n")
		}
		if err == nil { // else curl has refused it
			taken++
		}
		if err == nil && sorted(got.String()) != sorted(want) {
			t.Errorf("%s\nsends  %sdrafts %s%s", line, got.String(), want, out)
		}
	}
	if taken < 50 {
		t.Errorf("only %d of 150 commands are taken", taken)
	}
}
