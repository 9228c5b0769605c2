package extract

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"prony.example/load/template"
)

// must unwraps the result of a constructor of finders.
func must(t testing.TB) func(*Finder, error) *Finder {
	return func(f *Finder, err error) *Finder {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
}

const none = "\x00none" // no value is found

func checkFind(t *testing.T, f *Finder, head, body, want string) {
	t.Helper()
	got, found := f.Find([]byte(head), []byte(body))
	if found != (want != none) || found && string(got) != want {
		t.Errorf("%s in %q, %q: %q, %v; want %q", f, head, body, got, found, want)
	}
}

func TestFindJSON(t *testing.T) {
	check := func(path, body, want string) {
		t.Helper()
		checkFind(t, must(t)(JSON(path)), "HTTP/1.1 200 OK\r\n", body, want)
	}
	const owner = `{"id": 7, "name": "Ada \"A\" \u00e9", "ok": true, "none": null, "empty": "",
		"pets": [{"id": 11, "kind": "cat"}, {"id": 12, "kind": "dog"}], "a.b": 1.50}`
	check("id", owner, "7")
	check("name", owner, `Ada "A" é`)
	check("ok", owner, "true")
	check("none", owner, "null")
	check("empty", owner, "")
	check("a\\.b", owner, "1.50") // unchanged, not as a float would print
	check("pets.1.id", owner, "12")
	check("pets.#", owner, "2")
	check(`pets.#(kind=="dog").id`, owner, "12")
	check("pets.0", owner, `{"id": 11, "kind": "cat"}`)
	check("pets.2.id", owner, none)
	check("missing", owner, none)
	check("0.id", `[{"id":3}]`, "3")
	check("@this", `"text"`, "text")
	check("id", "", none)
	check("id", "<html>", none)
	check("id", `{"id":7`, "7") // an incomplete body: only @valid checks all of it
	check("@valid", `{"id":7`, none)
	check("@valid", `{"id":7}`, `{"id":7}`)
}

func TestFindHeader(t *testing.T) {
	check := func(name, fields, want string) {
		t.Helper()
		checkFind(t, must(t)(Header(name)), "HTTP/1.1 200 OK\r\n"+fields, "Location: "+
			"body\r\n", want)
	}
	check("Location", "Location: /owners/7\r\n", "/owners/7")
	check("location", "Server: x\r\nLOCATION: /owners/7\r\n\r\n", "/owners/7")
	check("LOCATION", "location:/owners/7 \t \r\n", "/owners/7")
	check("x", "X:\r\n", "")
	check("x", "X: a: b\r\n", "a: b")
	check("x", "X: first\r\nx: second\r\n", "first")
	check("x", "Xy: 1\r\nY-x: 2\r\nyx: 3\r\n", none)
	check("x", "Y: 1\r\n X: folded\r\n", none)
	check("x", "X : a blank before the colon\r\n", none)
	check("x", "X: no end", "no end")
	check("x", "X: a bare line feed\nY: 1\r\n", "a bare line feed")
	check("x", "Y: \r\n\r\nX: after the head\r\n", none)
	check("x", "", none)
	check("k", "\u212a: a Kelvin sign\r\n", none)
	// The status line is not a field, whatever its reason looks like.
	checkFind(t, must(t)(Header("X")), "X: 200 OK\r\n", "", none)
	checkFind(t, must(t)(Header("X")), "", "", none)
}

func TestFindRegex(t *testing.T) {
	check := func(pattern, body, want string) {
		t.Helper()
		checkFind(t, must(t)(Regex(pattern)), "HTTP/1.1 200 OK\r\n", body, want)
	}
	check(`\d+`, "id 12 of 34", "12")
	check(`id (\d+) of (\d+)`, "id 12 of 34", "12")
	check(`(?:id) \d+`, "id 12", "id 12")
	check(`(a)|b`, "b", none) // the group took no part
	check(`(a*)b`, "b", "")
	check(`x`, "abc", none)
	check(`OK`, "", none) // the head is not searched
	check(`(?s)<li>(.*?)</li>`, "<ul><li>a\nb</li><li>c</li>", "a\nb")
}

func TestFindBody(t *testing.T) {
	checkFind(t, Body(), "HTTP/1.1 200 OK\r\n", "all of it\n", "all of it\n")
	checkFind(t, Body(), "", "", "")
}

func TestFindersAreNamed(t *testing.T) {
	check := func(f *Finder, want string) {
		t.Helper()
		if f.String() != want {
			t.Errorf("%s, want %s", f, want)
		}
	}
	check(must(t)(JSON("a.b")), "json a.b")
	check(must(t)(JSON("a b")), `json "a b"`)
	check(must(t)(Header("Location")), "header Location")
	check(must(t)(Regex(`a\d`)), `regex a\d`)
	check(Body(), "body")
}

func TestBadFinders(t *testing.T) {
	check := func(f *Finder, err error) func(want string) {
		return func(want string) {
			t.Helper()
			if err == nil || f != nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%v, %v; want an error %s", f, err, want)
			}
		}
	}
	check(JSON(""))("find in JSON: the path is empty; use one such as owner.id")
	for _, name := range []string{"", "a b", "a:", "é", "a\r\n"} {
		check(Header(name))(fmt.Sprintf("find header: %q is not the name of a field", name))
	}
	check(Regex(""))("find by regular expression: the pattern has 0 bytes; 1 to 4096")
	check(Regex(strings.Repeat("a", 4097)))("find by regular expression: the pattern has 4097")
	check(Regex("a("))("find by regular expression: error parsing regexp: missing closing ): `a(`;")
	check(Regex(`(a)\1`))("find by regular expression: error parsing regexp: invalid escape")
	check(Regex("(?:a{1000}){1000}"))("find by regular expression: error parsing regexp: ")
}

