package template

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// variables are the names that the tests' texts can use.
var variables = []string{"id", "ownerId", "never_set"}

func parse(t testing.TB, s string) *Text {
	t.Helper()
	x, err := Parse(s, variables)
	if err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	return x
}

func values(seed, k uint64) *Values {
	return &Values{Seed: seed, K: k, Key: 4711, Vars: [][]byte{[]byte("7"), []byte("a b"), nil}}
}

func TestRendering(t *testing.T) {
	check := func(s, want string) {
		t.Helper()
		x := parse(t, s)
		if got := string(x.Append([]byte("> "), values(1, 3))); got != "> "+want {
			t.Errorf("%q renders as %q, want %q", s, got, "> "+want)
		}
	}
	check("", "")
	check("plain", "plain")
	check("/a/{key}?n={seq}&n={seq}", "/a/4711?n=3&n=3")
	check("{id}{ownerId}{never_set}", "7a b")
	check("{random 5..5} {random -3..-3} {pick a|a}", "5 -3 a")
	// JSON as it is: a brace that begins no placeholder is literal.
	check(`{"id":{id},"tags":[{}],"o":{"k":{key}}}`, `{"id":7,"tags":[{}],"o":{"k":4711}}`)
	check(`{ key } {Key} {1} {key`, `{ key } {Key} {1} {key`)
	check("{return\n1} {key a{1}", "{return\n1} {key a{1}")
	check("}{ {{ }} {{1}} {{}}", "}{ {{ }} {{1}} {{}}")
	check(`{"query":"{ owner(id: {id}) { name } }"}`, `{"query":"{ owner(id: 7) { name } }"}`)
	// Doubled braces keep a placeholder from being one.
	check("{{key}} {{nothing at all}} {{key}}}", "{key} {nothing at all} {key}}")
	check("{{{key}}}", "{{key}}") // the first brace of three begins nothing
	check("{{key} {{{id}", "{4711 {{7")
}

func TestWhatIsFixed(t *testing.T) {
	check := func(s string, fixed bool) {
		t.Helper()
		b, got := parse(t, s).Fixed()
		if got != fixed || fixed && string(b) != s {
			t.Errorf("%q: fixed %v as %q, want %v", s, got, b, fixed)
		}
	}
	check("", true)
	check(`{"a":{}}`, true)
	check("a{key}", false)
	check("{id}", false)
	if b, fixed := parse(t, "{{key}}").Fixed(); !fixed || string(b) != "{key}" {
		t.Errorf("{{key}}: fixed %v as %q", fixed, b)
	}
}

func TestErrorsSayWhatWasMeant(t *testing.T) {
	check := func(s, want string) {
		t.Helper()
		x, err := Parse(s, variables)
		if err == nil || x != nil || err.Error() != want {
			t.Errorf("%q:\ngot  %v\nwant %s", s, err, want)
		}
	}
	check("a{ky}", `parse {ky}: there is no placeholder "ky"; did you mean {key}? `+
		`The text itself is {{ky}}`)
	check("{ownerid}", `parse {ownerid}: there is no placeholder "ownerid"; did you mean `+
		`{ownerId}? `+
		`The text itself is {{ownerid}}`)
	check("{return 1}", `parse {return 1}: there is no placeholder "return"; known are id, `+
		`ownerId, `+
		`never_set, key, seq, random, hex, uuid, pick, lab. The text itself is {{return 1}}`)
	check("{key 1}", `parse {key 1}: it takes no arguments; write it as in {key}`)
	check("{id 1}", `parse {id 1}: a variable takes no arguments; write {id}`)
	const aRange = "it wants the first and the last whole number of a range"
	for args, what := range map[string]string{
		"": "it wants arguments", " ": aRange, " 1": aRange, " 1..": aRange, " 1-2": aRange,
		" 1..2.5": aRange, " 1..9223372036854775808": aRange, " 2..1": "2 is above 1",
		" -9223372036854775808..9223372036854775807": "a range of all numbers of 64 bits is one " +
			"number too many",
	} {
		check("{random"+args+"}", "parse {random"+args+"}: "+what+"; write it as in {random "+
			"1..100}")
	}
	for _, args := range []string{"0", "-1", "x", "65537", "1 "} {
		check("{hex "+args+"}", "parse {hex "+args+"}: it wants a number of digits from 1 to "+
			"65536; "+
			"write it as in {hex 16}")
	}
	check("{pick one}", "parse {pick one}: it wants two alternatives or more, with | between "+
		"them; "+
		"write it as in {pick red|green}")
}

