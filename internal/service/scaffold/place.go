package scaffold

import (
	"regexp"
	"slices"
	"strings"
)

// place is a list of the catalog's services in a file. item matches an entry of the list, with the
// service's name as its first group. Consecutive entries are sorted by name, if previous edits kept
// the order.
type place struct {
	file string
	item *regexp.Regexp
}

// named matches a service's name in the regular expressions of places.
const named = `([a-z]+-[a-z0-9]+)`

// places are the lists that a new service must be added to. The tests of internal/dev/tidy,
// home/deploytest and cmd/prony check each.
var places = []place{
	{"services/pom.xml", regexp.MustCompile(`(?m)^ +<module>` + named + `</module>\n`)},
	{"docs/fairness.md", regexp.MustCompile(`(?m)^\| ` + named + `(?:/[^ |]+)? \|.*\n`)},
	// Comment and targets of a service, after an empty line.
	{"deploy/services.yaml", regexp.MustCompile(`\n(?:  #.*\n)+(?:  ` + named +
		`-[a-z0-9-]+:\n(?:    .*\n)+)+`)},
	{"deploy/services.yaml", jvms},
	{"deploy/rain.yaml", regexp.MustCompile(`(?m)^ +- --remote=` + named + `-.*\n`)},
	{"deploy/rain.yaml", regexp.MustCompile(`(?m)^ +- http://` + named + `-.*\n`)},
	{"deploy/rain.yaml", regexp.MustCompile(`(?m)^ +` + named + `-[a-z0-9-]+: \{.*\n`)},
}

var (
	// jvms is the only list in that file with several lines: the targets that wait for agents.
	jvms = regexp.MustCompile(`(?s)( +)profiles: \[\n.*?\n +\]\n`)
	jvm  = place{item: regexp.MustCompile(named + `-[a-z0-9-]+, `)}

	crates = place{item: regexp.MustCompile(
		`\n\[\[package\]\]\nname = "([^"]+)"\n(?:.+\n)*`)}
)

// add returns the text with a copy of each of the entries of the service like, under the new name.
func (p place) add(text, like, name string) string {
	if p.item == jvms {
		return jvms.ReplaceAllStringFunc(text, func(list string) string {
			return addToList(list, like, name)
		})
	}
	for _, run := range slices.Backward(p.runs(text)) {
		var copied strings.Builder
		pos := run[len(run)-1].end
		for _, item := range slices.Backward(run) {
			if item.name > name {
				pos = item.start
			}
		}
		for _, item := range run {
			if item.name == like {
				copied.WriteString(renamed(text[item.start:item.end], like, name))
			}
		}
		text = text[:pos] + copied.String() + text[pos:]
	}
	return text
}

// move renames an entry and moves it to its sorted position: cargo --locked rejects an unsorted
// lock file.
func (p place) move(text, like, name string) string {
	text = p.add(text, like, name)
	for _, run := range slices.Backward(p.runs(text)) {
		for _, item := range slices.Backward(run) {
			if item.name == like {
				text = text[:item.start] + text[item.end:]
			}
		}
	}
	return text
}

type item struct {
	name       string
	start, end int
}

// runs returns the groups of consecutive entries in a text.
func (p place) runs(text string) (runs [][]item) {
	end := -1
	for _, m := range p.item.FindAllStringSubmatchIndex(text, -1) {
		if m[0] != end {
			runs = append(runs, nil)
		}
		end = m[1]
		last := &runs[len(runs)-1]
		*last = append(*last, item{text[m[2]:m[3]], m[0], m[1]})
	}
	return runs
}

// addToList adds to a list of YAML that is wrapped at 100 columns.
func addToList(list, like, name string) string {
	indent, body, _ := strings.Cut(list, "profiles: [")
	body, _, _ = strings.Cut(body, "]")
	words := strings.Fields(body)
	flat := jvm.add(strings.Join(words, " ")+", ", like, name)
	out, line := indent+"profiles: [\n", indent+" "
	for word := range strings.FieldsSeq(strings.TrimSuffix(flat, ", ")) {
		if len(line)+1+len(word) > 100 {
			out, line = out+line+"\n", indent+" "
		}
		line += " " + word
	}
	return out + line + "\n" + indent + "]\n"
}

// renamed replaces the name of the service like in a text, also in variables.
func renamed(text, like, name string) string {
	lower := regexp.MustCompile(`\b` + regexp.QuoteMeta(like) + `\b`)
	upper := regexp.MustCompile(`\b` + variable(like) + `_`)
	return upper.ReplaceAllString(lower.ReplaceAllString(text, name), variable(name)+"_")
}

func variable(name string) string { return strings.ToUpper(strings.ReplaceAll(name, "-", "_")) }
