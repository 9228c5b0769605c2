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

// LogHead and LogTail limit the output of a target that is kept: the beginning shows how it was
// started, the end how it ended. A healthy service logs far less than this in an hour.
const (
	LogHead = 8 << 20 // bytes
	LogTail = 8 << 20 // bytes
	// logSpare is the size that must accumulate between both before it is freed, so that not each
	// line costs a system call.
	logSpare = 1 << 20
	// logTurn is the interval between checks. A disk takes a few hundred MB in this time at most.
	logTurn = 100 * time.Millisecond
)

// punch is fallocate(2); tests replace it by one that fails as on a file system without holes.
var punch = unix.Fallocate

// Log keeps the file that a target writes within bounds. The target writes to the file itself and
// never waits. While it runs, the part between head and tail becomes a hole (fallocate(2),
// FALLOC_FL_PUNCH_HOLE), which moves no data; after its end a line replaces the hole. On file
// systems without holes the file is cut after its head.
type Log struct {
	file      *os.File
	request   chan struct{} // closed after the target has ended
	requested chan struct{}
	once      sync.Once
	freed     int64 // end of the hole
	dropped   int64 // bytes removed
	err       error
}

// KeepLog begins to watch a file, and creates it if it is missing. Close ends the watch.
func KeepLog(name string) (*Log, error) {
	// No links: a service that may write to this folder must not redirect the log of another.
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

// Writer opens the file once more, for the target. It appends.
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

// free frees the part between head and tail if it exceeds logSpare.
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
	return l.file.Truncate(LogHead) // later output is appended after it
}

// Dropped returns the bytes removed, after Close; 0 for a nil Log.
func (l *Log) Dropped() int64 {
	if l == nil {
		return 0
	}
	return l.dropped
}

// Close ends the watch and joins head and tail in the file. The target must have ended. Close may
// be called again.
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

// join writes a line after the last whole line of the head, and then the whole lines of the tail.
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
	// The copy cannot overwrite what it has yet to read, because a hole lies between.
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

// logEdge is the distance from a cut in which join looks for a line's end, in bytes.
const logEdge = 64 << 10
