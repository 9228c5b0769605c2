//go:build !linux || portable

package stalls

import (
	"errors"
	"time"
)

// ways are none: recording stalls is for Linux.
func ways(period time.Duration) []Way { return []Way{newWay(PerfEvent, int64(period), 0)} }

func openClocks(Way, int, int) ([]*coreLog, error) {
	return nil, errors.New("stalls are recorded on Linux only")
}

func openNames(Way, *identities) namer { return nil }

func stealSource() func() map[int]int64 { return nil }

func onCore(_ int, do func()) error {
	do()
	return nil
}
