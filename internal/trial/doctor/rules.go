package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"prony.example/internal/launch/cgroup"
	"prony.example/record"
)

// Rule is one check, with the conditions of its grades ("": the check never gives this grade).
type Rule struct {
	Name                 string
	Fit, Doubtful, Unfit string // conditions, in words
	Why                  string // effect on results
	Source               string // kernel document, paper or issue
	Vital                bool   // a host without a value is doubtful

	look func(*machine) finding
}

// rules are all checks, in the order of the output.
var rules = slices.Concat(processorRules, timeRules, companyRules, memoryRules, networkRules,
	permissionRules)

// finding is the result of a rule.
type finding struct{ grade, observed, fix string }

func fit(observed string) finding           { return finding{record.Fit, observed, ""} }
func doubtful(observed, fix string) finding { return finding{record.Doubtful, observed, fix} }
func unfit(observed, fix string) finding    { return finding{record.Unfit, observed, fix} }
func unknown(observed string) finding       { return finding{record.Unknown, observed, ""} }

// unsaid is the finding of most rules if a file is missing.
func unsaid() finding { return unknown("the kernel does not report it") }

// doubtfulIf returns a doubtful finding if the condition is true, otherwise a fit one.
func doubtfulIf(condition bool, observed, fix string) finding {
	return worst(false, condition, observed, fix)
}

// worst returns an unfit or doubtful finding if its condition is true, otherwise a fit one.
func worst(isUnfit, isDoubtful bool, observed, fix string) finding {
	switch {
	case isUnfit:
		return unfit(observed, fix)
	case isDoubtful:
		return doubtful(observed, fix)
	}
	return fit(observed)
}

// text returns a file's text without surrounding blanks, "" if there is no file.
func (m *machine) text(path string) string { return cgroup.Value(m.Root, path) }

// number returns the number in a file, -1 if there is none.
func (m *machine) number(path string) int64 { return readNumber(filepath.Join(m.Root, path)) }

func (m *machine) exists(path string) bool {
	_, err := os.Stat(filepath.Join(m.Root, path))
	return err == nil
}

// match lists the paths below the root that match a pattern of path/filepath.
func (m *machine) match(pattern string) []string {
	files, _ := filepath.Glob(filepath.Join(m.Root, pattern)) // the patterns are ours
	for i, f := range files {
		if rel, err := filepath.Rel(m.Root, f); err == nil {
			files[i] = rel
		}
	}
	return files
}

// ofCore returns the path of a core's file.
func ofCore(core int, file string) string {
	return "sys/devices/system/cpu/cpu" + strconv.Itoa(core) + "/" + file
}

// ofCores returns the distinct texts of a file that each core has, in order of the cores; none if a
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

// asRoot marks a command that needs root.
func asRoot(command string) string { return "as root: " + command }