func TestNamesOfVariables(t *testing.T) {
	check := func(name, want string) {
		t.Helper()
		_, err := Parse("", []string{name})
		if got := fmt.Sprint(err); !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
	check("id", "<nil>")
	check("owner_id2", "<nil>")
	check("key", `name variable "key": {key} has a meaning of its own`)
	for _, bad := range []string{"", "Id", "2a", "a-b", "a b", "a}", "a\n"} {
		check(bad, fmt.Sprintf("name variable %q: it must be a lower-case letter", bad))
	}
}

// render returns the text's values for requests 0..n-1.
func render(x *Text, seed uint64, n int) []string {
	out := make([]string, n)
	for k := range out {
		out[k] = string(x.Append(nil, values(seed, uint64(k))))
	}
	return out
}

// A draw of 1 in m that is missed by n requests has a probability of (1-1/m)^n, e^-20 here.
func TestDrawsReachAllValues(t *testing.T) {
	check := func(s string, want ...string) {
		t.Helper()
		got := slices.Sorted(maps.Keys(set(render(parse(t, s), 42, 20*len(want)))))
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q gives %q, want %q", s, got, want)
		}
	}
	check("{random -1..2}", "-1", "0", "1", "2")
	check("{pick a b||c}", "a b", "", "c")
	check("{hex 1}", strings.Split("0123456789abcdef", "")...)
	check("{random 9223372036854775806..9223372036854775807}",
		"9223372036854775806", "9223372036854775807")
}

func set(all []string) map[string]bool {
	out := map[string]bool{}
	for _, s := range all {
		out[s] = true
	}
	return out
}

