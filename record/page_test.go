package record

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	gap    = regexp.MustCompile(`\s{2,}`)
	word   = regexp.MustCompile(`[A-Za-z]\w*`)
	quoted = regexp.MustCompile("`(\\w+)`")
)

// The page of the format and the types have the same keys.
func TestThePageNamesEveryKey(t *testing.T) {
	b, err := os.ReadFile("../docs/formats/record.md")
	if err != nil {
		t.Fatal(err)
	}
	section := func(from, to string) string {
		_, text, found := strings.Cut(string(b), from)
		text, _, end := strings.Cut(text, to)
		if !found || !end {
			t.Fatalf("the page has no part from %q to %q", from, to)
		}
		return text
	}
	check := func(what string, of reflect.Type, named []string) {
		t.Helper()
		if want := keys(of); !slices.Equal(sorted(named), sorted(want)) {
			t.Errorf("the page names of %s\n%s\nwant the keys of %v,\n%s",
				what, sorted(named), of, sorted(want))
		}
	}
	// An outline's entry has the keys of the object that it describes.
	checkEntries := func(outline map[string][]string, of reflect.Type) {
		t.Helper()
		for i := range of.NumField() {
			name, inner := key(of.Field(i)), object(of.Field(i).Type)
			if inner != nil && inner != dist && inner != load {
				check(name, inner, outline[name])
			}
		}
	}

	head := entries(section("## The head\n", "## The record\n"))
	check("the head", run, head[""])
	checkEntries(head, run)

	outline := entries(section("## The record\n", "### A limit\n"))
	check("the record", recordType, outline[""])
	checkEntries(outline, recordType)

	check("a limit", reflect.TypeFor[Limit](),
		firstColumn(section("### A limit\n", "### A finding\n")))
	check("a finding", reflect.TypeFor[Finding](),
		firstColumn(section("### A finding\n", "### Version 1\n")))
	check("a load", load, firstColumn(section("### A load\n", "\nThe objects in it")))
	checkEntries(entries(section("\nThe objects in it", "\nA distribution")), load)
	check("a distribution", dist, backquoted(section("\nA distribution", "\nhistogram is")))
}

var (
	run        = reflect.TypeFor[Run]()
	recordType = reflect.TypeFor[Record]()
	load       = reflect.TypeFor[Load]()
	dist       = reflect.TypeFor[Dist]()
)

// entries parses the outline in a fenced block. A line is "object  keys  prose", separated by two
// spaces or more; without an object it continues the entry above. Keys in the first column belong
// to the document and are returned for "".
func entries(text string) map[string][]string {
	_, text, _ = strings.Cut(text, "```\n")
	text, _, _ = strings.Cut(text, "```")
	out := map[string][]string{}
	entry := ""
	for line := range strings.Lines(text) {
		columns := gap.Split(strings.TrimRight(line, "\n"), 3)
		if names := word.FindAllString(columns[0], -1); len(names) > 0 {
			out[""] = append(out[""], names...)
			entry = names[0]
		}
		if len(columns) > 1 {
			out[entry] = append(out[entry], word.FindAllString(columns[1], -1)...)
		}
	}
	return out
}

// firstColumn returns the keys in the first column of a table.
func firstColumn(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			out = append(out, backquoted(cells[1])...)
		}
	}
	return out
}

func backquoted(text string) []string {
	var out []string
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }

func key(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" || name == "-" {
		panic(fmt.Sprintf("%s has no key: every field of a record is written", f.Name))
	}
	return name
}

// object returns the type whose keys a value of type v has in JSON; nil if it is not an object, or
// one with free keys.
func object(v reflect.Type) reflect.Type {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Slice {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct || v == reflect.TypeFor[time.Time]() {
		return nil
	}
	return v
}

// keys returns the keys of a struct.
func keys(of reflect.Type) []string {
	var out []string
	for i := range of.NumField() {
		out = append(out, key(of.Field(i)))
	}
	return out
}
