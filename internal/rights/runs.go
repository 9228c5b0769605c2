package rights

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Runs are the files that a command in a folder is run from, as far as can be told beforehand: its
// program, what a line for sh names that is a file, and the interpreters of what is a script. A
// program that may be read by all is of no use to somebody who may not read its interpreter.
func Runs(dir, program string, args []string) (files []string) {
	words := []string{program}
	if len(args) > 2 && filepath.Base(args[0]) == "sh" && args[1] == "-c" {
		words = append(words, strings.FieldsFunc(args[2], func(r rune) bool {
			return strings.ContainsRune(" \t\n;|&()'\"", r)
		})...)
	}
	for _, word := range words {
		path, ok := found(dir, word)
		for ; ok; path, ok = interpreter(dir, path) {
			if files = append(files, path); len(files) > maxRuns {
				return files
			}
		}
	}
	return files
}

// maxRuns bounds interpreters that name each other.
const maxRuns = 100

// found is the regular file that a word of a command names.
func found(dir, word string) (path string, ok bool) {
	switch {
	case filepath.IsAbs(word):
		path = word
	case strings.Contains(word, "/"):
		path = filepath.Join(dir, word)
	default:
		path, _ = exec.LookPath(word)
	}
	info, err := os.Stat(path)
	return path, err == nil && info.Mode().IsRegular()
}

// interpreter is what runs a script (execve(2)); for /usr/bin/env, what that looks for.
func interpreter(dir, script string) (path string, ok bool) {
	f, err := os.Open(script)
	if err != nil {
		return "", false
	}
	defer f.Close()
	var head [256]byte // as much of it as the kernel looks at
	n, _ := io.ReadFull(f, head[:])
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	rest, isScript := strings.CutPrefix(line, "#!")
	words := strings.Fields(rest)
	if !isScript || len(words) == 0 {
		return "", false
	}
	if len(words) > 1 && filepath.Base(words[0]) == "env" {
		words = words[1:]
		if words[0] == "-S" && len(words) > 1 {
			words = words[1:]
		}
	}
	return found(dir, words[0])
}
