package uring

import "errors"

// Options are choices that were made by experiment, each to be made otherwise: for benchmarks only.
// The zero value is what New takes; docs/decisions/0012-uring.md has what each came to.
type Options struct {
	Direct    bool // files of the ring's own, instead of descriptors
	TellSends bool // an outcome for each request that was sent, too
	Bundle    bool // one outcome for several buffers; only with Whole
	Whole     bool // a buffer for each outcome, as before 6.12
	StampOnce bool // one look at the clock for all that a turn delivers
	Relative  bool // deadlines as spans of time, as before 6.12

	Buffers    int // a power of two
	BufferSize int // bytes
	Batch      int // outcomes that are delivered in a turn

	// A wait goes on until there are Gather outcomes, or one after GatherUs. That moves latencies:
	// it is for where none are reported.
	Gather   int
	GatherUs int

	requests, outcomes uint32 // places in the queues
	rungs              []uint32
}

const (
	sqSize = 256     // requests in a turn; more go out before it
	cqMin  = 1 << 10 // outcomes that wait to be taken
	cqMax  = 1 << 16 // the kernel's limit
)

func (o *Options) fill(slots int) {
	if o.Buffers == 0 {
		o.Buffers, o.BufferSize = 8, 256<<10
	}
	if o.Batch == 0 {
		o.Batch = 32
	}
	if o.requests == 0 {
		o.requests, o.outcomes = sqSize, min(max(atLeast(2*slots), cqMin), cqMax)
	}
	if o.rungs == nil {
		o.rungs = rungs
	}
}

func (o *Options) apply(e *Engine) {
	if o.Bundle {
		e.recvBy |= recvBundle
	}
	if o.TellSends {
		e.sendBy = 0
	}
	if o.Direct {
		e.fileBy = sqeFixedFile
	}
	e.ring.arg.minWaitUs = uint32(o.GatherUs)
}

// noFile is given to the kernel by address, so it must not be on a stack, which may move.
var noFile = int32(-1)

// unfile takes slot i out of the ring's own files, once what names it has gone out.
func (o *Options) unfile(e *Engine, i int) {
	if err := errors.Join(e.ring.flush(), e.ring.file(i, &noFile)); err != nil {
		e.broken = err
	}
}
