package deploytest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func docs(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs/compose.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The page has the commands that Observability-Benchmarking documents, except for the folder, and
// Compose accepts every command of the page.
func TestCommands(t *testing.T) {
	const before = "docker compose --project-directory deploy "
	var got []string
	for line := range strings.Lines(docs(t)) {
		line = strings.TrimSpace(line)
		if _, after, ok := strings.Cut(line, before); ok && !strings.Contains(line, "`") {
			got = append(got, after)
		}
	}
	for _, want := range []string{
		"--profile=OBS up --no-recreate --build -d",
		"--profile=OBS --profile=SERVICES up --no-recreate --build -d",
		"--profile=OBS --profile=SERVICES --profile=RAIN_FIRE up --no-recreate --build -d",
		"--profile RAIN_FIRE up --force-recreate -d",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("docs/compose.md does not print %s%s", before, want)
		}
	}
	checkFlags(t, got)
}

// checkFlags reads the help of each verb for its flags, because --dry-run would need an engine.
func checkFlags(t *testing.T, commands []string) {
	t.Helper()
	known := map[string][]string{
		"up":   {"--no-recreate", "--build", "-d", "--force-recreate"},
		"run":  {"--rm"},
		"logs": {"-f"}, "port": nil, "down": nil,
	}
	clinics, err := os.ReadFile(filepath.Join(root, "deploy/petclinic.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range commands {
		words := strings.Fields(command)
		for len(words) > 0 && strings.HasPrefix(words[0], "--profile") {
			name := strings.TrimPrefix(words[0], "--profile")
			if words = words[1:]; name == "" {
				name, words = words[0], words[1:]
			}
			name = strings.Trim(strings.TrimPrefix(name, "="), `"`)
			if _, ok := parts[name]; !ok && name != "*" &&
				!strings.Contains(string(clinics), "-profiles [ALL, "+name+",") {
				t.Errorf("%s: there is no profile %s", command, name)
			}
		}
		flags, ok := known[words[0]]
		if !ok {
			t.Errorf("%s: is %s a verb of Compose's?", command, words[0])
		}
		for _, word := range words[1:] {
			if !strings.HasPrefix(word, "-") {
				break // arguments for a container
			}
			if !slices.Contains(flags, word) {
				t.Errorf("%s: is %s a flag of %s's?", command, word, words[0])
			}
		}
	}
}

// The page describes each variable for users, and the pinned versions.
func TestVersions(t *testing.T) {
	text := docs(t)
	found := 0
	for _, m := range assignment.FindAllStringSubmatch(file(t, ".env"), -1) {
		if !strings.HasSuffix(m[1], "_IMAGE") {
			continue
		}
		found++
		image, version, _ := strings.Cut(m[2], ":")
		if !strings.Contains(text, "| "+image+" | "+version+" |") {
			t.Errorf("docs/compose.md has not the %s of .env", m[2])
		}
	}
	if found == 0 {
		t.Error(".env names no images")
	}
	for _, profile := range everything(t).Services["grafana"].Profiles {
		if !strings.Contains(text, "`"+profile+"`") {
			t.Errorf("docs/compose.md does not tell of the profile %s", profile)
		}
	}
}

// Core lists on the page never give a service's core to the load or the stack.
func TestCores(t *testing.T) {
	rows := 0
	for line := range strings.Lines(docs(t)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 6 || !strings.Contains(cells[1], "`") {
			continue
		}
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		if strings.HasPrefix(cells[1], "S") {
			continue // the header
		}
		rows++
		service := cores(cells[1])
		for _, core := range slices.Concat(cores(cells[3]), cores(cells[5])) {
			if slices.Contains(service, core) {
				t.Errorf("with %s cores, core %d is the service's and not alone", cells[0], core)
			}
		}
	}
	if rows != 4 {
		t.Errorf("found %d rows of cores", rows)
	}
}

// cores parses a list such as 0-3,6.
func cores(list string) []int {
	var out []int
	for part := range strings.SplitSeq(list, ",") {
		first, last, several := strings.Cut(part, "-")
		if !several {
			last = first
		}
		for core := number(first); core <= number(last); core++ {
			out = append(out, core)
		}
	}
	return out
}

func number(digits string) int {
	n := 0
	for _, d := range digits {
		n = n*10 + int(d-'0')
	}
	return n
}
