package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"prony.example/internal/launch/cgroup"
	"prony.example/record"
)

// Rule is one check: what is wanted, what makes a host doubtful or unfit ("" is never), and why.
type Rule struct {
	Name                 string
	Fit, Doubtful, Unfit string // conditions, in words
	Why                  string // what it does to numbers
	Source               string // kernel document, paper or issue
	Vital                bool   // a host that does not tell is doubtful

	look func(*machine) finding
}

// rules are all checks, in the order in which they are shown.
var rules = slices.Concat(processorRules, timeRules, companyRules, memoryRules, networkRules,
	permissionRules)

// finding is what a rule saw.
type finding struct{ grade, observed, fix string }

func fit(observed string) finding           { return finding{record.Fit, observed, ""} }
func doubtful(observed, fix string) finding { return finding{record.Doubtful, observed, fix} }
func unfit(observed, fix string) finding    { return finding{record.Unfit, observed, fix} }
func unknown(observed string) finding       { return finding{record.Unknown, observed, ""} }

// unsaid is what most rules find where a file is not there.
func unsaid() finding { return unknown("the kernel does not report it") }

// doubtfulIf is fit otherwise.
func doubtfulIf(condition bool, observed, fix string) finding {
	return worst(false, condition, observed, fix)
}

// worst is unfit or doubtful where that is so, and fit otherwise.
func worst(isUnfit, isDoubtful bool, observed, fix string) finding {
	switch {
	case isUnfit:
		return unfit(observed, fix)
	case isDoubtful:
		return doubtful(observed, fix)
	}
	return fit(observed)
}

// text is a file's text without blanks around it, "" where there is none.
func (m *machine) text(path string) string { return cgroup.Value(m.Root, path) }

// number is the number that a file holds, -1 where there is none.
func (m *machine) number(path string) int64 { return readNumber(filepath.Join(m.Root, path)) }

func (m *machine) exists(path string) bool {
	_, err := os.Stat(filepath.Join(m.Root, path))
	return err == nil
}

// match lists the paths below the root that fit a pattern, as path/filepath has them.
func (m *machine) match(pattern string) []string {
	files, _ := filepath.Glob(filepath.Join(m.Root, pattern)) // the patterns are ours
	for i, f := range files {
		if rel, err := filepath.Rel(m.Root, f); err == nil {
			files[i] = rel
		}
	}
	return files
}

// ofCore is the path of a core's file.
func ofCore(core int, file string) string {
	return "sys/devices/system/cpu/cpu" + strconv.Itoa(core) + "/" + file
}

// ofCores are the distinct texts of a file that each core has, in order of the cores; none when a
// core lacks it.
func (m *machine) ofCores(file string) []string {
	var all []string
	for _, core := range m.cores {
		text := m.text(ofCore(core, file))
		if text == "" {
			return nil
		}
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

// asRoot marks a command that only root may run.
func asRoot(command string) string { return "as root: " + command }
