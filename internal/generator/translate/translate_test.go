package translate

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/base/cmdlog"
	"prony.example/internal/report"
)

var update = flag.Bool("update", false,
	"write the tables of flags into docs/formats/other-tools.md")

const target = "http://127.0.0.1:8080/a"

// words splits a command line at its blanks; ~ stands for a blank within a word.
func words(line string) []string {
	out := strings.Fields(line)
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], "~", " ")
	}
	return out
}

// becomes compares the translation of a line, after the URL.
func becomes(t *testing.T, line, want string) {
	t.Helper()
	f := words(line)
	got, err := Translate(f[0], append(f[1:], target))
	if err != nil {
		t.Errorf("%s: %v", line, err)
		return
	}
	if text := cmdlog.Join(got.Args); text != "load "+target+" "+want {
		t.Errorf("%s\nis   %s\nwant load %s %s", line, text, target, want)
	}
}

func TestWrk(t *testing.T) {
	becomes(t, "wrk", "--connections 10 --duration 10s --timeout 2s")
	becomes(t, "wrk -t12 -c400 -d30s --latency",
		"--connections 400 --duration 30s --timeout 2s")
	becomes(t, "wrk --connections 1k --duration 600 --timeout 500ms -L",
		"--connections 1000 --duration 10m --timeout 500ms")
	becomes(t, "wrk -H Host:~x -H A:{key}", "--connections 10 --duration 10s --timeout 2s "+
		"--header 'Host: x' --header 'A: {{key}}'")
	becomes(t, "wrk --status 404", "--connections 10 --duration 10s --timeout 2s --status 404")
	becomes(t, "wrk2 -R2.5k -d2h -L", "--connections 10 --duration 2h --rate 2500 "+
		"--arrivals constant --timeout 2s --spectrum")
}

func TestHey(t *testing.T) {
	const usual = "--connections 50 --requests 200 --lead-in 0s --timeout 20s"
	becomes(t, "hey", usual)
	becomes(t, "hey -n 1000 -c 100 -disable-keepalive -h2",
		"--connections 100 --requests 1000 --lead-in 0s --timeout 20s --http2 --churn 1")
	becomes(t, "hey -z 10s -q 2 -c 5 -cpus 3 -t 0",
		"--connections 5 --duration 10s --rate 10 --arrivals constant")
	becomes(t, "hey -m post -d {uuid} -A c -a u:p -host h -U me", usual+" --method POST "+
		"--header 'Accept: c' --header 'Authorization: Basic dTpw' --header 'Host: h' "+
		"--header 'User-Agent: me' --body '{{uuid}}' --type text/html")
	becomes(t, "hey -D f.json -T a/b", usual+" --body @f.json --type a/b")
}

func TestOha(t *testing.T) {
	becomes(t, "oha", "--connections 50 --requests 200 --lead-in 0s")
	becomes(t, "oha -z 2s -c 4 -q 50 --latency-correction -w --no-tui -j",
		"--connections 4 --duration 2s --rate 50 --arrivals constant --output json --view plain")
	becomes(t, "oha -n 2.6k -t 3s --disable-keepalive --http2 -p 4", "--connections 50 "+
		"--streams 4 --requests 2600 --lead-in 0s --timeout 3s --http2 --churn 1")
	becomes(t, "oha --unix-socket /s --cacert ca.pem",
		"--connections 50 --requests 200 --lead-in 0s --ca ca.pem --unix /s")
	becomes(t, "oha -m PUT -d x -T a/b", "--connections 50 --requests 200 --lead-in 0s "+
		"--method PUT --body x --type a/b")
}