func TestFindAllocatesNothingOnPlainPaths(t *testing.T) {
	check := func(f *Finder) {
		t.Helper()
		head := []byte("HTTP/1.1 201 Created\r\nServer: x\r\nLocation: /owners/7\r\n")
		body := []byte(`{"id": 7, "name": "Ada", "pets": [{"id": 11}]}`)
		if n := testing.AllocsPerRun(100, func() { f.Find(head, body) }); n != 0 {
			t.Errorf("%s allocates %g times", f, n)
		}
	}
	check(must(t)(JSON("id")))
	check(must(t)(JSON("name")))
	check(must(t)(JSON("pets.0.id")))
	check(must(t)(Header("location")))
	check(Body())
}

func FuzzFind(f *testing.F) {
	for i, pattern := range []string{"id", "x", `(\d+)`, "@valid", "pets.#(id>1)#.id", "..0.a",
		"@ugly|@pretty", "{id,name}", "[a]", "#.a.#"} {
		f.Add(uint8(i), pattern, []byte("HTTP/1.1 200 OK\r\nX: 1\r\n"),
			[]byte(`{"id":7,"pets":[{"id":11,"a":[1]}]}`))
	}
	f.Fuzz(func(t *testing.T, kind uint8, pattern string, head, body []byte) {
		made, err := Body(), error(nil)
		switch kind % 4 {
		case 0:
			made, err = JSON(pattern)
		case 1:
			made, err = Header(pattern)
		case 2:
			made, err = Regex(pattern)
		}
		if err != nil {
			return
		}
		h, b := bytes.Clone(head), bytes.Clone(body)
		got, found := made.Find(h, b)
		if !found && got != nil {
			t.Errorf("%s: nothing is found and it is %q", made, got)
		}
		if !bytes.Equal(h, head) || !bytes.Equal(b, body) {
			t.Errorf("%s changed the answer", made)
		}
		if c := Exists(made, true); c.Holds(h, b, &template.Values{}) != found {
			t.Errorf("%s does not hold, found %v", &c, found)
		}
	})
}

// If several lines have the name, the one that matches counts, and within it the group.
func TestHeaderRegex(t *testing.T) {
	head := []byte("HTTP/1.1 200 OK\r\nSet-Cookie: a=1; Path=/\r\nset-cookie: sid=xyz; Path=/\r\n" +
		"X-Sid: sid=no\r\n\r\nSet-Cookie: sid=body\r\n")
	for pattern, want := range map[string]string{`sid=([^;]+)`: "xyz", `^a=\d`: "a=1",
		`token=(.*)`: "none", `body`: "none"} {
		f, err := HeaderRegex("Set-Cookie", pattern)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := f.Find(head, []byte("sid=body"))
		if !ok {
			got = []byte("none")
		}
		if string(got) != want || !strings.HasPrefix(f.String(), "header Set-Cookie regex ") {
			t.Errorf("%s finds %q, want %q", f, got, want)
		}
	}
	for _, bad := range [][2]string{{"a b", "x"}, {"a", "("}, {"a", ""}} {
		if _, err := HeaderRegex(bad[0], bad[1]); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
