//go:build !linux || portable

package load

// Engines are the names of those that can be asked for.
var Engines = []string{Auto}

// hasRaw says that there are no engines of system calls here.
const hasRaw = false

// useRaw has HTTP/1.1 in the clear spoken by the engine that works on every system.
func (c Choice) useRaw(s *Spec) error {
	usePlainStack(s)
	s.Describe.Reason = "the faster engines need Linux" + unwatched
	return nil
}

// unwatched is what is not known of a generator here, for whoever reads of its engine.
const unwatched = "; on this system no thread is pinned, and how long one waited for a " +
	"processor is not known"
