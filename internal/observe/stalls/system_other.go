//go:build !linux || portable

package stalls

import "errors"

func openClocks([]int, int64) (clocks, error) {
	return clocks{}, errors.New("stalls are recorded on Linux only")
}

// Interrupter interrupts cores on Linux.
type Interrupter struct{}

// OpenInterrupter returns an error.
func OpenInterrupter([]int) (*Interrupter, error) {
	return nil, errors.New("cores are interrupted on Linux only")
}

// Interrupt does nothing.
func (i *Interrupter) Interrupt() {}

// Close does nothing.
func (i *Interrupter) Close() error { return nil }

func openNames(*identities) namer { return nil }

func stealSource() func() map[int]int64 { return nil }

func onCore(_ int, do func()) error {
	do()
	return nil
}
