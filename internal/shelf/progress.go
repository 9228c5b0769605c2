package shelf

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"prony/internal/result"
)

// Lab is the process that a run under way is of.
type Lab struct {
	PID  int    `json:"pid"`
	Born string `json:"born"` // which tells it from a later process of the same number
}

// progress is what a run's progress says of its state.
type progress struct {
	stamp Stamp
	begun result.Progress
	ended bool
}

// lab is the process that wrote it last.
func (p progress) lab() Lab { return Lab{p.begun.PID, p.begun.Born} }

// maxTail is where the last event of a run is looked for: it is no longer than that, in bytes.
const maxTail = 8 << 10

// readProgress reads of a run's progress what tells its state. The end of the file says whether the
// run has ended, as nearly all have; only of others all of it is read, for who runs them.
func readProgress(dir string) (p progress) {
	f, err := OpenIn(dir, result.ProgressFile)
	if err != nil {
		return p
	}
	defer func() { _ = f.Close() }() // nothing was written
	info, err := f.Stat()
	if err != nil {
		return p
	}
	p.stamp = StampOf(info)
	tail := make([]byte, min(info.Size(), maxTail))
	if n, err := f.ReadAt(tail, info.Size()-int64(len(tail))); err == nil || err == io.EOF {
		at := bytes.LastIndexByte(bytes.TrimSuffix(tail[:n], []byte("\n")), '\n')
		p.read(tail[at+1 : n])
	}
	if !p.ended {
		_, _ = result.ReadLines(f.Name(), f, func(line []byte) error {
			if bytes.Contains(line, []byte(result.Begins)) ||
				bytes.Contains(line, []byte(result.Ends)) {
				p.read(line)
			}
			return nil // a line that is torn, or no event, tells nothing
		})
	}
	return p
}

// read takes in an event. A run that was gone on with begins again in the same file.
func (p *progress) read(line []byte) {
	var e result.Progress
	if json.Unmarshal(line, &e) != nil {
		return
	}
	switch e.Kind {
	case result.Begins:
		p.begun, p.ended = e, false
	case result.Ends:
		p.ended = true
	}
}

var errNotRegular = errors.New("it is no regular file")
