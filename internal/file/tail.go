package file

import (
	"bufio"
	"io"
	"os"
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
