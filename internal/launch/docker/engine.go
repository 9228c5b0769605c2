package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"

	"github.com/moby/moby/api/types/container"

	"prony/internal/shell"
)

// defaultSocket is where the engine listens unless it is told otherwise.
const defaultSocket = "/var/run/docker.sock"

// socketOf finds the engine's socket. Only a local one will do: what an engine on another machine
// starts, the lab could neither watch nor limit nor load without a network in between.
func socketOf(path, env string) (string, error) {
	if path != "" {
		return path, nil
	}
	if env == "" {
		return defaultSocket, nil
	}
	path, ok := strings.CutPrefix(env, "unix://")
	if !ok {
		return "", fmt.Errorf("find the Docker engine: DOCKER_HOST is %s, and what runs on "+
			"another machine cannot be measured from here; unset DOCKER_HOST, or set it to "+
			"unix://%s", env, defaultSocket)
	}
	return path, nil
}

// connect reaches the engine and agrees with it on a version of its API.
func connect(ctx context.Context, path string) (*api, error) {
	if err := knock(ctx, path); err != nil {
		return nil, fmt.Errorf("reach the Docker engine: %w", explained(err))
	}
	engine := newAPI(path)
	if err := engine.agree(ctx); err != nil {
		engine.Close()
		return nil, fmt.Errorf("reach the Docker engine at %s: %w", path, explained(err))
	}
	return engine, nil
}

// knock only opens the socket, by this very thread and its rights, before anything else begins.
func knock(ctx context.Context, path string) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return err
	}
	return c.Close()
}

// explained adds what to do about an error of the engine or on the way to it.
func explained(err error) error {
	hint := ""
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOENT):
		hint = "no engine is there: install Docker, or start it (systemctl start docker)"
	case errors.Is(err, syscall.ECONNREFUSED):
		hint = "the engine has stopped: start it (systemctl start docker)"
	case errors.Is(err, syscall.EACCES):
		hint = "this user may not use it: join the group docker (usermod -aG docker USER), and " +
			"log in again"
	case errors.Is(err, context.DeadlineExceeded):
		hint = "the engine does not answer: look at its log (journalctl -u docker)"
	case isGone(err):
		hint = "the engine stopped in the middle: start it again (systemctl start docker); the " +
			"next lab removes what is left"
	default:
		return err
	}
	return fmt.Errorf("%w; %s", err, hint)
}

// isGone says whether an engine that was there is not any more.
func isGone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// info is what an engine says of itself, as far as it matters here.
type info struct {
	OSType          string
	SecurityOptions []string
	CgroupDriver    string // cgroupfs or systemd
	CgroupVersion   string // 1 or 2
}

// usable says what keeps this launcher from using an engine.
func usable(of info) error {
	if of.OSType != "linux" {
		return fmt.Errorf("use the Docker engine: it runs containers of %s, only those of Linux "+
			"can be watched", of.OSType)
	}
	if slices.ContainsFunc(of.SecurityOptions, func(s string) bool {
		return strings.Contains(s, "name=rootless")
	}) {
		return errors.New("use the Docker engine: it is rootless, and its containers live in a " +
			"network that this host has no address in; use the system's engine (unset " +
			"DOCKER_HOST), or launch plain processes")
	}
	return nil
}

// removeContainer removes a container with its volumes, running or not, by name or ID. One that is
// not there is removed already; one that somebody else removes is waited for.
func removeContainer(ctx context.Context, engine *api, id string) error {
	gone := engine.wait(ctx, id, container.WaitConditionRemoved)
	shell.Run("docker", "rm", "--force", "--volumes", id)
	err := engine.remove(ctx, "/containers/"+id, url.Values{"force": {"1"}, "v": {"1"}})
	if refused(err, http.StatusConflict) {
		end := <-gone
		if end.err == nil {
			return nil
		}
		err = errors.Join(err, end.err)
	}
	if err != nil {
		return fmt.Errorf("remove container %s: %w", id, explained(err))
	}
	return nil
}

// remove removes a network, or a volume of a Compose file, which no container has any more.
func remove(ctx context.Context, engine *api, kind, name string) error {
	shell.Run("docker", kind, "rm", name)
	if err := engine.remove(ctx, "/"+kind+"s/"+name, nil); err != nil {
		return fmt.Errorf("remove %s %s: %w", kind, name, explained(err))
	}
	return nil
}
