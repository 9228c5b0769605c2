package launch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of what is kept of what a target writes: the beginning, which says how it was started, and
// the end, which says how it ended. What a service logs in an hour of sound work is far less.
const (
	LogHead = 8 << 20 // bytes
	LogTail = 8 << 20 // bytes
	// logSpare is what may lie between them before the disk is asked to take it back: not for every
	// line.
	logSpare = 1 << 20
	// logTurn is how often a log is looked at. A disk takes a few hundred MB in it at the most.
	logTurn = 100 * time.Millisecond
)

// punch is fallocate(2); tests have one that a file system without holes gives.
var punch = unix.Fallocate

// Log keeps a file within its bounds that a target writes into, without a hand in the target's way:
// it writes to the file itself and waits for nobody. While it runs what lies between head and tail
// becomes a hole (fallocate(2), FALLOC_FL_PUNCH_HOLE), which moves nothing; when it has ended a
// line stands for the hole. Where the file system has no holes the file is cut behind its head.
type Log struct {
	file      *os.File
	request   chan struct{} // closed: the target has ended
	requested chan struct{}
	once      sync.Once
	freed     int64 // where the hole ends
	dropped   int64 // bytes that are no more
	err       error
}

// KeepLog begins to watch a file, which it makes where there is none. Close ends it.
func KeepLog(name string) (*Log, error) {
	// Services may write to that folder: none is to have another's lines go elsewhere.
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open its log: %w", err)
	}
	l := &Log{
		file:      file,
		request:   make(chan struct{}),
		requested: make(chan struct{}),
		freed:     LogHead,
	}
	go l.watch()
	return l, nil
}

// Writer opens the file once more, for the target.
func (l *Log) Writer() (*os.File, error) {
	f, err := os.OpenFile(l.file.Name(), os.O_WRONLY|os.O_APPEND|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("open its log: %w", err)
	}
	return f, nil
}

func (l *Log) watch() {
	defer close(l.requested)
	turn := time.NewTicker(logTurn)
	defer turn.Stop()
	for l.err == nil {
		select {
		case <-l.request:
			return
		case <-turn.C:
			l.err = l.free()
		}
	}
}

// free gives back what lies between head and tail, if it is worth it.
func (l *Log) free() error {
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() < l.freed { // the target began the file again
		l.freed = LogHead
	}
	until := info.Size() - LogTail
	if until < l.freed+logSpare {
		return nil
	}
	err = punch(int(l.file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE,
		l.freed, until-l.freed)
	if err == nil {
		l.dropped += until - l.freed
		l.freed = until
		return nil
	}
	l.dropped += info.Size() - LogHead
	return l.file.Truncate(LogHead) // what is written from now on comes behind it
}

// Dropped says how much is no more, in bytes, after Close. Nobody's log has lost nothing.
func (l *Log) Dropped() int64 {
	if l == nil {
		return 0
	}
	return l.dropped
}

// Close ends the watch. By then nobody may write any more: what is kept of the end moves behind
// what is kept of the beginning. It may be called again.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	l.once.Do(func() {
		close(l.request)
		<-l.requested
		if l.err == nil {
			l.err = l.free()
		}
		if l.err == nil && l.dropped > 0 {
			l.err = l.join()
		}
		if l.err = errors.Join(l.err, l.file.Close()); l.err != nil {
			l.err = fmt.Errorf("bound its log: %w", l.err)
		}
	})
	return l.err
}

// join puts a line between whole lines of head and tail, and the tail behind it.
func (l *Log) join() error {
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	size, head, tail := info.Size(), int64(LogHead), l.freed
	if tail == head { // there are no holes here
		_, err := l.file.WriteAt([]byte(l.gap()), size)
		return err
	}
	edge := make([]byte, logEdge)
	if _, err := l.file.ReadAt(edge, head-logEdge); err != nil {
		return err
	}
	if pos := bytes.LastIndexByte(edge, '\n'); pos >= 0 {
		head -= int64(len(edge) - pos - 1)
	}
	n, err := l.file.ReadAt(edge, tail)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if pos := bytes.IndexByte(edge[:n], '\n'); pos >= 0 {
		tail += int64(pos) + 1
	}
	l.dropped += LogHead - head + tail - l.freed
	to := io.NewOffsetWriter(l.file, head)
	if _, err := io.WriteString(to, l.gap()); err != nil {
		return err
	}
	// The tail goes to where it cannot reach what is still to be read: there is a hole between.
	if _, err = io.Copy(to, io.NewSectionReader(l.file, tail, size-tail)); err != nil {
		return err
	}
	end, err := to.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	return l.file.Truncate(end + head)
}

func (l *Log) gap() string {
	return fmt.Sprintf("... prony: %d bytes of this log are not kept, only the first %d MiB and "+
		"what came last, up to %d MiB ...\n", l.dropped, LogHead>>20, LogTail>>20)
}

// logEdge is how far from where it was cut a whole line is looked for, in bytes.
const logEdge = 64 << 10
