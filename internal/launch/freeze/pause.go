package freeze

import (
	"errors"

	"prony.example/internal/launch"
)

// pause stops the containers of a target by their engine. This takes tens of milliseconds and some
// processor time of the engine.
type pause struct {
	do     func(paused bool) error
	paused bool
	unsure bool // the last call failed, perhaps after it paused some containers
}

func newPause(p launch.Process) (*pause, error) {
	if x, ok := p.(launch.Pausable); ok {
		if do := x.Pauser(); do != nil {
			return &pause{do: do}, nil
		}
	}
	return nil, errors.New("no container engine can pause the target")
}

func (p *pause) set(paused bool) error {
	if p.paused == paused && !p.unsure {
		return nil
	}
	err := p.do(paused)
	p.paused, p.unsure = paused, err != nil
	return err
}
