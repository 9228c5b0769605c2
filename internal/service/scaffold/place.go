package scaffold

import (
	"regexp"
	"slices"
	"strings"
)

// place is where a file lists the catalog's services. An item is what it says of one, and its
// first group is the service's name; items that follow each other are in the order of names, as far
// as anybody kept it.
type place struct {
	file string
	item *regexp.Regexp
}

// named is a service's name in the regular expressions of places.
const named = `([a-z]+-[a-z0-9]+)`

// places are what a new service touches beside its own folder. The tests of internal/dev/tidy,
// home/deploytest and cmd/prony ask for each.
var places = []place{
	{"services/pom.xml", regexp.MustCompile(`(?m)^ +<module>` + named + `</module>\n`)},
	{"docs/fairness.md", regexp.MustCompile(`(?m)^\| ` + named + `(?:/[^ |]+)? \|.*\n`)},
	// Its comment and its targets, after an empty line.
	{"deploy/services.yaml", regexp.MustCompile(`\n(?:  #.*\n)+(?:  ` + named +
		`-[a-z0-9-]+:\n(?:    .*\n)+)+`)},
	{"deploy/services.yaml", jvms},
	{"deploy/rain.yaml", regexp.MustCompile(`(?m)^ +- --remote=` + named + `-.*\n`)},
	{"deploy/rain.yaml", regexp.MustCompile(`(?m)^ +- http://` + named + `-.*\n`)},
	{"deploy/rain.yaml", regexp.MustCompile(`(?m)^ +` + named + `-[a-z0-9-]+: \{.*\n`)},
}

var (
	// jvms is the one list of that file that goes over several lines: who waits for agents.
	jvms = regexp.MustCompile(`(?s)( +)profiles: \[\n.*?\n +\]\n`)
	jvm  = place{item: regexp.MustCompile(named + `-[a-z0-9-]+, `)}

	crates = place{item: regexp.MustCompile(
		`\n\[\[package\]\]\nname = "([^"]+)"\n(?:.+\n)*`)}
)

// add gives a text with a copy of each run's items of the service like, under the name.
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

// move renames an item and puts it where its new name belongs: Cargo wants its lock file in order
// and refuses, under --locked, one that is not.
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

// runs are the items of a text that follow each other without anything between.
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

// renamed gives a text in which the service like has another name, in variables too.
func renamed(text, like, name string) string {
	lower := regexp.MustCompile(`\b` + regexp.QuoteMeta(like) + `\b`)
	upper := regexp.MustCompile(`\b` + variable(like) + `_`)
	return upper.ReplaceAllString(lower.ReplaceAllString(text, name), variable(name)+"_")
}

func variable(name string) string { return strings.ToUpper(strings.ReplaceAll(name, "-", "_")) }
