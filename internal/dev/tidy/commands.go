package tidy

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Command is a `$ prony …` line of a fenced block in the docs.
type Command struct {
	File   string   // from the root, with slashes
	Line   int      // of the prompt, from 1
	Args   []string // after the program's name, split as a shell would
	Output []string // the lines shown below it, without blank ones at the end
}

// Commands returns the commands that the docs show, in order of file and line: README.md,
// CONTRIBUTING.md, docs/**/*.md and services/*/README.md. The error joins one per line that cannot
// be split, each with file:line; the other commands are returned all the same.
func Commands(root string) ([]Command, error) {
	names, err := list(root)
	if err != nil {
		return nil, err
	}
	var all []Command
	var failed []error
	for _, name := range names {
		if !showsCommands(name) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			failed = append(failed, fmt.Errorf("read the commands of %s: %w", name, err))
			continue
		}
		matches, err := commandsIn(name, string(text))
		all, failed = append(all, matches...), append(failed, err)
	}
	return all, errors.Join(failed...)
}

func showsCommands(name string) bool {
	if name == "README.md" || name == "CONTRIBUTING.md" {
		return true
	}
	if strings.HasPrefix(name, "docs/") {
		return path.Ext(name) == ".md"
	}
	service, _ := path.Match("services/*/README.md", name)
	return service
}

// commandsIn parses the commands of one text. A backslash at the end of a line joins it with the
// next.
func commandsIn(name, text string) ([]Command, error) {
	var commands []Command
	var failed []error
	lines := markdown(text)
	for i := 0; i < len(lines); i++ {
		line, pos := lines[i], lines[i].number
		if !isPrompt(line) || strings.Fields(line.text[1:])[0] != "prony" {
			continue
		}
		shown := line.text[1:]
		for goesOn(shown) && i+1 < len(lines) && lines[i+1].code {
			i++
			shown = strings.TrimSuffix(shown, `\`) + lines[i].text
		}
		words, err := split(shown)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s:%d: %w", name, pos, err))
			continue
		}
		output := outputOf(lines[i+1:])
		commands = append(commands, Command{File: name, Line: pos, Args: words[1:], Output: output})
	}
	return commands, errors.Join(failed...)
}

func isPrompt(line mdLine) bool {
	return line.code && strings.HasPrefix(line.text, "$ ") && strings.TrimSpace(line.text) != "$"
}

// goesOn reports whether the last backslash joins lines and is not itself escaped.
func goesOn(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

func outputOf(lines []mdLine) []string {
	var output []string
	for _, line := range lines {
		if !line.code || line.text == "$" || strings.HasPrefix(line.text, "$ ") {
			break
		}
		output = append(output, line.text)
	}
	for len(output) > 0 && strings.TrimSpace(output[len(output)-1]) == "" {
		output = output[:len(output)-1]
	}
	return output
}
