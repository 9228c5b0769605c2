package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"prony/internal/print"
	"prony/internal/telemetry"
)

// app is what the verbs share.
type app struct {
	world          world    // what trials are run with
	args           []string // without passwords
	stdout, stderr io.Writer
	rootFlag       string
	repeated       bool // the line is one that again has put together
}

// version is that of the module, or of the commit it was built from.
func version() string { return telemetry.OwnVersion().Version }

// root is the folder of the catalog: the flag's, or the nearest one upwards that has services/ and
// suites/.
func (a *app) root() (string, error) {
	if a.rootFlag != "" {
		return filepath.Abs(a.rootFlag)
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if isDir(filepath.Join(at, "services")) && isDir(filepath.Join(at, "suites")) {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("find the catalog: no folder from %s upwards has services/ and "+
				"suites/; go into a checkout of Prony, or name one with --root", dir)
		}
	}
}

// exists says whether there is a file or a folder at the end of a path's elements.
func exists(path ...string) bool {
	_, err := os.Stat(filepath.Join(path...))
	return err == nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func (a *app) say(line string) { fmt.Fprintln(a.stderr, line) }

// grid prints rows in columns.
func (a *app) grid(rows [][]string) error {
	_, err := io.WriteString(a.stdout, print.Grid("", rows, print.Left))
	return err
}
