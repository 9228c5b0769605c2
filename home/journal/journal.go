// Package journal is a file of what a process has accepted and not yet stored, so that a process
// that is killed can read it again.
//
//	Open   ─► all records of an earlier process, up to an incomplete end
//	Append ─► write(2), before the sender gets its answer
//	Renew  ─► a new file that begins with the present state, and replaces the old one
//
// A written record survives the end of the process in any way. It survives a failure of the machine
// from the next Sync on.
//
// Non-goals: it does not interpret records, and has one writer process.
package journal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"prony.example/internal/base/files"
)

const (
	headBytes = 8 // length and CRC-32C of what follows
	maxRecord = 256 << 20
	maxReused = 1 << 20 // of a buffer that is kept for the next record
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errNone = errors.New("the journal has no file yet")

// Journal is an open file of records. It is safe for concurrent use.
type Journal struct {
	name string

	mu     sync.Mutex
	file   *os.File // nil: not yet renewed
	size   int64    // of complete records
	broken error    // why no record is accepted until Renew
	buffer []byte
}

// Open calls each with the records of an earlier process, and appends to its file. It cuts off an
// incomplete or damaged end, and returns its length. Without a file it returns a journal that Renew
// must begin.
func Open(name string, each func(kind byte, data []byte) error) (j *Journal, cut int64,
	err error) {
	j = &Journal{name: name}
	j.file, err = os.OpenFile(name, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		j.broken = errNone
		return j, 0, nil
	} else if err != nil {
		return nil, 0, fmt.Errorf("open the journal: %w", err)
	}
	info, err := j.file.Stat()
	if err == nil {
		j.size, err = read(j.file, info.Size(), each)
	}
	if err == nil {
		err = j.file.Truncate(j.size)
	}
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("read the journal %s: %w", name, err),
			j.file.Close())
	}
	return j, info.Size() - j.size, nil
}

// Append writes a record. After an error, such as of a full disk, the record is not in the file,
// and the next one may succeed.
func (j *Journal) Append(kind byte, data []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken != nil {
		return fmt.Errorf("write the journal %s: %w", j.name, j.broken)
	}
	j.buffer = encode(j.buffer[:0], kind, data)
	_, err := j.file.WriteAt(j.buffer, j.size)
	if err != nil {
		_ = j.file.Truncate(j.size) // otherwise the next record overwrites the incomplete one
		var at *fs.PathError
		if errors.As(err, &at) { // with the name that the file had in Renew
			err = at.Err
		}
		return fmt.Errorf("write the journal %s: %w", j.name, err)
	}
	j.size += int64(len(j.buffer))
	if cap(j.buffer) > maxReused {
		j.buffer = nil
	}
	return nil
}

func encode(out []byte, kind byte, data []byte) []byte {
	out = binary.LittleEndian.AppendUint32(out, uint32(len(data)+1))
	sum := crc32.Update(crc32.Checksum([]byte{kind}, castagnoli), castagnoli, data)
	out = binary.LittleEndian.AppendUint32(out, sum)
	return append(append(out, kind), data...)
}

// Size returns the bytes of the file, and why it accepts no record until Renew.
func (j *Journal) Size() (int64, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.size, j.broken
}

// Sync has the device write everything that was appended before.
func (j *Journal) Sync() error {
	j.mu.Lock()
	file := j.file
	j.mu.Unlock()
	if file == nil {
		return nil
	}
	err := file.Sync()
	j.mu.Lock()
	defer j.mu.Unlock()
	if err == nil || j.file != file { // Renew has replaced it, with a sync of its own
		return nil
	}
	j.broken = err // the kernel may have dropped written pages
	return fmt.Errorf("sync the journal: %w", err)
}

// Renew replaces the file by one that state fills. No record must be appended meanwhile. After an
// error the old file is in use as before.
func (j *Journal) Renew(state func(put func(kind byte, data []byte) error) error) error {
	file, err := os.OpenFile(j.name+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return fmt.Errorf("begin a new journal: %w", err)
	}
	w := &counting{w: bufio.NewWriterSize(file, 1<<20)}
	err = state(func(kind byte, data []byte) error {
		j.buffer = encode(j.buffer[:0], kind, data)
		_, err := w.Write(j.buffer)
		return err
	})
	if err == nil {
		err = w.w.Flush()
	}
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = os.Rename(file.Name(), j.name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("begin a new journal: %w", err), file.Close(),
			os.Remove(file.Name()))
	}
	j.mu.Lock()
	old := j.file
	j.file, j.size, j.broken = file, w.n, nil
	j.mu.Unlock()
	if old != nil {
		_ = old.Close() // nothing reads it any more
	}
	return files.SyncFolder(filepath.Dir(j.name))
}

type counting struct {
	w *bufio.Writer
	n int64
}

func (c *counting) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// Close closes the file, and removes it if everything in it is stored.
func (j *Journal) Close(stored bool) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file, j.broken = nil, fs.ErrClosed
	if stored {
		err = errors.Join(err, os.Remove(j.name))
	}
	return err
}

// read returns the length of all complete records.
func read(file io.Reader, size int64, each func(kind byte, data []byte) error) (int64, error) {
	in, done := bufio.NewReaderSize(file, 1<<20), int64(0)
	for done < size {
		record, err := next(in, size-done-headBytes)
		if errors.Is(err, errTorn) {
			return done, nil
		} else if err != nil {
			return 0, err
		}
		done += headBytes + int64(len(record))
		if err := each(record[0], record[1:]); err != nil {
			return 0, err
		}
	}
	return done, nil
}

var errTorn = errors.New("the record is incomplete")

// next reads a record of at most so many bytes.
func next(in io.Reader, most int64) ([]byte, error) {
	var head [headBytes]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, torn(err)
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n == 0 || int64(n) > min(most, maxRecord) {
		return nil, errTorn
	}
	record := make([]byte, n)
	if _, err := io.ReadFull(in, record); err != nil {
		return nil, torn(err)
	}
	if crc32.Checksum(record, castagnoli) != binary.LittleEndian.Uint32(head[4:]) {
		return nil, errTorn
	}
	return record, nil
}

func torn(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errTorn
	}
	return err
}
