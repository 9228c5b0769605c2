//go:build !linux || portable

package load

// Engines are the names that Choice.Engine accepts on this system.
var Engines = []string{Auto}

// hasEpoll reports whether this system has the engine epoll.
const hasEpoll = false

// useEpoll selects Go's network stack, because the engine epoll needs Linux.
func (c Choice) useEpoll(s *Spec) error {
	usePlainStack(s)
	s.Describe.Reason = "the engine epoll needs Linux" + unwatched
	return nil
}

// unwatched describes what a generator cannot measure on this system, for the engine's reason.
const unwatched = "; on this system no thread is pinned, and how long one waited for a " +
	"processor is not known"
