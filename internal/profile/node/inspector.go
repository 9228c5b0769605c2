package node

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/coder/websocket"

	"prony/internal/clock"
	"prony/internal/host"
	"prony/internal/profile"
)

const (
	firstPort    = 9229 // where SIGUSR1 opens the inspector (nodejs.org/api/debugger)
	portsPerNode = 64   // a cluster's processes take the ports after the first one's
	answerBytes  = 256 << 20
	openPoll     = 10 * time.Millisecond
)

// isNode says why a process is not Node.
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

// inspector is a connection to one process.
type inspector struct {
	conn    *websocket.Conn
	version string // "v8 of node.js/v20.20.2"
	last    int
}

// connect finds the inspector of a process among the ports that it listens on. Where there is none
// it is opened by SIGUSR1.
func connect(ctx context.Context, pid int) (one *inspector, opened bool, err error) {
	for range clock.Every(ctx, openPoll) {
		at, err := listening(pid)
		if err != nil {
			return nil, opened, err
		}
		if at > 0 {
			one, err := dial(ctx, client(pid), at)
			return one, opened, err
		}
		if !opened {
			if err := signal(pid); err != nil {
				return nil, false, err
			}
			opened = true
		}
	}
	return nil, opened, fmt.Errorf("find the inspector of process %d: it listens on no port from "+
		"%d upwards: %w", pid, firstPort, ctx.Err())
}

// signal opens the inspector. A process that does not handle it would end.
func signal(pid int) error {
	if !profile.Handles(pid, syscall.SIGUSR1) {
		return fmt.Errorf("open the inspector of process %d: it does not handle SIGUSR1: it has "+
			"only begun to start, or uses the signal otherwise", pid)
	}
	if err := syscall.Kill(pid, syscall.SIGUSR1); err != nil {
		return fmt.Errorf("open the inspector of process %d: %w", pid, err)
	}
	return nil
}

// listening is the lowest port of an inspector that a process listens on; 0: none.
func listening(pid int) (int, error) {
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(fds) == 0 {
		return 0, fmt.Errorf("read the sockets of process %d: it has none, or is gone", pid)
	}
	ports, err := host.Sockets(fmt.Sprintf("/proc/%d/net/tcp", pid))
	if err != nil {
		return 0, fmt.Errorf("read the sockets of process %d: %w", pid, err)
	}
	found := 0
	for _, fd := range fds {
		to, _ := os.Readlink(fd) // empty where it was closed meanwhile
		at := ports[to].Port
		if at >= firstPort && at < firstPort+portsPerNode && (found == 0 || at < found) {
			found = at
		}
	}
	return found, nil
}

// dial opens the one target that an inspector of Node has.
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
		return nil, fmt.Errorf("read %s/json/list: %d targets, want one that nobody else inspects",
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

// call gives a command and waits for its answer; events in between are not for us.
func (i *inspector) call(ctx context.Context, command, params string) (json.RawMessage, error) {
	i.last++
	ask := fmt.Sprintf(`{"id":%d,"method":%q,"params":%s}`, i.last, command, params)
	if err := i.conn.Write(ctx, websocket.MessageText, []byte(ask)); err != nil {
		return nil, fmt.Errorf("tell the inspector %s: %w", command, err)
	}
	for {
		_, data, err := i.conn.Read(ctx)
		if err != nil {
			return nil, fmt.Errorf("tell the inspector %s: %w", command, err)
		}
		var said struct {
			ID     int             `json:"id"`
			Result json.RawMessage `json:"result"`
			Error  *struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if err := json.Unmarshal(data, &said); err != nil {
			return nil, fmt.Errorf("tell the inspector %s: read its answer: %w", command, err)
		}
		if said.ID != i.last {
			continue
		}
		if said.Error != nil {
			return nil, fmt.Errorf("tell the inspector %s: %s", command, said.Error.Message)
		}
		return said.Result, nil
	}
}

func (i *inspector) close() error {
	err := i.conn.Close(websocket.StatusNormalClosure, "")
	if err == nil || websocket.CloseStatus(err) == websocket.StatusNoStatusRcvd {
		return nil // Node answers without a status
	}
	return fmt.Errorf("leave the inspector: %w", err)
}