// TestURLs checks that URLs are unchanged, except for text that prony load would draw or refuse.
func TestURLs(t *testing.T) {
	check := func(url, want, more string) {
		t.Helper()
		got, err := Translate("wrk", []string{url})
		if err != nil {
			t.Errorf("%s: %v", url, err)
			return
		}
		if got.Args[1] != want || !strings.Contains(strings.Join(got.Args, " "), more) {
			t.Errorf("%s is %q, want %s and %s", url, got.Args, want, more)
		}
	}
	check("http://127.0.0.1", "http://127.0.0.1/", "")
	check("http://localhost?a={key}#top", "http://localhost/?a={{key}}", "")
	check("http://[::1]:80/%41", "http://[::1]:80/%41", "")
	check("https://localhost/", "https://localhost/", "--insecure")
	check("http://a.example:81/", "http://a.example:81/", "--remote a.example")
	if got, err := Translate("oha", []string{"https://localhost/"}); err != nil ||
		slices.Contains(got.Args, "--insecure") || slices.Contains(got.Args, "--remote") {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestRefusals checks that errors name what cannot be translated.
func TestRefusals(t *testing.T) {
	check := func(line string, wants ...string) {
		t.Helper()
		f := words(line)
		got, err := Translate(f[0], f[1:])
		if err == nil {
			t.Errorf("%s is %q", line, got.Args)
			return
		}
		for _, w := range wants {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: error %q lacks %q", line, err, w)
			}
		}
	}
	const url = " http://x/"
	check("ab"+url, "choose one of wrk, wrk2, hey, oha")
	check("wrk", "must have one URL, got 0")
	check("wrk a b", "must have one URL, got 2")
	check("wrk x/y", `"x/y" is not a URL`)
	check("wrk ftp://x/", "is not a URL")
	check("wrk --gibberish 1"+url, "unknown flag: --gibberish")
	check("wrk -R 5"+url, "unknown shorthand flag: 'R'")
	check("wrk -c 0"+url, "--connections", "of at least 1")
	check("wrk -c 1.5"+url, "whole number")
	check("wrk -d soon"+url, "--duration", "a time such as 30s")
	check("wrk -d -1s"+url, "a time such as 30s")
	check("wrk -d 0"+url, "a time greater than 0")
	check("wrk -H nonsense"+url, `"nonsense" does not have the form`)
	check("wrk --help", "the command line prints help and runs no load")
	check("wrk2"+url, "needs a rate, such as -R 1000")
	check("wrk2 -R 0"+url, "a number greater than 0")
	check("hey -gibberish"+url, "-gibberish")
	check("hey -c -1"+url, "of at least 1")
	check("hey -d @x"+url, "begins with @")
	check("hey -help", "prints help")
	check("oha --output-format csv"+url, "text and json")
}

// Notes say where a tool and prony load differ, and which flags have prony load has no such flag.
func TestNotes(t *testing.T) {
	check := func(line, want string) {
		t.Helper()
		f := words(line + " http://x/")
		got, err := Translate(f[0], f[1:])
		if err != nil || !strings.Contains(strings.Join(got.Notes, "\n"), want) {
			t.Errorf("%s: %+v, %v; want a note with %q", line, got, err, want)
		}
	}
	check("wrk", "a status other than 200 as an error (--status); wrk counts only statuses")
	check("wrk -s x.lua", "-s: prony load has no such flag: describe the requests in a "+
		"--scenario file")
	check("wrk -t2", "-t: one load thread is usually enough")
	check("wrk -H Content-Length:1",
		"Content-Length: left out, because prony load sets it from the body")
	check("wrk2 -R 10", "excludes the latency of its first 10 s")
	check("hey -q 2", "to each of its workers")
	check("hey -x proxy:1", "-x: prony load has no such flag: use the server's own address")
	check("oha", "oha waits for a response without limit")
	check("oha --rand-regex-url", "{key}")
}

// sampled returns a row's flag with a valid value.
func sampled(r row) []string {
	name, value, _ := strings.Cut(r.flag, " ")
	if strings.HasSuffix(name, ",") {
		_, value, _ = strings.Cut(value, " ")
	}
	name = strings.TrimSuffix(name, ",")
	samples := map[string]string{"N": "7", "TIME": "7s", "SECONDS": "7", "FIELD": "A: b",
		"METHOD": "PUT", "FORMAT": "json", "VERSION": "1.1"}
	switch {
	case value == "":
		return []string{name}
	case samples[value] == "":
		return []string{name, "x"}
	}
	return []string{name, samples[value]}
}

// TestEachFlag checks that every flag of a table is parsed, and gives the table's counterpart.
func TestEachFlag(t *testing.T) {
	for _, tool := range tools {
		for _, r := range tool.flags {
			args := append(sampled(r), "https://localhost/")
			switch {
			case tool.needsRate:
				args = append([]string{"-R1"}, args...)
			case r.flag == "-T TYPE":
				args = append([]string{"-d", "x"}, args...)
			}
			line, err := Translate(tool.name, args)
			if err != nil {
				t.Errorf("%s %q: %v", tool.name, args, err)
				continue
			}
			want, _, _ := strings.Cut(r.load, " ")
			switch {
			case r.load == none:
				want = "prony load has no such flag"
			case r.load == notNeeded || want == "--cores":
				want = ""
			}
			if text := strings.Join(append(line.Args, line.Notes...), " "); !strings.Contains(text,
				want) {
				t.Errorf("%s %q is %s, without %s", tool.name, args, text, want)
			}
		}
	}
}

// TestDocumentation checks that the documentation has the generated tables.
func TestDocumentation(t *testing.T) {
	page := filepath.Join("..", "..", "..", "docs", "formats", "other-tools.md")
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := have
	for _, name := range Tools() {
		want, err = report.Update(want, name, []byte(Table(name)))
		if err != nil {
			t.Fatal(err)
		}
	}
	if bytes.Equal(have, want) {
		return
	}
	if !*update {
		t.Fatalf("%s has other tables: run go test ./internal/generator/translate -update", page)
	}
	if err := os.WriteFile(page, want, 0o644); err != nil {
		t.Fatal(err)
	}
}
