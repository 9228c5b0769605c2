package service

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// momentary are variables that say where a command was typed, and change nothing in a build. Those
// that end in _ are beginnings of names.
var momentary = []string{"COLUMNS", "DISPLAY", "GITHUB_", "GIT_", "GPG_", "INVOCATION_ID",
	"JOURNAL_STREAM", "LINES", "LS_COLORS", "OLDPWD", "PRONY_", "PS1", "PWD", "SHLVL", "SSH_",
	"STY", "TERM", "TERM_", "TMPDIR", "TMUX", "TMUX_", "WINDOWID", "XDG_", "_"}

// environ returns a hash of each variable that the build steps of a user's service may read, by
// name; nil for services of the catalog, whose steps read only those of buildEnv.
func (s *Service) environ() map[string]string {
	if s.Environ == nil {
		return nil
	}
	out := map[string]string{}
	for _, pair := range s.Environ {
		name, value, _ := strings.Cut(pair, "=")
		if !slices.ContainsFunc(momentary, func(m string) bool {
			return name == m || m != "_" && strings.HasSuffix(m, "_") && strings.HasPrefix(name, m)
		}) {
			sum := sha256.Sum256([]byte(value))
			out[name] = hex.EncodeToString(sum[:4])
		}
	}
	return out
}

// otherwise names the variables that had other values in an earlier build; empty: there are none,
// or it is not known. They do not make another build, because most variables change nothing.
func otherwise(earlier, now map[string]string) string {
	if earlier == nil || now == nil {
		return ""
	}
	var names []string
	for name := range now {
		if earlier[name] != now[name] {
			names = append(names, name)
		}
	}
	for name := range earlier {
		if _, ok := now[name]; !ok {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	const most = 3
	if more := len(names) - most; more > 0 {
		names = append(names[:most], fmt.Sprintf("%d more", more))
	}
	return ", made with other values of " + strings.Join(names, ", ") + ". To build with the " +
		"present values, set them in the build command"
}
