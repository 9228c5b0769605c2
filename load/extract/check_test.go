package extract

import (
	"strings"
	"testing"

	"prony.example/load/template"
)

// values are those of request 3 with key 47 and the variable {id} = 7.
var values = template.Values{K: 3, Key: 47, Vars: [][]byte{[]byte("7")}}

var flow = []string{"id"}

const (
	answerHead = "HTTP/1.1 201 Created\r\nLocation: /owners/7\r\nContent-Type: text/html; a=b\r\n"
	answerBody = `{"id": 7, "key": "k47", "name": "Ada", "none": null, "empty": ""}`
)

func TestChecks(t *testing.T) {
	check := func(want bool, words string) func(Check, error) {
		return func(c Check, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			got := c.Holds([]byte(answerHead), []byte(answerBody), &values)
			if got != want || c.String() != words {
				t.Errorf("%s: holds %v, want %s, %v", &c, got, words, want)
			}
		}
	}
	json := func(path string) *Finder { t.Helper(); return must(t)(JSON(path)) }
	header := func(name string) *Finder { t.Helper(); return must(t)(Header(name)) }

	check(true, "json id is 7")(Is(json("id"), "7", nil))
	check(false, "json id is 70")(Is(json("id"), "70", nil))
	check(false, "json key is k4")(Is(json("key"), "k4", nil)) // it is k47
	check(true, "json id is {id}")(Is(json("id"), "{id}", flow))
	check(true, "json key is k{key}")(Is(json("key"), "k{key}", nil))
	check(false, "json key is k{seq}")(Is(json("key"), "k{seq}", nil))
	check(true, `json empty is ""`)(Is(json("empty"), "", nil))
	check(false, `json missing is ""`)(Is(json("missing"), "", nil)) // missing is not empty
	check(true, "header location is /owners/{id}")(Is(header("location"), "/owners/{id}", flow))
	check(false, "header location is /Owners/7")(Is(header("location"), "/Owners/7", nil))

	check(true, "json name contains da")(Contains(json("name"), "da", nil))
	check(false, "json name contains dad")(Contains(json("name"), "dad", nil))
	check(false, "json missing contains a")(Contains(json("missing"), "a", nil))
	check(true, `body contains "\"id\": {id},"`)(Contains(Body(), `"id": {id},`, flow))

	check(true, "header content-type matches ^text/html(;|$)")(
		Matches(header("content-type"), "^text/html(;|$)"))
	check(false, "header content-type matches ^html")(Matches(header("content-type"), "^html"))
	check(false, "json missing matches .*")(Matches(json("missing"), ".*"))

	check(true, "json id exists")(Exists(json("id"), true), nil)
	check(true, "json none exists")(Exists(json("none"), true), nil)
	check(false, "json missing exists")(Exists(json("missing"), true), nil)
	check(false, "json id does not exist")(Exists(json("id"), false), nil)
	check(true, "json missing does not exist")(Exists(json("missing"), false), nil)
}

func TestChecksThatCannotBe(t *testing.T) {
	check := func(want string) func(Check, error) {
		return func(c Check, err error) {
			t.Helper()
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%v; want an error %s", err, want)
			}
		}
	}
	check("check that body is {ky}: parse {ky}: there is no placeholder")(Is(Body(), "{ky}", nil))
	check("check that body is {id}: parse {id}: there is no")(Is(Body(), "{id}", nil))
	check("check that body contains nothing: every value does")(Contains(Body(), "", nil))
	check("check that body contains {ky}: parse")(Contains(Body(), "{ky}", nil))
	check("check that body matches a(: error parsing regexp: missing")(Matches(Body(), "a("))
}

func TestLongTextsAreShownInPart(t *testing.T) {
	c, err := Is(Body(), strings.Repeat("é", 50), nil) // 100 bytes, of which 80 are shown
	if want := "body is " + strings.Repeat("é", 40) + "…"; err != nil || c.String() != want {
		t.Errorf("%s, %v; want %s", &c, err, want)
	}
}

// An expected text longer than the buffer on the stack is also compared.
func TestLongTexts(t *testing.T) {
	long := strings.Repeat("a", onStack)
	c, err := Is(Body(), long+"{key}", nil)
	if err != nil || !c.Holds(nil, []byte(long+"47"), &values) {
		t.Errorf("a long text does not hold, %v", err)
	}
}

// {lab …} values are filled in by At; a source port matches any.
func TestWhatTheLabGave(t *testing.T) {
	c, err := Is(Body(), "{lab host} {lab source}", nil)
	if err != nil {
		t.Fatal(err)
	}
	at := c.At("a:80", "80")
	for body, want := range map[string]bool{"a:80 1": true, "a:81 1": false, "a:80 x": false,
		"a:80 1 ": false} {
		if at.Holds(nil, []byte(body), &values) != want {
			t.Errorf("%s of %q: %v, want %v", &at, body, !want, want)
		}
	}
	if _, err := Contains(Body(), "{lab host}", nil); err == nil {
		t.Error("a part of a value is held against what the lab gave")
	}
}

func TestHoldsAllocatesNothing(t *testing.T) {
	check := func(c Check, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		head, body := []byte(answerHead), []byte(answerBody)
		n := testing.AllocsPerRun(100, func() { c.Holds(head, body, &values) })
		if n != 0 || !c.Holds(head, body, &values) {
			t.Errorf("%s: %g allocations", &c, n)
		}
	}
	check(Is(must(t)(JSON("key")), "k{key}", nil))
	check(Is(must(t)(JSON("id")), "{id}", flow))
	check(Contains(Body(), `"id": {id}`, flow))
	check(Matches(must(t)(Header("location")), "^/owners/[0-9]+$"))
	check(Exists(must(t)(JSON("id")), true), nil)
}
