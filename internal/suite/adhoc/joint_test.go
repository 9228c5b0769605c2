package adhoc

import (
	"strings"
	"testing"

	"prony.example/internal/suite"
	"prony.example/load/template"
)

// echoes returns responses of services a and b, two each: {h}, {p} and {s} in a body are the lab's
// values for that response.
func echoes(a, b string) (names []string, out [][][]Answer) {
	for i, body := range []string{a, b} {
		port := []string{"40001", "40002"}[i]
		var of []Answer
		for _, source := range [][]string{{"50001", "50002"}, {"50003", "50004"}}[i] {
			host := "127.0.0.1:" + port
			said := strings.NewReplacer("{h}", host, "{p}", port, "{s}", source).Replace(body)
			of = append(of, Answer{Status: 200, Body: []byte(said), Host: host, Port: port,
				Source: source})
		}
		names, out = append(names, string(rune('a'+i))), append(out, [][]Answer{of})
	}
	return names, out
}

// Values of the lab are left out at the positions where every response quotes them, and nothing
// else is.
func TestHoldLeavesOutWhatTheLabGave(t *testing.T) {
	request, err := ParseRequest("/x")
	if err != nil {
		t.Fatal(err)
	}
	check := func(a, b, body, says, refused string) Held {
		t.Helper()
		names, all := echoes(a, b)
		held, err := Hold([]suite.Request{request}, names, all, false, nothing)
		if refused != "" {
			if err == nil || !strings.Contains(err.Error(), refused) {
				t.Errorf("%s and %s: %v, want %q", a, b, err, refused)
			}
			return Held{}
		}
		if err != nil {
			t.Fatal(err)
		}
		h := held[0]
		if h.Says != says || body != "" &&
			(h.Request.Expect.Body == nil || *h.Request.Expect.Body != body) {
			t.Errorf("%s is held %q as %v, want %q as %s", a, h.Says, h.Request.Expect.Body, says,
				body)
		}
		return h
	}
	const but = "by every byte of the body, except for values that Prony sets and the body " +
		"repeats: "
	check("at http://{h}/x", "at http://{h}/x", "at http://{lab host}/x",
		but+"the address in the request (1 place)", "")
	check("{p} {p} 127.0.0.1:{s}", "{p} {p} 127.0.0.1:{s}",
		"{lab port} {lab port} 127.0.0.1:{lab source}", but+
			"the source port of the request (1 place), its port (2 places)", "")
	check("http%3A%2F%2F127.0.0.1%3A{p}", "http%3A%2F%2F127.0.0.1%3A{p}",
		"http%3A%2F%2F127.0.0.1%3A{lab port}", but+"its port (1 place)", "")
	// A number that equals a port by chance, or contains one, is literal.
	check("n=40001", "n=40001", "n=40001", "", "")
	check("n=140001", "n=140001", "n=140001", "", "")
	check("n=1{p}", "n=1{p}", "", "",
		`a responds with body "n=140001", but b responds with body "n=140002"`)
	check("n={p}5", "n={p}5", "", "", "not compared")
	check("n=0.{p}", "n=0.{p}", "", "", "not compared")
	check("{p}", "{h}", "", "", "not compared")
	// Other differences are found at any length, and shown with their position.
	long := strings.Repeat("x", 100)
	check(long+" at {h}: 1", long+" at {h}: 2", "", "", "127.0.0.1:40001: 1")
	check("at {h}", "at {p}", "", "", "not compared")
	// Text that looks like a placeholder is literal.
	check("{lab host} {h} {key}", "{lab host} {h} {key}", "{{lab host}} {lab host} {{key}}",
		but+"the address in the request (1 place)", "")
	h := check(`{"url":"http://{h}/x","from":"{s}","id":1,"t":{s}}`,
		`{"url":"http://{h}/x","t":1{s},"from":"{s}","id":1}`, "",
		"by 3 fields with constant values; these parts vary: t", "")
	if c := h.Request.Checks; len(c) != 3 || *c[0].Is != "{lab source}" ||
		*c[2].Is != "http://{lab host}/x" {
		t.Errorf("checks %+v", c)
	}
	check(`{"url":"{h}","id":1,"t":1{s}}`, `{"url":"{h}","id":2,"t":1{s}}`, "", "",
		`a has the value "1" in field id, but b has the value "2"`)
}

// FuzzJoint checks the found template against the responses from which it was made.
func FuzzJoint(f *testing.F) {
	for _, seed := range []string{"", "{h}", "{{h}}", "{{{h}}", "a{p} {s}", "{a{h}", "${h}",
		"$${P}{p}", "%3a{p}", "{lab host}{h}", "{s}.5", ".{s}", "{key {s}}", "{h}{h}", "1{p}"} {
		f.Add(seed, 3)
	}
	f.Fuzz(func(t *testing.T, body string, split int) {
		_, all := echoes(body, body)
		var of []quoted
		for _, a := range append(all[0][0], all[1][0]...) {
			of = append(of, a.quoted(string(a.Body)))
		}
		said, ok := joint(of, given{})
		if !ok {
			return
		}
		wants, err := template.Parse(said, nil)
		if err != nil {
			t.Fatalf("%q is not text: %v", said, err)
		}
		for _, q := range of {
			at := wants.At(q.host, q.port)
			if fixed, is := at.Fixed(); is {
				if string(fixed) != q.in {
					t.Errorf("%q is %q, want %q", said, fixed, q.in)
				}
				continue
			}
			p := at.Pattern()
			if p == nil || !p.Is([]byte(q.in)) {
				t.Fatalf("%q is not %q", said, q.in)
			}
			if split = min(max(split, 0), len(q.in)); p.Is([]byte(q.in[:split])) &&
				split < len(q.in) && q.in[split] < '0' {
				t.Errorf("%q is %q, which is cut", said, q.in[:split])
			}
		}
	})
}
