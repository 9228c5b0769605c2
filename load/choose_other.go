//go:build !linux || portable

package load

// Engines are the names that Choice.Engine accepts on this system.
var Engines = []string{Auto}

// hasRaw reports whether this system has engines that use system calls directly.
const hasRaw = false

// useRaw selects Go's network stack for cleartext HTTP/1.1, which works on every system.
func (c Choice) useRaw(s *Spec) error {
	usePlainStack(s)
	s.Describe.Reason = "the faster engines need Linux" + unwatched
	return nil
}

// unwatched describes what a generator cannot measure on this system, for the engine's reason.
const unwatched = "; on this system no thread is pinned, and how long one waited for a " +
	"processor is not known"
