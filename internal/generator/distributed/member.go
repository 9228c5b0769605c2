package distributed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"prony.example/internal/analysis/verdict"
	"prony.example/internal/base/clock"
	"prony.example/load"
	"prony.example/record"
)

// member is a generator from the lab's side. Its fields belong to one goroutine; sums need the
// offering's lock.
type member struct {
	*line
	generator record.Generator
	engine    load.EngineInfo
	reported  load.Told
	next      int  // interval of the window
	ended     bool // its load is over, with or without success
	sound     bool // its books were accepted
	welcomed  bool
}

// exchanges is the number of clock requests: with this many, at least one is fast on any machine.
const exchanges = 32

// exchange requests a generator's clocks.
func (m *member) exchange() (clock.Offset, error) {
	return clock.Against(exchanges, func() (mono, wall, heard int64, err error) {
		if err := m.send(ask, nil); err != nil {
			return 0, 0, 0, err
		}
		_, body, err := m.hear(replyIn, told)
		heard = clock.Mono()
		var f clockForm
		if err == nil {
			err = read(body, &f)
		}
		return f.Mono, f.Wall, heard, err
	})
}

// prepare sends the order and returns when the generator is ready.
func (m *member) prepare(o *Order, part load.Part, cores []int, patience time.Duration) error {
	if err := m.tell(order, o.form(part, cores)); err != nil {
		return fmt.Errorf("%s while it received the load", lost(err))
	}
	kind, body, err := m.hear(patience, ready, failed)
	if err != nil {
		return fmt.Errorf("%s before it was ready", lost(err))
	}
	if kind == failed {
		return m.gaveUp(body)
	}
	var f readyForm
	if err := read(body, &f); err != nil {
		return err
	}
	m.engine, m.generator.Engine = f.Engine, plain(f.Engine.Name)
	return nil
}

// set measures the generator's clock offset shortly before the start, because its uncertainty grows
// with time.
func (m *member) set() error {
	now, err := m.exchange()
	if err != nil {
		return fmt.Errorf("%s while the coordinator read its clock", lost(err))
	}
	c := &m.generator.Clock
	c.OffsetNs, c.WallNs, c.ErrorNs = now.MonoNs, now.WallNs, now.ErrorNs
	return nil
}

func (m *member) gaveUp(body []byte) error {
	var f textForm
	if err := read(body, &f); err != nil {
		return err
	}
	return errors.New(plain(f.Text))
}

// hear processes a generator's messages from the start to the end, and records errors as its fault.
func (p *offering) hear(ctx context.Context, m *member) {
	end := clock.Mono() + int64(p.longest)
	for !m.sound {
		remaining := max(time.Duration(end+p.ownPulse.stillNs()-clock.Mono()), 0)
		quiet := p.lab.Limits.Silent + max(p.untilStart(), 0)
		kind, body, err := m.hear(min(quiet, remaining), piece, ended, failed)
		switch {
		case err != nil && clock.Mono() >= end+p.ownPulse.stillNs():
			err = fmt.Errorf("was still running %v after its scheduled end,", p.lab.Limits.End)
		case err != nil:
		case kind == piece:
			err = p.take(m, body)
		case kind == failed:
			err = m.gaveUp(body)
		case kind == ended:
			err = p.close(ctx, m, body)
		}
		if err == nil {
			continue
		}
		if ctx.Err() == nil {
			p.blame(m, lost(err)+" "+sinceBeginning(clock.Mono()-p.startNs))
		}
		m.Close() //nolint:errcheck // it is gone, or no more messages matter
		return
	}
}

// sinceBeginning describes a time in words.
func sinceBeginning(ns int64) string {
	if s := float64(ns) / 1e9; s < 0 {
		return fmt.Sprintf("%.1f s before the start of the load", -s)
	}
	return fmt.Sprintf("%.1f s after the start of the load", float64(ns)/1e9)
}

// blame records and reports a generator's fault while the others continue.
func (p *offering) blame(m *member, why string) {
	p.mu.Lock()
	m.generator.Fault, m.ended = cmp.Or(m.generator.Fault, why), true
	p.mu.Unlock()
	p.lab.say(who(m.generator.Index, m.generator.Name) + " " + why + ": the load is INVALID")
}

// close processes a generator's end and its books.
func (p *offering) close(ctx context.Context, m *member, body []byte) error {
	var f endedForm
	if err := read(body, &f); err != nil {
		return err
	}
	p.mu.Lock()
	m.ended = true // no more pieces come
	m.generator.LateNs = max(f.LateNs, 0)
	p.mu.Unlock()
	now, err := m.exchange()
	if err != nil {
		return err
	}
	c := &m.generator.Clock
	c.DriftNs, c.DriftErrorNs = now.MonoNs-c.OffsetNs, now.ErrorNs
	select { // one long message at a time
	case <-ctx.Done():
		return ctx.Err()
	case p.floor <- struct{}{}:
		defer func() { <-p.floor }()
	}
	if err := m.send(word, nil); err != nil {
		return err
	}
	_, body, err = m.hear(wordIn, books)
	if err != nil {
		return err
	}
	p.mu.Lock()
	err = p.sum.Close(body, m.next, p.part(m), func(alone *load.Ledger) error {
		return p.judge(m, alone)
	})
	m.sound = err == nil
	p.mu.Unlock()
	if err != nil {
		return err
	}
	if m.generator.Fault != "" {
		p.blame(m, m.generator.Fault)
	}
	_ = m.send(thanks, nil) // all of its messages were received
	return nil
}

// judge checks a generator's part alone, before it is added.
func (p *offering) judge(m *member, alone *load.Ledger) error {
	if m.engine.Name != p.spec.Describe.Name {
		m.generator.Fault = fmt.Sprintf("sends with engine %s, but other generators use engine "+
			"%s", m.generator.Engine,
			p.spec.Describe.Name)
	}
	alone.Describe(m.engine)
	h := alone.Health()
	g := &m.generator
	g.LateNs = max(g.LateNs, alone.Late())
	g.CPUShare, g.RunDelayNs = h.Generator.CPUShare, h.Generator.RunDelayNs
	g.StallMaxNs = h.Generator.StallMaxNs
	g.MemoryBytes = max(g.MemoryBytes, h.Generator.MemoryBytes)
	if late := time.Duration(g.LateNs); late > lateMost {
		g.Fault = fmt.Sprintf("began %v late", late.Round(time.Millisecond))
		if p.tardy {
			g.Fault += ", because the coordinator stalled and sent the start time late"
		}
	}
	complete := alone.Window() == int64(p.spec.Window)
	if want := p.hash(g.Index); complete && want != alone.Hash() {
		g.Fault = "sent another schedule: its hash is " + plain(alone.Hash()) + ", but " + want +
			" was expected; its CPU may have another architecture"
	}
	g.Findings = verdict.Alone(h)
	return nil
}