func TestFormsOfDraws(t *testing.T) {
	check := func(s, form string) {
		t.Helper()
		re := regexp.MustCompile("^" + form + "$")
		seen := set(render(parse(t, s), 7, 200))
		for got := range seen {
			if !re.MatchString(got) {
				t.Errorf("%q gives %q, want %s", s, got, form)
			}
		}
		if len(seen) != 200 { // of 2^48 values and more, two of 200 are equal once in 1e10
			t.Errorf("%q repeats itself: %d values of 200", s, len(seen))
		}
	}
	check("{uuid}", "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
	check("{hex 15}", "[0-9a-f]{15}")
	check("{hex 16}", "[0-9a-f]{16}")
	check("{hex 33}", "[0-9a-f]{33}")
}

// Equal placeholders of two texts draw the same, and nothing else does: neither two placeholders of
// one text, nor two seeds, nor two requests.
func TestDrawsAreOfSeedRequestAndPlace(t *testing.T) {
	same := func(a, b string, seedB, kB uint64, want bool) {
		t.Helper()
		x := parse(t, a).Append(nil, values(1, 5))
		y := parse(t, b).Append(nil, values(seedB, kB))
		if got := bytes.Equal(x[len(x)-16:], y[len(y)-16:]); got != want {
			t.Errorf("%q and %q, seed %d, request %d: %s and %s", a, b, seedB, kB, x, y)
		}
	}
	same("a{hex 16}", "a{hex 16}", 1, 5, true)
	same("a{hex 16}", "a{hex 16}", 2, 5, false)
	same("a{hex 16}", "a{hex 16}", 1, 6, false)
	same("a{hex 16}", "b{hex 16}", 1, 5, false)
	same("a{hex 16}", "a{hex 16}{hex 16}", 1, 5, false)
	same("{hex 16}", "\x00{hex 16}", 1, 5, false)
	same("Host: a:80\r\nId: {hex 16}", "Host: a:8080\r\nId: {hex 16}", 1, 5, true)
	same("Id: {hex 16}", "Id: {hex 16}\r\nId: {hex 16}", 1, 5, false)
	// Neighbors in seed and request are not copies of each other, shifted by one.
	both := render(parse(t, "{hex 16}{hex 16}"), 3, 500)
	if n := len(set(append(both, render(parse(t, "{hex 16}{hex 16}"), 4, 500)...))); n != 1000 {
		t.Errorf("%d values of 1000 requests under two seeds", n)
	}
}

// Two placeholders of one text are independent: χ² of the 8 × 8 table of both draws has 63 degrees
// of freedom, and exceeds 103.4 in one of 1,000.
func TestPlacesAreIndependent(t *testing.T) {
	const each = 200
	counts := map[string]int{}
	for _, s := range render(parse(t, "{random 0..7}{random 0..7}"), 42, 64*each) {
		counts[s]++
	}
	sum := 0.0
	for _, n := range counts {
		sum += float64((n - each) * (n - each))
	}
	sum += float64((64 - len(counts)) * each * each)
	if sum /= each; sum > 103.4 {
		t.Errorf("χ² = %g, want < 103.4", sum)
	}
}

// A change of these changes the requests of every run ever recorded: it belongs in the changelog.
func TestDrawsStayWhatTheyWere(t *testing.T) {
	check := func(s, want string) {
		t.Helper()
		if got := string(parse(t, s).Append(nil, values(42, 1000))); got != want {
			t.Errorf("%q renders as %q, want %q", s, got, want)
		}
	}
	check("{random 1..1000000} {hex 20} {pick a|b|c|d|e|f}", "884915 931bab5a3bd617673bf0 a")
	check("{uuid}", "e289c8a5-3cc6-42e2-bb08-4e0e034b8ca4")
}

func TestVarsAndLiterals(t *testing.T) {
	check := func(s string, vars []int, literals ...string) {
		t.Helper()
		x := parse(t, s)
		var got []string
		for _, l := range x.Literals() {
			got = append(got, string(l))
		}
		if !slices.Equal(x.Vars(), vars) || !slices.Equal(got, literals) {
			t.Errorf("%q: variables %d, literals %q; want %d and %q",
				s, x.Vars(), got, vars, literals)
		}
	}
	check("", nil, "")
	check("/{key}/{seq}", nil, "/", "/", "")
	check("{ownerId}{id}-{id}", []int{0, 1}, "", "", "-", "")
	check("a{pick b|\r\n}c", nil, "a{pick b|\r\n}c") // a line end is not part of a placeholder
	check("a{pick b|c d}e", nil, "a", "b", "c d", "e")
}

func TestHasKey(t *testing.T) {
	for s, want := range map[string]bool{"": false, "{seq}{key}": true, "{{key}}": false} {
		if got := parse(t, s).HasKey(); got != want {
			t.Errorf("%q has a key: %v, want %v", s, got, want)
		}
	}
}

func TestEscape(t *testing.T) {
	check := func(s, want string) {
		t.Helper()
		got := Escape(s)
		if b, fixed := parse(t, got).Fixed(); got != want || !fixed || string(b) != s {
			t.Errorf("%q is escaped as %q, which is %q; want %q", s, got, b, want)
		}
	}
	check("", "")
	check(`{"a":{}}`, `{"a":{}}`)
	check("{key} {no such}", "{{key}} {{no such}}")
	check("{{key}} {{{id}", "{{{key}}} {{{{id}}")
	check("{key{id}}", "{key{{id}}}")
}

// Lengths: the longest value of each kind, without variables.
func TestMax(t *testing.T) {
	check := func(s string, want int) {
		t.Helper()
		if got := parse(t, s).Max(); got != want {
			t.Errorf("%q: at most %d bytes, want %d", s, got, want)
		}
	}
	check("", 0)
	check("abc{id}de", 5)
	check("{key}{seq}", 20+20)
	check("{random 7..1000}", 4)
	check("{random -100..7}", 4)
	check("{random -9223372036854775808..1}", 20)
	check("{hex 33}{uuid}", 33+36)
	check("a{pick b||cdef}g", 1+4+1)
}

func TestAppendDoesNotAllocate(t *testing.T) {
	x := parse(t, `/{key}/{seq}/{random 1..9}/{hex 40}/{uuid}/{pick a|b}/{id}/{ownerId}`)
	v := values(1, 0)
	dst := make([]byte, 0, x.Max()+8)
	if n := testing.AllocsPerRun(1000, func() { v.K++; dst = x.Append(dst[:0], v) }); n != 0 {
		t.Errorf("%g allocations a text", n)
	}
}

func FuzzParse(f *testing.F) {
	seedTexts(f)
	f.Fuzz(func(t *testing.T, s string) {
		if b, fixed := parse(t, Escape(s)).Fixed(); !fixed || string(b) != s {
			t.Errorf("%q escaped is %q", s, b)
		}
		x, err := Parse(s, variables)
		if err != nil {
			return
		}
		b, fixed := x.Fixed()
		if fixed && len(b) != x.Max() {
			t.Errorf("%q is fixed with %d bytes, at most %d", s, len(b), x.Max())
		}
		if again := parse(t, s); !bytes.Equal(again.Append(nil, values(1, 2)),
			x.Append(nil, values(1, 2))) {
			t.Errorf("%q parsed twice renders in two ways", s)
		}
	})
}

func seedTexts(f *testing.F) {
	for _, s := range []string{"", "{key}", `{"a":{"b":{seq}}}`, "{{key}}", "{random -5..5}",
		"{hex 17}{uuid}", "{pick a|b|}", "{id}{ownerId}", "{{{key}}}", "{random", "{ky}"} {
		f.Add(s)
	}
}

func FuzzAppend(f *testing.F) {
	f.Add("/{key}/{seq}{random -5..5}{id}", uint64(1), uint64(2), []byte("x"))
	f.Add("{hex 17}{uuid}{pick a|b|}{id}{id}", uint64(1)<<63, ^uint64(0), []byte(nil))
	f.Fuzz(func(t *testing.T, s string, seed, k uint64, value []byte) {
		x, err := Parse(s, variables)
		if err != nil {
			return
		}
		v := &Values{Seed: seed, K: k, Key: k, Vars: [][]byte{value, value, value}}
		got := x.Append(nil, v)
		limit := x.Max()
		for i := range x.parts {
			if x.parts[i].kind == varKind {
				limit += len(value)
			}
		}
		if len(got) > limit {
			t.Errorf("%q: %d bytes, at most %d", s, len(got), limit)
		}
		if again := x.Append(make([]byte, 0, limit), v); !bytes.Equal(got, again) {
			t.Errorf("%q: %q, then %q", s, got, again)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	x := parse(b, `{"id":{key},"name":"{hex 16}","kind":"{pick cat|dog}","age":{random 1..20}}`)
	v := values(1, 0)
	dst := make([]byte, 0, x.Max())
	b.ReportAllocs()
	for b.Loop() {
		v.K++
		dst = x.Append(dst[:0], v)
	}
}

// Values from the environment are sent unchanged, and do not affect draws.
func TestEnvironment(t *testing.T) {
	env := map[string]string{"TOKEN": "{key}${ID}", "_A1": "", "ID": "7"}
	look := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	check := func(s, want string) {
		t.Helper()
		x, err := parse(t, s).Fill(look)
		if err != nil {
			t.Fatal(s, err)
		}
		if got := string(x.Append(nil, values(1, 3))); got != want || len(x.Environment()) > 0 {
			t.Errorf("%q is %q, want %q", s, got, want)
		}
		if b, fixed := x.Fixed(); !strings.Contains(s, "{key}") && (!fixed || string(b) != want) {
			t.Errorf("%q is not the same each time", s)
		}
	}
	check("Bearer ${TOKEN}", "Bearer {key}${ID}")
	check("${ID}{key}${ID}-${_A1}.", "747117-.")
	check("$${ID} $$${ID} ${id2 ${} $ID $", "${ID} $${ID} ${id2 ${} $ID $")
	for _, s := range []string{"${A}", "$${A}", "$$${A}", "a${A}{key}$", "$$$$${A}"} {
		check(Escape(s), s)
	}
	if got := parse(t, "${NO}{key}").Environment(); !slices.Equal(got, []string{"NO"}) {
		t.Errorf("it wants %q", got)
	}
	if _, err := parse(t, "${NO}").Fill(look); err == nil ||
		err.Error() != "the environment has no NO, which ${NO} stands for; export it" {
		t.Errorf("no value: %v", err)
	}
	drawn := func() string {
		x, err := parse(t, "a${ID}b{hex 16}").Fill(look)
		if err != nil {
			t.Fatal(err)
		}
		out := x.Append(nil, values(1, 3))
		return string(out[len(out)-16:])
	}
	one := drawn()
	if env["ID"] = "another"; one != drawn() {
		t.Error("a longer value draws another one")
	}
}
