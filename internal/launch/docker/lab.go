package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/moby/moby/api/types/container"

	"prony.example/internal/launch/cgroup"
	"prony.example/internal/launch/guard"
)

// Labels of what a lab makes. They tell whose it is, so that nobody removes another's.
const (
	labelLab       = "prony.lab"   // PID-BIRTH-COUNT
	labelBoot      = "prony.boot"  // of the kernel; the next one gives all numbers anew
	labelNamespace = "prony.pidns" // in which the number is one
	labelGroup     = "prony.group" // name of the control group that the lab made for a system
)

// lab is one launcher of one process of this program, told from any other that ever had its number.
type lab struct {
	ID        string `json:"id"` // PID-BIRTH-COUNT
	Boot      string `json:"boot"`
	Namespace string `json:"namespace"`
}

func thisLab() (lab, error) {
	ownWhose, err := cgroup.Own()
	return lab{ID: fmt.Sprintf("%s-%d", ownWhose.Process, count.Add(1)), Boot: ownWhose.Boot,
		Namespace: ownWhose.Namespace}, err
}

func (l lab) labels() map[string]string {
	return map[string]string{labelLab: l.ID, labelBoot: l.Boot, labelNamespace: l.Namespace}
}

// owns says whether this launcher made what has these labels.
func (l lab) owns(labels map[string]string) bool {
	return labels[labelLab] == l.ID && labels[labelBoot] == l.Boot &&
		labels[labelNamespace] == l.Namespace
}

// outlived says whether the lab that made what has these labels is gone. Of one in another PID
// namespace, as in a container, nobody here can tell, so that it is left alone.
func (l lab) outlived(labels map[string]string) bool {
	if labels[labelBoot] != l.Boot {
		return true
	}
	if labels[labelNamespace] != l.Namespace {
		return false
	}
	id := labels[labelLab]
	last := strings.LastIndexByte(id, '-') // before the count
	return last > 0 && cgroup.Gone(id[:last])
}

// named is a network or a volume, in a list of the engine's.
type named struct {
	Name   string
	Labels map[string]string
}

// sweep removes the containers, networks, volumes and control groups whose labels are of those to
// remove, and says which.
func sweep(ctx context.Context, engine *api, value func(labels map[string]string) bool) (
	removed []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callBound)
	defer cancel()
	var (
		ours       = labelled(labelLab)
		containers []container.Summary
		networks   []named
		volumes    struct{ Volumes []named }
	)
	if err := engine.get(ctx, "/containers/json", ours, &containers); err != nil {
		return nil, fmt.Errorf("list containers: %w", explained(err))
	}
	var errs []error
	groups := map[string]bool{}
	for _, c := range containers {
		if !value(c.Labels) {
			continue
		}
		if g := c.Labels[labelGroup]; g != "" {
			groups[g] = true
		}
		errs = append(errs, removeContainer(ctx, engine, c.ID))
		removed = append(removed, said("container", strings.Join(c.Names, " "), c.Labels))
	}
	for name := range groups {
		errs = append(errs, removePod(name))
	}
	for _, kind := range []struct {
		name   string
		answer any
		match  *[]named
	}{{"network", &networks, &networks}, {"volume", &volumes, &volumes.Volumes}} {
		if err := engine.get(ctx, "/"+kind.name+"s", ours, kind.answer); err != nil {
			errs = append(errs, fmt.Errorf("list %ss: %w", kind.name, explained(err)))
		}
		for _, x := range *kind.match {
			if value(x.Labels) {
				errs = append(errs, remove(ctx, engine, kind.name, x.Name))
				removed = append(removed, said(kind.name, x.Name, x.Labels))
			}
		}
	}
	return removed, errors.Join(errs...)
}

func said(subject, name string, labels map[string]string) string {
	return fmt.Sprintf("%s %s of lab %s", subject, filepath.Base(name), labels[labelLab])
}

// watch is what a guard must know.
type watch struct {
	Socket string `json:"socket"`
	Lab    lab    `json:"lab"`
	Dir    string `json:"dir"`
}

var post = guard.Post{Env: "PRONY_DOCKER_GUARD", Clear: clearUp}

// Guard must be called first in main of every program that uses this package, and in TestMain:
// guard.Post.Stand of what removes the containers and networks that a lab has left.
func Guard() { post.Stand() }

// clearUp removes what the lab has left and notes what could not be removed.
func clearUp(orders []byte) error {
	var w watch
	if err := json.Unmarshal(orders, &w); err != nil {
		return fmt.Errorf("read watch: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), callBound)
	defer cancel()
	engine, err := connect(ctx, w.Socket)
	var removed []string
	if err == nil {
		removed, err = sweep(ctx, engine, w.Lab.owns)
		engine.Close()
	}
	return guard.Note(w.Dir, "docker-guard.log", w.Lab.ID, removed, err)
}
