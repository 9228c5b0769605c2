package profile

import (
	"strings"
	"unicode"

	"prony/internal/pattern"
)

// hidden and numbered are the parts of names that differ from one start of a JVM to the next, so
// that the same function would be two: addresses and counters of hidden and of generated classes.
var (
	hidden   = pattern.New(`[./+]0x[0-9a-f]+`)
	numbered = pattern.New(`(\$\$Lambda|LambdaForm\$D?MH|GeneratedMethodAccessor|` +
		`GeneratedConstructorAccessor|GeneratedSerializationConstructorAccessor|\$Proxy)` +
		`[$./]?[0-9]+`)
)

// Clean makes one name of those that a function has in different processes. It changes no name that
// is clean.
func Clean(name string) string {
	name = hidden.ReplaceAllString(strings.TrimSpace(name), "")
	return numbered.ReplaceAllString(name, "$1")
}

// VirtualThread is the frame that stands for all those by which a carrier thread comes to run a
// virtual thread: the same dozen in every stack, and none of them the program's.
const VirtualThread = "(virtual thread)"

// mountedAt is the method that every virtual thread's own stack begins with.
const mountedAt = "java.lang.VirtualThread.run"

// mounted leaves the carrier out of a virtual thread's stack.
func mounted(frames []string) []string {
	for i, f := range frames {
		if f == mountedAt {
			return append([]string{VirtualThread}, frames[i+1:]...)
		}
	}
	return frames
}

// Short is a name without its packages: "DispatcherServlet.doDispatch", "http.(*conn).serve". What
// is in brackets is left as it is.
func Short(name string) string {
	head, tail := name, ""
	if i := strings.IndexAny(name, "[(< "); i >= 0 {
		head, tail = name[:i], name[i:]
	}
	if i := strings.LastIndexByte(head, '/'); i >= 0 {
		return head[i+1:] + tail
	}
	// Java: two packages at least, all in lower case, then a class.
	parts := strings.Split(head, ".")
	for i, part := range parts {
		if part == "" {
			break
		}
		if unicode.IsUpper([]rune(part)[0]) {
			if i < 2 {
				break
			}
			return strings.Join(parts[i:], ".") + tail
		}
	}
	return name
}
