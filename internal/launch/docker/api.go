package docker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/moby/moby/api/types/container"

	"prony.example/internal/base/cmdlog"
)

// Versions of the engine's API. All calls exist in the least version, and the types are those of
// the known one. An engine accepts all versions between its own least and its last.
const (
	leastMinor = 40 // of 1.40: Docker 19.03
	knownMinor = 56
)

const (
	answerBound = 64 << 20 // bytes
	saidBound   = 64 << 10 // bytes of an error
	idleBound   = 30 * time.Second
)

// api calls one engine through its socket (https://docs.docker.com/reference/api/engine), with the
// engine's own types.
type api struct {
	http    http.Client
	version string // prefix of paths, after agree
}

// refusal is an error status of the engine with its message.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return cmp.Or(r.text, http.StatusText(r.status)) }

// refused reports whether err is a refusal with this status.
func refused(err error, status int) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.status == status
}

func newAPI(path string) *api {
	return &api{http: http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		},
		DisableCompression: true, IdleConnTimeout: idleBound}}}
}

// Close closes idle connections.
func (a *api) Close() { a.http.CloseIdleConnections() }

// agree chooses the version of the API: the engine's last, but not above the known one.
func (a *api) agree(ctx context.Context) error {
	res, err := a.ask(ctx, http.MethodGet, "/_ping", nil, nil, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	theirs := res.Header.Get("Api-Version")
	text, ok := strings.CutPrefix(theirs, "1.")
	minor, err := strconv.Atoi(text)
	if !ok || err != nil || minor < leastMinor {
		return fmt.Errorf("the engine has version %q of the API, but Prony needs 1.%d; install "+
			"Docker 19.03 or newer", theirs, leastMinor)
	}
	a.version = fmt.Sprintf("/v1.%d", min(minor, knownMinor))
	return nil
}

// call sends a request and decodes the answer into into, unless that is nil.
func (a *api) call(ctx context.Context, method, path string, query url.Values, body,
	into any) error {
	res, err := a.ask(ctx, method, path, query, body, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if into == nil {
		return nil
	}
	return json.NewDecoder(io.LimitReader(res.Body, answerBound)).Decode(into)
}

// get is a call of method GET.
func (a *api) get(ctx context.Context, path string, query url.Values, into any) error {
	return a.call(ctx, http.MethodGet, path, query, nil, into)
}

// post is a call of method POST without a body, whose answer has no content.
func (a *api) post(ctx context.Context, path string, query url.Values) error {
	return a.call(ctx, http.MethodPost, path, query, nil, nil)
}

// remove deletes the object at the path. It succeeds if the object does not exist.
func (a *api) remove(ctx context.Context, path string, query url.Values) error {
	err := a.call(ctx, http.MethodDelete, path, query, nil, nil)
	if refused(err, http.StatusNotFound) {
		return nil
	}
	return err
}

// ask sends one request. It returns only successful answers; the caller closes the body.
func (a *api) ask(ctx context.Context, method, path string, query url.Values, body any,
	head http.Header) (*http.Response, error) {
	// The host's name is not used: the client dials the socket.
	to := url.URL{Scheme: "http", Host: "docker", Path: a.version + path, RawQuery: query.Encode()}
	var text io.Reader // nil: no body
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		text, head = bytes.NewReader(b), http.Header{"Content-Type": {"application/json"}}
	}
	req, err := http.NewRequestWithContext(ctx, method, to.String(), text)
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, head)
	res, err := a.http.Do(req)
	if wrong, ok := errors.AsType[*url.Error](err); ok {
		return nil, wrong.Err // without the address, which means nothing here
	}
	if err != nil {
		return nil, err
	}
	if res.StatusCode < http.StatusBadRequest {
		return res, nil
	}
	defer res.Body.Close()
	why, err := io.ReadAll(io.LimitReader(res.Body, saidBound))
	if err != nil {
		return nil, err
	}
	var reply struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(why, &reply) != nil {
		reply.Message = strings.TrimSpace(string(why))
	}
	return nil, &refusal{res.StatusCode, reply.Message}
}

// attach opens the output streams of a container, in the engine's frames. They end with the
// container or when they are closed.
func (a *api) attach(ctx context.Context, id string) (io.ReadCloser, error) {
	res, err := a.ask(ctx, http.MethodPost, "/containers/"+id+"/attach",
		url.Values{"stream": {"1"}, "stdout": {"1"}, "stderr": {"1"}}, nil,
		http.Header{"Connection": {"Upgrade"}, "Upgrade": {"tcp"}})
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusSwitchingProtocols {
		return nil, errors.Join(fmt.Errorf("the engine responded with %s",
			res.Status), res.Body.Close())
	}
	return res.Body, nil
}

