package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"

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
func connect(ctx context.Context, path string) (*client.Client, error) {
	if err := knock(ctx, path); err != nil {
		return nil, fmt.Errorf("reach the Docker engine: %w", explained(err))
	}
	// The environment is left alone: socketOf has read what there is to it, and a version that is
	// set there would be taken on trust.
	engine, err := client.New(client.WithHost("unix://" + path))
	if err != nil {
		return nil, fmt.Errorf("reach the Docker engine at %s: %w", path, err)
	}
	_, err = engine.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true})
	if errdefs.IsInvalidArgument(err) {
		err = fmt.Errorf("%w; Docker 19.03 or newer is needed", err)
	}
	if err != nil {
		err = fmt.Errorf("reach the Docker engine at %s: %w", path, explained(err))
		return nil, errors.Join(err, engine.Close())
	}
	return engine, nil
}

// knock only opens the socket: the client's errors do not tell an absent engine from a stopped one.
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
	case errors.Is(err, syscall.EACCES), client.IsErrConnectionFailed(err) &&
		strings.Contains(err.Error(), "permission denied"):
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
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		client.IsErrConnectionFailed(err)
}

// usable says what keeps this launcher from using an engine.
func usable(info system.Info) error {
	if info.OSType != "linux" {
		return fmt.Errorf("use the Docker engine: it runs containers of %s, only those of Linux "+
			"can be watched", info.OSType)
	}
	if slices.ContainsFunc(info.SecurityOptions, func(s string) bool {
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
func removeContainer(ctx context.Context, engine *client.Client, id string) error {
	gone := engine.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: "removed"})
	shell.Run("docker", "rm", "--force", "--volumes", id)
	_, err := engine.ContainerRemove(ctx, id, client.ContainerRemoveOptions{
		Force: true, RemoveVolumes: true})
	if errdefs.IsConflict(err) {
		select {
		case <-gone.Result:
			return nil
		case waited := <-gone.Error:
			err = errors.Join(err, waited)
		}
	}
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("remove container %s: %w", id, explained(err))
	}
	return nil
}

// removeNetwork removes a network that has no containers any more.
func removeNetwork(ctx context.Context, engine *client.Client, name string) error {
	shell.Run("docker", "network", "rm", name)
	_, err := engine.NetworkRemove(ctx, name, client.NetworkRemoveOptions{})
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("remove network %s: %w", name, explained(err))
	}
	return nil
}

// removeVolume removes a volume of a Compose file, which no container has any more.
func removeVolume(ctx context.Context, engine *client.Client, name string) error {
	shell.Run("docker", "volume", "rm", name)
	_, err := engine.VolumeRemove(ctx, name, client.VolumeRemoveOptions{})
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("remove volume %s: %w", name, explained(err))
	}
	return nil
}
