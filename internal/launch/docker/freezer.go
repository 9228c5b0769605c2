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

// Freezer implements launch.Freezable: the container's group in the tree of the freezer of version
// 1, or that of its system. Of version 2, each group can be frozen.
func (p *proc) Freezer() launch.Group { return freezerOf(p.freezer, p.pod) }

// Freezer is that of the system.
func (p *stack) Freezer() launch.Group { return freezerOf(p.freezer, p.pod) }

// freezerOf is the group of a container, or of the system whose group is the one above.
func freezerOf(g launch.Group, system *pod) launch.Group {
	if above := filepath.Dir(g.Dir); system != nil && filepath.Base(above) == system.name {
		g.Dir = above
	}
	return g
}

// Pauser implements launch.Pausable: users who may talk to the engine need not be root.
func (p *proc) Pauser() func(paused bool) error {
	return func(paused bool) error { return p.l.engine.pause(p.id, paused) }
}

// Pauser pauses all containers.
func (p *stack) Pauser() func(paused bool) error {
	return func(paused bool) error {
		var errs []error
		for _, c := range p.all {
			errs = append(errs, p.l.engine.pause(c.ID, paused))
		}
		return errors.Join(errs...)
	}
}

// pause pauses a container or lets it run on. One that is so already stays so.
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