// ended describes how a container ended, or in err why this is unknown.
type ended struct {
	container.WaitResponse
	err error
}

// wait returns a channel that receives once when the container meets the condition. The engine has
// accepted the request when wait returns.
func (a *api) wait(
	ctx context.Context,
	id string,
	waitCondition container.WaitCondition,
) <-chan ended {
	reported := make(chan ended, 1)
	res, err := a.ask(ctx, http.MethodPost, "/containers/"+id+"/wait",
		url.Values{"condition": {string(waitCondition)}}, nil, nil)
	if err != nil {
		reported <- ended{err: err}
		return reported
	}
	go func() {
		defer res.Body.Close()
		var e ended
		e.err = json.NewDecoder(io.LimitReader(res.Body, answerBound)).Decode(&e.WaitResponse)
		reported <- e
	}()
	return reported
}

// inspect returns the state of a container, by its name or ID.
func (a *api) inspect(ctx context.Context, id string) (got container.InspectResponse, err error) {
	err = a.get(ctx, "/containers/"+id+"/json", nil, &got)
	return got, err
}

// labelled returns the query for all objects with a label, running or not.
func labelled(label string) url.Values {
	text, err := json.Marshal(map[string][]string{"label": {label}})
	if err != nil {
		panic(err) // a label is a string
	}
	return url.Values{"all": {"1"}, "filters": {string(text)}}
}

// defaultSocket is where the engine listens by default.
const defaultSocket = "/var/run/docker.sock"

// socketOf returns the path of the engine's socket. It refuses engines on other machines: this
// program could not watch or limit their containers, and load would cross a network.
func socketOf(path, env string) (string, error) {
	if path != "" {
		return path, nil
	}
	if env == "" {
		return defaultSocket, nil
	}
	path, ok := strings.CutPrefix(env, "unix://")
	if !ok {
		return "", fmt.Errorf("find the Docker engine: DOCKER_HOST is %s, but Prony cannot "+
			"measure containers on another machine; unset DOCKER_HOST, or set it to unix://%s",
			env, defaultSocket)
	}
	return path, nil
}

// connect connects to the engine and agrees on a version of its API.
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

// knock opens and closes the socket in this thread, with its rights, before goroutines are started.
func knock(ctx context.Context, path string) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return err
	}
	return c.Close()
}

// explained adds a hint to an error of the engine or of the connection.
func explained(err error) error {
	hint := ""
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOENT):
		hint = "no engine was found: install Docker, or start it (systemctl start docker)"
	case errors.Is(err, syscall.ECONNREFUSED):
		hint = "the engine has stopped: start it (systemctl start docker)"
	case errors.Is(err, syscall.EACCES):
		hint = "this user may not use the engine: join the group docker (usermod -aG docker " +
			"USER), and log in again"
	case errors.Is(err, context.DeadlineExceeded):
		hint = "the engine does not respond: read its log (journalctl -u docker)"
	case isGone(err):
		hint = "the engine stopped during a request: start it again (systemctl start docker); " +
			"the next run of Prony removes the remaining containers"
	default:
		return err
	}
	return fmt.Errorf("%w; %s", err, hint)
}

// isGone reports whether the engine has stopped during a call.
func isGone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// info holds the fields of the engine's /info that this package needs.
type info struct {
	OSType          string
	SecurityOptions []string
	CgroupDriver    string // cgroupfs or systemd
	CgroupVersion   string // 1 or 2
}

// usable returns an error if this launcher cannot use the engine.
func usable(item info) error {
	if item.OSType != "linux" {
		return fmt.Errorf("use the Docker engine: it runs containers of %s, but Prony can "+
			"measure only Linux containers", item.OSType)
	}
	if slices.ContainsFunc(item.SecurityOptions, func(s string) bool {
		return strings.Contains(s, "name=rootless")
	}) {
		return errors.New("use the Docker engine: it is rootless, and this host cannot reach the " +
			"network of its containers; use the system's engine (unset DOCKER_HOST), or launch " +
			"plain processes")
	}
	return nil
}

// removeContainer removes a container with its volumes, running or not, by name or ID. It succeeds
// if the container does not exist, and waits if another process is removing it.
func removeContainer(ctx context.Context, engine *api, id string) error {
	gone := engine.wait(ctx, id, container.WaitConditionRemoved)
	cmdlog.Run("docker", "rm", "--force", "--volumes", id)
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

// remove removes a network, or a volume of a Compose file, that no container uses.
func remove(ctx context.Context, engine *api, kind, name string) error {
	cmdlog.Run("docker", kind, "rm", name)
	if err := engine.remove(ctx, "/"+kind+"s/"+name, nil); err != nil {
		return fmt.Errorf("remove %s %s: %w", kind, name, explained(err))
	}
	return nil
}
