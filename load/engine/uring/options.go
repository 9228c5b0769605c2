package uring

import "errors"

// Options override design choices, for benchmarks only. The zero value is what New uses;
// docs/decisions/0012-uring.md has the results of experiments.
type Options struct {
	Direct    bool // the ring's own files instead of descriptors
	TellSends bool // an outcome also for each sent request
	Bundle    bool // one outcome for several buffers; only with Whole
	Whole     bool // one buffer per outcome, as before 6.12
	StampOnce bool // one clock reading for all that a turn delivers
	Relative  bool // relative deadlines, as before 6.12

	Buffers    int // a power of two
	BufferSize int // bytes
	Batch      int // maximum number of outcomes delivered per turn

	// A wait lasts until there are Gather outcomes, or one after GatherUs microseconds. This delays
	// responses, so use it only if latencies are not reported.
	Gather   int
	GatherUs int

	requests, outcomes uint32 // sizes of the queues
	rungs              []uint32
}

const (
	sqSize = 256     // requests per turn; further ones are submitted earlier
	cqMin  = 1 << 10 // outcomes that can wait to be taken
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

// noFile is passed to the kernel by address, so it must not be on a stack, which may move.
var noFile = int32(-1)

// unfile removes slot i from the ring's own files, after requests that name it were submitted.
func (o *Options) unfile(e *Engine, i int) {
	if err := errors.Join(e.ring.flush(), e.ring.file(i, &noFile)); err != nil {
		e.broken = err
	}
}
