package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/report/runs"
	"prony.example/record"
)

// Bounds for watchers of runs. The server queues nothing for them: each reads the file at its own
// pace, and a watcher that receives nothing is disconnected.
const (
	maxWatchers = 16
	lookEvery   = 250 * time.Millisecond // for new events
	beatEvery   = 15 * time.Second       // a line that shows that the connection is alive
	takeBound   = 10 * time.Second       // for a watcher to receive what was sent
	maxPiece    = 4 << 20                // bytes of the file that are read at once
)

// gone is the last event of a run whose process ended without an event.
const gone = "gone"

// events sends the events of a run as they come (server-sent events, WHATWG HTML 9.2), from its
// beginning or after the last event that a watcher has received: an event's id is the offset of its
// line's end in the file. If a run is over and all of it was received, the response is 204, which
// stops the browser's requests.
func (s *Server) events(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	dir, err := s.Runs.Folder(id)
	if err != nil {
		return err
	}
	select {
	case s.watchers <- struct{}{}:
		defer func() { <-s.watchers }()
	default:
		w.Header().Set("Retry-After", "5")
		return refuse(http.StatusServiceUnavailable, "%d pages already receive events of runs; "+
			"close one of them", maxWatchers)
	}
	t := &watcher{Server: s, w: w, id: id, dir: dir, out: http.NewResponseController(w)}
	t.offset, _ = strconv.ParseInt(
		r.Header.Get("Last-Event-ID"),
		10,
		64,
	) // anything else: from 0 on
	if t.offset > 0 && t.over() {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	return ignore(t.watch(r))
}

// watcher is a connection that watches a run.
type watcher struct {
	*Server
	w      http.ResponseWriter
	out    *http.ResponseController
	id     string
	dir    string
	offset int64 // bytes of the file that were sent
	end    bool  // the last event sent was the end
}

// over reports whether all events were sent and the run's process has ended.
func (t *watcher) over() bool {
	f, err := runs.OpenIn(t.dir, record.ProgressFile)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // nothing was written
	info, err := f.Stat()
	return err == nil && info.Size() == t.offset && !t.atWork()
}

// atWork reports whether the run is under way.
func (t *watcher) atWork() bool {
	lab, err := t.underWay(t.id)
	return err == nil && lab != nil
}

// watch sends events until the run ends or the watcher disconnects.
func (t *watcher) watch(r *http.Request) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	quiet := time.Duration(0)
	if err := t.send(": prony\n\n"); err != nil {
		return err
	}
	for {
		n, err := t.piece()
		if err != nil {
			return err
		}
		switch {
		case n > 0:
			quiet = 0
			continue
		case t.end && !t.atWork():
			return nil
		case quiet > 0 && quiet%(2*time.Second) == 0 && !t.atWork():
			if n, err := t.piece(); n > 0 || err != nil {
				continue // it had just written its last event
			}
			return t.send("event: " + gone + "\ndata: {\"kind\":\"" + gone + "\"}\n\n")
		}
		select {
		case <-r.Context().Done():
			return r.Context().Err()
		case <-t.closed:
			return nil
		case <-look.C:
		}
		if quiet += lookEvery; quiet%beatEvery == 0 {
			if err := t.send(": still here\n\n"); err != nil {
				return err
			}
		}
	}
}

// piece sends the complete lines that follow, and returns their number of bytes in the file. Of
// consecutive ticks it sends only the last one.
func (t *watcher) piece() (int, error) {
	f, err := runs.OpenIn(t.dir, record.ProgressFile)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil // the process has just begun
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	if !boundary(f, t.offset) {
		t.offset = 0
	}
	info, err := f.Stat()
	if err != nil || info.Size() <= t.offset {
		return 0, err
	}
	b := make([]byte, min(info.Size()-t.offset, maxPiece))
	n, err := f.ReadAt(b, t.offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	total := bytes.LastIndexByte(b[:n], '\n') + 1
	if total == 0 && n == maxPiece {
		return 0, fmt.Errorf("read %s: a line has more than %d KiB", f.Name(), maxPiece>>10)
	}
	tick := bytes.LastIndex(b[:total], []byte(`"kind":"tick"`))
	pos := 0
	var out bytes.Buffer
	for line := range bytes.Lines(b[:total]) {
		last := pos <= tick && tick < pos+len(line)
		pos += len(line)
		t.offset += int64(len(line))
		var e record.Progress
		if json.Unmarshal(line, &e) != nil || e.Kind == "" || e.Kind == record.Pulses && !last {
			continue
		}
		t.end = e.Kind == record.Ends
		name, _ := json.Marshal(e.Kind) // a JSON string has no line end
		fmt.Fprintf(&out, "id: %d\nevent: %s\ndata: %s\n\n", t.offset, bytes.Trim(name, `"`),
			bytes.TrimSpace(line))
	}
	if out.Len() == 0 {
		return total, nil
	}
	return total, t.send(out.String())
}

// boundary reports whether a line begins at an offset.
func boundary(f *os.File, offset int64) bool {
	if offset <= 0 {
		return offset == 0
	}
	last := make([]byte, 1)
	n, _ := f.ReadAt(last, offset-1) // no byte beyond the end
	return n == 1 && last[0] == '\n'
}

// send sends a text immediately, and fails if the watcher does not receive it in time.
func (t *watcher) send(text string) error {
	if err := t.out.SetWriteDeadline(clock.Wall().Add(takeBound)); err != nil {
		return err
	}
	if _, err := io.WriteString(t.w, text); err != nil {
		return err
	}
	return t.out.Flush()
}
