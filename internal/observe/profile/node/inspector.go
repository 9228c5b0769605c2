package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
	"prony.example/internal/observe/host"
	"prony.example/internal/observe/profile"
)

const (
	firstPort    = 9229 // where SIGUSR1 opens the inspector (nodejs.org/api/debugger)
	portsPerNode = 64   // a cluster's processes use the ports after the first
	answerBytes  = 256 << 20
	openPoll     = 10 * time.Millisecond
)

// isNode returns an error unless a process is Node.
func isNode(pid int) error {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return err
	}
	if !slices.Contains([]string{"node", "nodejs"}, filepath.Base(exe)) {
		return fmt.Errorf("process %d runs %s, not node", pid, filepath.Base(exe))
	}
	return nil
}

// inspector is a connection to the inspector of one process.
type inspector struct {
	conn    *websocket.Conn
	version string // "v8 of node.js/v20.20.2"
	last    int
}

// connect finds the inspector of a process among its listening ports. If it is closed, connect
// opens it by SIGUSR1.
func connect(ctx context.Context, pid int) (item *inspector, opened bool, err error) {
	for range clock.Every(ctx, openPoll) {
		pos, err := listening(pid)
		if err != nil {
			return nil, opened, err
		}
		if pos > 0 {
			single, err := dial(ctx, client(pid), pos)
			return single, opened, err
		}
		if !opened {
			if err := signal(pid); err != nil {
				return nil, false, err
			}
			opened = true
		}
	}
	return nil, opened, fmt.Errorf("find the inspector of process %d: no port from %d upwards is "+
		"open: %w", pid, firstPort, ctx.Err())
}

// signal opens the inspector. It returns an error if the process does not handle SIGUSR1, because
// the signal would end it.
func signal(pid int) error {
	if !profile.Handles(pid, syscall.SIGUSR1) {
		return fmt.Errorf("open the inspector of process %d: Node.js does not handle SIGUSR1, "+
			"because it is still starting, or uses the signal for something else", pid)
	}
	if err := syscall.Kill(pid, syscall.SIGUSR1); err != nil {
		return fmt.Errorf("open the inspector of process %d: %w", pid, err)
	}
	return nil
}

// listening returns the lowest inspector port that a process listens on; 0: none.
func listening(pid int) (int, error) {
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(fds) == 0 {
		return 0, fmt.Errorf("read the sockets of process %d: the process has no sockets, or has "+
			"ended", pid)
	}
	ports, err := host.Sockets(fmt.Sprintf("/proc/%d/net/tcp", pid))
	if err != nil {
		return 0, fmt.Errorf("read the sockets of process %d: %w", pid, err)
	}
	count := 0
	for _, fd := range fds {
		to, _ := os.Readlink(fd) // empty if it was closed meanwhile
		pos := ports[to].Port
		if pos >= firstPort && pos < firstPort+portsPerNode && (count == 0 || pos < count) {
			count = pos
		}
	}
	return count, nil
}

// dial opens the only target of a Node inspector.
func dial(ctx context.Context, c *http.Client, port int) (*inspector, error) {
	base := "http://127.0.0.1:" + strconv.Itoa(port)
	var version struct{ Browser string }
	if err := get(ctx, c, base+"/json/version", &version); err != nil {
		return nil, err
	}
	var targets []struct {
		URL string `json:"webSocketDebuggerUrl"`
	}
	if err := get(ctx, c, base+"/json/list", &targets); err != nil {
		return nil, err
	}
	if len(targets) != 1 || targets[0].URL == "" {
		return nil, fmt.Errorf("read %s/json/list: there are %d targets, want exactly 1 target "+
			"without another debugger",
			base, len(targets))
	}
	conn, _, err := websocket.Dial(ctx, targets[0].URL, &websocket.DialOptions{
		HTTPClient: c, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", targets[0].URL, err)
	}
	conn.SetReadLimit(answerBytes)
	return &inspector{conn: conn, version: "v8 of " + version.Browser}, nil
}

func get(ctx context.Context, c *http.Client, address string, into any) error {
	data, err := profile.Get(ctx, c, address)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("read %s: %w", address, err)
	}
	return nil
}

// call sends a command, waits for its response, and ignores events.
func (i *inspector) call(ctx context.Context, command, params string) (json.RawMessage, error) {
	i.last++
	request := fmt.Sprintf(`{"id":%d,"method":%q,"params":%s}`, i.last, command, params)
	if err := i.conn.Write(ctx, websocket.MessageText, []byte(request)); err != nil {
		return nil, fmt.Errorf("send the inspector %s: %w", command, err)
	}
	for {
		_, data, err := i.conn.Read(ctx)
		if err != nil {
			return nil, fmt.Errorf("send the inspector %s: %w", command, err)
		}
		var reply struct {
			ID     int             `json:"id"`
			Result json.RawMessage `json:"result"`
			Error  *struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if err := json.Unmarshal(data, &reply); err != nil {
			return nil, fmt.Errorf("send the inspector %s: read the response: %w", command, err)
		}
		if reply.ID != i.last {
			continue
		}
		if reply.Error != nil {
			return nil, fmt.Errorf("send the inspector %s: %s", command, reply.Error.Message)
		}
		return reply.Result, nil
	}
}

func (i *inspector) close() error {
	err := i.conn.Close(websocket.StatusNormalClosure, "")
	if err == nil || websocket.CloseStatus(err) == websocket.StatusNoStatusRcvd {
		return nil // Node closes without a status
	}
	return fmt.Errorf("disconnect from the inspector: %w", err)
}

// client returns an HTTP client in the network of a process, because in a container 127.0.0.1 is
// another host.
func client(pid int) *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return inNetworkOf(pid, func() (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, address)
			})
		}}}
}

// inNetworkOf connects from the network namespace of a process (setns(2)). A socket stays in the
// namespace in which it was created.
func inNetworkOf(pid int, connect func() (net.Conn, error)) (conn net.Conn, err error) {
	location := fmt.Sprintf("/proc/%d/ns/net", pid)
	ours, err1 := os.Stat("/proc/self/ns/net")
	info, err2 := os.Stat(location)
	if err1 != nil || err2 != nil || os.SameFile(ours, info) {
		return connect()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// /proc/self shows the main thread's network. While this goroutine holds the main
			// thread, the next goroutine gets another one.
			defer runtime.UnlockOSThread()
			conn, err = inNetworkOf(pid, connect)
			return
		}
		conn, err = visit(location, connect)
	}()
	<-done
	return conn, err
}

// visit connects from another namespace and returns to its own. The thread ends only if it cannot
// return, because processes that it has started would end with it (PR_SET_PDEATHSIG, prctl(2)).
func visit(location string, connect func() (net.Conn, error)) (net.Conn, error) {
	home, err1 := os.Open("/proc/thread-self/ns/net")
	foreign, err2 := os.Open(location)
	defer func() { _, _ = home.Close(), foreign.Close() }() // errors of nil files don't matter
	if err := errors.Join(err1, err2); err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	if err := unix.Setns(int(foreign.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("enter %s: %w", location, err)
	}
	conn, err := connect()
	if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
		return conn, errors.Join(err, fmt.Errorf("leave %s: %w", location, back))
	}
	runtime.UnlockOSThread()
	return conn, err
}
