package file

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"sync"
)

// tailBytes is how much of the end of a log Tail looks at.
const tailBytes = 64 << 10

// Tail returns up to n last lines of a log, of at most its last 64 KiB; none where there is no log.
func Tail(name string, n int) []string {
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > tailBytes {
		if _, err := f.Seek(-tailBytes, io.SeekEnd); err != nil {
			return nil
		}
	}
	var lines []string
	scan := bufio.NewScanner(f)
	scan.Buffer(nil, tailBytes)
	for scan.Scan() {
		lines = append(lines, scan.Text())
	}
	return lines[max(0, len(lines)-n):]
}

// endBytes is how much of it End keeps.
const endBytes = 4 << 10

// End keeps the end of what is written to it. It may be read at any time.
type End struct {
	mu   sync.Mutex
	kept []byte
}

// Write implements io.Writer.
func (e *End) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := append(e.kept, b...)
	e.kept = bytes.Clone(all[max(0, len(all)-endBytes):])
	return len(b), nil
}

// String is what is kept, without blanks around it.
func (e *End) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return string(bytes.TrimSpace(e.kept))
}
