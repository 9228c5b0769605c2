package docker

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"

	"prony.example/internal/base/cmdlog"
	"prony.example/internal/launch"
)

var (
	_ launch.Freezable = (*proc)(nil)
	_ launch.Pausable  = (*proc)(nil)
	_ launch.Freezable = (*stack)(nil)
	_ launch.Pausable  = (*stack)(nil)
)

// Freezer implements launch.Freezable. It returns the group of the container, or of its system, in
// the tree of version 1's freezer. In version 2 every group can be frozen.
func (p *proc) Freezer() launch.Group { return freezerOf(p.freezer, p.pod) }

// Freezer implements launch.Freezable. It returns the group of all containers.
func (p *stack) Freezer() launch.Group { return freezerOf(p.freezer, p.pod) }

// freezerOf returns a container's group, or the parent group if that is the system's.
func freezerOf(g launch.Group, system *pod) launch.Group {
	if above := filepath.Dir(g.Dir); system != nil && filepath.Base(above) == system.name {
		g.Dir = above
	}
	return g
}

// Pauser implements launch.Pausable: access to the engine does not need root.
func (p *proc) Pauser() func(paused bool) error {
	return func(paused bool) error { return p.l.engine.pause(p.id, paused) }
}

// Pauser implements launch.Pausable. It pauses all containers.
func (p *stack) Pauser() func(paused bool) error {
	return func(paused bool) error {
		var errs []error
		for _, c := range p.all {
			errs = append(errs, p.l.engine.pause(c.ID, paused))
		}
		return errors.Join(errs...)
	}
}

// pause pauses a container or resumes it. It succeeds if the container is in this state already.
func (a *api) pause(id string, paused bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), callBound)
	defer cancel()
	word := "unpause"
	if paused {
		word = "pause"
	}
	cmdlog.Run("docker", word, id)
	err := a.post(ctx, "/containers/"+id+"/"+word, nil)
	if refused(err, http.StatusConflict) {
		return nil
	}
	return err
}
