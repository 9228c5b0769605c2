// Package cmdlog prints what the program does outside of itself (commands, cgroup writes,
// containers) as lines that a person can paste into a shell; -x shows them:
//
//	cmd := exec.Command(…); cmdlog.Command(cmd); cmd.Run()
//
// Lines are for people who look for a fault; programs don't read them. The whole program has one
// viewer, because packages that share nothing else perform the actions. Non-goals: cmdlog runs
// nothing, and prints neither passwords of URLs nor values of variables with the name of a secret.
package cmdlog

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

var viewer atomic.Pointer[func(line string)]

// Show sets the viewer of all later actions. It must accept lines from several goroutines; nil ends
// viewing.
func Show(to func(line string)) {
	if to == nil {
		viewer.Store(nil)
		return
	}
	viewer.Store(&to)
}

// Lines returns a viewer that prints lines of several goroutines without mixing them.
func Lines(to io.Writer) func(line string) {
	var turn sync.Mutex
	return func(line string) {
		turn.Lock()
		defer turn.Unlock()
		fmt.Fprintln(to, line)
	}
}

// Say shows a line that is ready to paste, without passwords of URLs.
func Say(line string) {
	if to := viewer.Load(); to != nil {
		(*to)(Hush(line))
	}
}

// Watched reports whether a viewer is set. Callers check it before they build expensive lines.
func Watched() bool { return viewer.Load() != nil }

// Run shows a command by its words.
func Run(words ...string) {
	if Watched() {
		Say(Join(words))
	}
}

// Command shows a command before its start: its folder, the variables that differ from this
// program's environment, and its words.
func Command(cmd *exec.Cmd) {
	if !Watched() {
		return
	}
	words := slices.Clone(cmd.Args)
	if len(words) > 0 && strings.ContainsRune(cmd.Path, '/') {
		words[0] = cmd.Path
	}
	Say(In(cmd.Dir, append(changes(cmd.Env, os.Environ()), Join(words))...))
}

// Write shows a value that is written to a kernel file.
func Write(path, value string) {
	if Watched() {
		Say("echo " + Quote(value) + " > " + Quote(path))
	}
}

// In wraps parts that are ready to paste in a change to a folder, unless dir is empty.
func In(dir string, parts ...string) string {
	line := strings.Join(parts, " ")
	if dir == "" {
		return line
	}
	return "(cd " + Quote(dir) + " && " + line + ")"
}

// changes returns the variables of a complete environment that this program's environment lacks or
// has with other values.
func changes(env, ownNames []string) (out []string) {
	for _, pair := range env {
		if !slices.Contains(ownNames, pair) {
			out = append(out, Variable(pair))
		}
	}
	return out
}

// secret matches names of variables with secret values.
var secret = regexp.MustCompile(`(?i)(KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|HEADERS)`)

// Secret reports whether a variable's name indicates a secret value.
func Secret(name string) bool { return secret.MatchString(name) }

// Variable returns NAME=VALUE for a shell. For a secret it returns NAME="$NAME": a reader who may
// use the secret has set it.
func Variable(pair string) string {
	name, value, _ := strings.Cut(pair, "=")
	if Secret(name) {
		return fmt.Sprintf(`%s="$%s"`, name, name)
	}
	return name + "=" + Quote(value)
}

// plain matches words that need no quotes.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./:=@%+,-]+$`)

// Quote quotes a text as one word by POSIX' rules (Shell Command Language, 2.2.2): in single
// quotes, with single quotes in it escaped between two quoted parts.
func Quote(text string) string {
	if plain.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Join quotes words and joins them with blanks.
func Join(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Quote(w)
	}
	return strings.Join(quoted, " ")
}

// Repeatable returns a command line without the flags that name a place of results, because a
// repetition must not overwrite them: --out DIR, --save=DIR and --save-trace FILE. It also leaves
// out --wait, which is of the moment and changes no result.
func Repeatable(words []string) (out []string) {
	for i := 0; i < len(words); i++ {
		switch w := words[i]; {
		case w == "--":
			return append(out, words[i:]...)
		case w == "--out", w == "--save-trace":
			i++
		case w == "--wait", strings.HasPrefix(w, "--wait="), // its value is joined
			strings.HasPrefix(w, "--out="), strings.HasPrefix(w, "--save="),
			strings.HasPrefix(w, "--save-trace="):
		default:
			out = append(out, w)
		}
	}
	return out
}

// password matches the user and password of a URL, before the last @ of its authority (RFC 3986,
// 3.2.1).
var password = regexp.MustCompile(`(://[^/?#\s:@]*):[^/?#\s]*@`)

// Hush replaces the passwords of URLs in a text.
func Hush(text string) string { return password.ReplaceAllString(text, "$1:xxxxx@") }

// field matches a header field with credentials on a command line. named matches values that come
// from an environment variable, perhaps after a scheme or a cookie's name; they are not secret.
var (
	field = regexp.MustCompile(`(?is)^((?:-[a-z]*H=?|--header=)?` +
		`(?:authorization|proxy-authorization|cookie|x-api-key)\s*:\s*)(.*)$`)
	named = regexp.MustCompile(`^([A-Za-z0-9_.-]+[ =])?\$\{[A-Z_][A-Z0-9_]*\}$`)
)

// Lacking reports whether Hushed replaced a part of a stored command line, which therefore cannot
// be run again.
func Lacking(words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		m := field.FindStringSubmatch(w)
		return m != nil && m[2] == hidden || password.MatchString(w)
	})
}

// hidden replaces the value of a header field with credentials.
const hidden = "…"

// Hushed returns words without passwords of URLs and without credentials in header fields. Commands
// that are stored or shown go through it.
func Hushed(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		if m := field.FindStringSubmatch(w); m != nil && !named.MatchString(m[2]) {
			w = m[1] + hidden
		}
		out[i] = Hush(w)
	}
	return out
}
