package cpuclock

import (
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Group is the processor time of all that ever ran in a control group, ended processes included.
// One reader at a time.
type Group struct {
	file   int
	prefix string // before the number, on its line
	unit   int64  // ns
	text   [1024]byte
}

// OpenGroup opens the usage of a control group: cpuacct.usage of version 1, cpu.stat of version 2,
// which every group has, whatever its controllers. The error says that the folder has neither.
func OpenGroup(dir string) (*Group, error) {
	g := &Group{unit: 1}
	path := filepath.Join(dir, "cpuacct.usage")
	fd, err := openFile(path)
	if err != nil {
		g.prefix, g.unit = "usage_usec ", int64(time.Microsecond)
		path = filepath.Join(dir, "cpu.stat")
		fd, err = openFile(path)
	}
	g.file = fd
	if err == nil && g.Read() < 0 {
		g.Close()
		err = unix.ENODATA
	}
	if err != nil {
		return nil, fmt.Errorf("open the processor time of control group %s: %w", dir, err)
	}
	return g, nil
}

// Read returns the processor time in ns; -1 once the group has gone.
func (g *Group) Read() int64 {
	ns, _, ok := number(after(read(g.file, g.text[:]), g.prefix))
	if !ok {
		return unknown
	}
	return ns * g.unit
}

// Close frees the file.
func (g *Group) Close() {
	_ = unix.Close(g.file) // opened for reading: nothing can be lost
	g.file = -1
}
