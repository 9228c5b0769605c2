// Package cmdlog writes what the program does outside of itself (commands, cgroup writes,
// containers) as lines that a person can paste into a shell, and shows them to whoever asked with
// -x:
//
//	cmd := exec.Command(…); cmdlog.Command(cmd); cmd.Run()
//
// Lines are for people who look for a fault; nothing reads them back. One viewer serves the whole
// program, since the actions are spread over packages that share nothing else. Non-goals: it runs
// nothing, and it shows no password of a URL and no value of a variable whose name says that it is
// a secret.
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

// Show has every later action shown to a viewer, which must take lines from several goroutines;
// nil: nobody looks.
func Show(to func(line string)) {
	if to == nil {
		viewer.Store(nil)
		return
	}
	viewer.Store(&to)
}

// Lines prints those of several goroutines, each whole.
func Lines(to io.Writer) func(line string) {
	var turn sync.Mutex
	return func(line string) {
		turn.Lock()
		defer turn.Unlock()
		fmt.Fprintln(to, line)
	}
}

// Say shows a line that is ready to paste.
func Say(line string) {
	if to := viewer.Load(); to != nil {
		(*to)(Hush(line))
	}
}

// Watched says whether somebody looks, for lines that are work to make.
func Watched() bool { return viewer.Load() != nil }

// Run shows a command by its words.
func Run(words ...string) {
	if Watched() {
		Say(Join(words))
	}
}

// Command shows one that is about to be started: where, with which variables beside this program's
// own, and its words.
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

// Write shows a value that is written to a file of the kernel's.
func Write(path, value string) {
	if Watched() {
		Say("echo " + Quote(value) + " > " + Quote(path))
	}
}

// In puts parts that are ready to paste behind the change to a folder, if there is one.
func In(dir string, parts ...string) string {
	line := strings.Join(parts, " ")
	if dir == "" {
		return line
	}
	return "(cd " + Quote(dir) + " && " + line + ")"
}

// changes are the variables of a complete environment that this program's own has not, or has
// another value for.
func changes(env, ownNames []string) (out []string) {
	for _, pair := range env {
		if !slices.Contains(ownNames, pair) {
			out = append(out, Variable(pair))
		}
	}
	return out
}

// secret are the names of variables whose values are nobody's business.
var secret = regexp.MustCompile(`(?i)(KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|HEADERS)`)

// Secret says whether a variable's name says that its value is nobody's business.
func Secret(name string) bool { return secret.MatchString(name) }

// Variable is NAME=VALUE for a shell. The value of a secret is its name: whoever pastes the line
// has it, or has not.
func Variable(pair string) string {
	name, value, _ := strings.Cut(pair, "=")
	if Secret(name) {
		return fmt.Sprintf(`%s="$%s"`, name, name)
	}
	return name + "=" + Quote(value)
}

// plain are the words that a shell takes as they are.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./:=@%+,-]+$`)

// Quote makes one word of a text, by POSIX' rules (Shell Command Language, 2.2.2): in single
// quotes, a single quote itself between them, escaped.
func Quote(text string) string {
	if plain.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Join quotes words and puts blanks between them.
func Join(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Quote(w)
	}
	return strings.Join(quoted, " ")
}

// password is that of a URL, of what is before the last @ of its authority (RFC 3986, 3.2.1).
var password = regexp.MustCompile(`(://[^/?#\s:@]*):[^/?#\s]*@`)

// Hush takes the passwords out of the URLs of a text.
func Hush(text string) string { return password.ReplaceAllString(text, "$1:xxxxx@") }

// field is a header field on a command line that says who asks. One whose value comes from the
// environment, all but the scheme or the cookie's name, may be read by anybody.
var (
	field = regexp.MustCompile(`(?is)^((?:-[a-z]*H=?|--header=)?` +
		`(?:authorization|proxy-authorization|cookie|x-api-key)\s*:\s*)(.*)$`)
	named = regexp.MustCompile(`^([A-Za-z0-9_.-]+[ =])?\$\{[A-Z_][A-Z0-9_]*\}$`)
)

// Hushed are words without the passwords of URLs and the values of header fields that say who asks,
// for whatever keeps or shows a command.
func Hushed(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		if m := field.FindStringSubmatch(w); m != nil && !named.MatchString(m[2]) {
			w = m[1] + "…"
		}
		out[i] = Hush(w)
	}
	return out
}
