//go:build !linux || portable

package stalls

import "errors"

// ways are none: recording stalls is for Linux.
func ways() []Way { return []Way{newWay(PerfEvent)} }

func openRecorder(Way, int, int) (recorder, error) {
	return nil, errors.New("stalls are recorded on Linux only")
}

func openNames(Way, *identities) namer { return nil }

func stealSource() func() map[int]int64 { return nil }

func onCore(_ int, do func()) error {
	do()
	return nil
}
