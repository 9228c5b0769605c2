//go:build linux && !portable

package stalls

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
)

// perfClock is the kernel's software event cpu-clock on one core: a timer whose interrupt records
// the time and the interrupted process (perf_event_open(2)). It ticks on time whatever that
// process's priority, and without a context switch.
type perfClock struct {
	*ring
	offset int64 // CLOCK_MONOTONIC minus clock.Mono
	missed int
}

// tickBytes is the length of a tick in the ring: head, process and thread, time.
const tickBytes = 24

func openPerf(core int, period int64, room int) (*perfClock, error) {
	offset, err := clock.Kernel()
	if err != nil {
		return nil, err
	}
	r, err := openRing(core, room*tickBytes, unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK,
		Sample: uint64(period), Sample_type: unix.PERF_SAMPLE_TID | unix.PERF_SAMPLE_TIME,
		Bits: unix.PerfBitDisabled | unix.PerfBitUseClockID, Clockid: unix.CLOCK_MONOTONIC,
	})
	if err != nil {
		return nil, fmt.Errorf("open a clock: %w", err)
	}
	return &perfClock{ring: r, offset: offset}, nil
}

func (p *perfClock) begin() error { return p.control("start", unix.PERF_EVENT_IOC_ENABLE) }
func (p *perfClock) end() error   { return p.control("stop", unix.PERF_EVENT_IOC_DISABLE) }

// control returns when the core has started or stopped.
func (p *perfClock) control(verb string, request uint) error {
	if err := unix.IoctlSetInt(p.fd, request, 0); err != nil {
		return fmt.Errorf("%s a clock: %w", verb, err)
	}
	return nil
}

func (p *perfClock) lost() int { return p.missed }

func (p *perfClock) drain(add func(tick)) {
	gap := false
	fullNs := p.records(func(kind uint32, b []byte) {
		switch {
		case kind == unix.PERF_RECORD_SAMPLE && len(b) >= tickBytes:
			add(tick{int64(order.Uint64(b[16:])) - p.offset, int32(order.Uint32(b[8:])), gap})
			gap = false
		case kind == unix.PERF_RECORD_LOST && len(b) >= 24:
			p.missed += int(order.Uint64(b[16:]))
			gap = true
		}
	})
	if fullNs > 0 { // ticks may have been lost since, which only the next one reports
		add(tick{ns: fullNs, gap: true})
	}
}

// errIdle reports a kernel that drops ticks of idle cores, such as a guest of some hypervisors.
var errIdle = errors.New("the kernel does not record ticks of idle cores")

// errBusy reports that the core runs other processes all the time, so that it is unknown whether
// the kernel records ticks of idle cores.
var errBusy = errors.New("the core was never idle for 20 ms, so it is unknown whether the kernel " +
	"records its ticks when idle")

// idleTicks caches the verdict on this kernel, which applies to all cores.
var idleTicks struct {
	sync.Mutex
	decided bool
	verdict error
}

// ticksOnIdleCores returns errIdle if an idle core does not tick, and errBusy if the core is not
// idle for long enough to find out. It measures until a core has given a verdict.
func ticksOnIdleCores(core int, period int64) error {
	idleTicks.Lock()
	defer idleTicks.Unlock()
	if idleTicks.decided {
		return idleTicks.verdict
	}
	p, err := openPerf(core, period, capacity)
	if err != nil {
		return err
	}
	verdict := p.ticksWhileIdle(period)
	if err := p.close(); err != nil {
		return errors.Join(verdict, err)
	}
	idleTicks.decided = verdict == nil || errors.Is(verdict, errIdle)
	idleTicks.verdict = verdict
	return verdict
}

// ticksWhileIdle returns nil, errIdle, errBusy, or an error of the clock. It needs several tries,
// because missing ticks in a single one may be due to a stall. A core that has just become idle may
// poll for work for some time, and tick, before it halts: only tries in which it is mostly idle
// count.
func (p *perfClock) ticksWhileIdle(period int64) error {
	const tries, enough, least = 5, 3, 20 * time.Millisecond
	incomplete := 0
	for range tries {
		begin := clock.Mono()
		if err := p.begin(); err != nil {
			return err
		}
		<-time.After(least)
		if err := p.end(); err != nil {
			return err
		}
		length := clock.Mono() - begin
		idle, all := 0, int64(0)
		p.drain(func(t tick) {
			all++
			if t.pid == 0 {
				idle++
			}
		})
		switch missing := length/period - all; {
		case missing > 1:
			incomplete++
		case 2*int64(idle) > all:
			return nil
		}
		if incomplete == enough {
			return errIdle
		}
	}
	return errBusy
}

// births reports the names of programs that start on any core. Most processes of a build end before
// their names can be looked up.
type births struct {
	rings []*ring
	known *identities
}

// birthBytes is the size of a ring, for about a thousand starts of programs and renamed threads.
const birthBytes = 64 << 10

// openBirths observes as many cores as this user may. On other cores, ended processes have no
// names.
func openBirths(known *identities) *births {
	b := &births{known: known}
	for core := 0; ; core++ {
		_, err := os.Stat(fmt.Sprintf("/sys/devices/system/cpu/cpu%d", core))
		if err != nil {
			return b
		}
		r, err := openRing(core, birthBytes, unix.PerfEventAttr{
			Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_DUMMY,
			Bits: unix.PerfBitComm,
		})
		if err == nil { // otherwise the core is offline or not permitted
			b.rings = append(b.rings, r)
		}
	}
}

func (b *births) drain() {
	for _, r := range b.rings {
		r.records(b.record)
	}
}

func (b *births) record(kind uint32, record []byte) {
	if kind != unix.PERF_RECORD_COMM || len(record) < 24 {
		return
	}
	pid, thread := order.Uint32(record[8:]), order.Uint32(record[12:])
	if pid == thread {
		name, _, _ := bytes.Cut(record[16:], []byte{0})
		b.known.started(int(pid), string(name))
	}
}

func (b *births) close() error {
	var errs []error
	for _, r := range b.rings {
		errs = append(errs, r.close())
	}
	return errors.Join(errs...)
}
