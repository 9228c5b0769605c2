package node

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"prony.example/internal/observe/profile"
)

// serveInspector serves Node's inspector with a list of targets, in which URL stands for the
// address of its only target. The target sends an event and the response to another command before
// the given response to each command. It returns the port.
func serveInspector(t *testing.T, targets string, responses map[string]string) (port int) {
	t.Helper()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	send := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
	}
	mux.HandleFunc("/json/version", send(`{"Browser":"node.js/v20.0.0"}`))
	mux.HandleFunc("/json/list", send(strings.ReplaceAll(targets, "URL", "ws://"+at.Host+"/a")))
	mux.HandleFunc("/a", func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.CloseNow() //nolint:errcheck // it is closed already if all went well
		for {
			_, data, err := conn.Read(r.Context())
			if err != nil {
				return // the client has disconnected
			}
			var request struct {
				ID     int    `json:"id"`
				Method string `json:"method"`
			}
			if err := json.Unmarshal(data, &request); err != nil {
				t.Error(err)
			}
			response := responses[request.Method]
			for _, text := range []string{`{"method":"Runtime.event","params":{}}`,
				fmt.Sprintf(`{"id":%d,"result":"another"}`, request.ID+1),
				strings.ReplaceAll(response, "ID", strconv.Itoa(request.ID))} {
				if conn.Write(r.Context(), websocket.MessageText, []byte(text)) != nil {
					return
				}
			}
		}
	})
	port, err = strconv.Atoi(at.Port())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// oneTarget is the list of targets of a process without another debugger.
const oneTarget = `[{"webSocketDebuggerUrl":"URL"}]`

// TestDial checks which lists of targets are accepted.
func TestDial(t *testing.T) {
	check := func(targets, want string) {
		t.Helper()
		item, err := dial(t.Context(), http.DefaultClient, serveInspector(t, targets, nil))
		if want == "" && err == nil {
			if item.version != "v8 of node.js/v20.0.0" {
				t.Errorf("version %q", item.version)
			}
			err = item.close()
		}
		if want == "" && err != nil || want != "" && (err == nil ||
			!strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", targets, err, want)
		}
	}
	check(oneTarget, "")
	check(`[]`, "there are 0 targets")
	check(`[{}]`, "want exactly 1 target without another debugger")
	check(`[{"webSocketDebuggerUrl":"URL"},{"webSocketDebuggerUrl":"URL"}]`, "there are 2 targets")
	check(`{}`, "/json/list: json: cannot unmarshal object")
	check(`[{"webSocketDebuggerUrl":"URL/none"}]`, "/a/none: failed to WebSocket dial")
}

// TestListening checks that the lowest of a process's ports from 9229 to 9292 is found.
func TestListening(t *testing.T) {
	if port, err := listening(os.Getpid()); port != 0 || err != nil {
		t.Fatalf("before: port %d, %v", port, err)
	}
	var open []int // from the highest to the lowest
	for port := firstPort + portsPerNode; port >= firstPort && len(open) < 3; port-- {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue // another program has it
		}
		defer l.Close()
		if port < firstPort+portsPerNode {
			open = append(open, port)
		}
		want := 0
		if len(open) > 0 {
			want = open[len(open)-1]
		}
		if got, err := listening(os.Getpid()); got != want || err != nil {
			t.Errorf("after %d: port %d, %v, want %d", port, got, err, want)
		}
	}
	if len(open) < 2 {
		t.Skip("fewer than two ports are free")
	}
	const none = 1 << 30 // above the largest process id (proc(5), pid_max)
	if _, err := listening(none); err == nil || !strings.Contains(err.Error(),
		"the process has no sockets, or has ended") {
		t.Errorf("a process that does not exist: %v", err)
	}
}

// TestCall checks that a call returns the response to its own command.
func TestCall(t *testing.T) {
	port := serveInspector(t, oneTarget, map[string]string{
		"A.good": `{"id":ID,"result":{"a":ID}}`, "A.bad": `{"id":ID,"error":{"message":"no"}}`,
		"A.torn": `{"id":`})
	item, err := dial(t.Context(), http.DefaultClient, port)
	if err != nil {
		t.Fatal(err)
	}
	check := func(command, want, fails string) {
		t.Helper()
		got, err := item.call(t.Context(), command, "{}")
		if string(got) != want || fails == "" && err != nil || fails != "" && (err == nil ||
			!strings.Contains(err.Error(), fails)) {
			t.Errorf("%s: %s, error %v, want %s, error %q", command, got, err, want, fails)
		}
	}
	check("A.good", `{"a":1}`, "")
	check("A.bad", "", "send the inspector A.bad: no")
	check("A.good", `{"a":3}`, "")
	check("A.torn", "", "send the inspector A.torn: read the response")
	if err := item.close(); err != nil {
		t.Error(err)
	}
	check("A.good", "", "send the inspector A.good: ")
}

// TestStop checks the sum of the profiles of two processes, of which the signal opened one.
func TestStop(t *testing.T) {
	const good = `{"id":ID,"result":{"profile":{"nodes":[{"id":1,"callFrame":` +
		`{"functionName":"(root)"},"children":[2]},{"id":2,"callFrame":{"functionName":"a"}}],` +
		`"samples":[2],"timeDeltas":[3]}}}`
	check := func(second, want, fails string) {
		t.Helper()
		s := &session{kind: profile.CPU, method: methods[profile.CPU], opened: 1}
		for _, response := range []string{good, second} {
			item, err := dial(t.Context(), http.DefaultClient, serveInspector(t, oneTarget,
				map[string]string{"Profiler.stop": response}))
			if err != nil {
				t.Fatal(err)
			}
			s.inspectors = append(s.inspectors, item)
		}
		p, err := s.Stop(t.Context())
		if fails != "" {
			if p != nil || err == nil || !strings.HasPrefix(err.Error(), fails) {
				t.Errorf("%s: error %v, want %q", second, err, fails)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		notes := profile.Notes(p)
		if got := string(profile.Folded(p)); got != want || !slices.ContainsFunc(notes,
			func(note string) bool {
				return strings.HasPrefix(note, "the inspectors of 1 processes were opened")
			}) {
			t.Errorf("stacks %q, want %q; notes %q", got, want, notes)
		}
	}
	check(good, "a 6000\n", "") // 3 µs each
	check(`{"id":ID,"error":{"message":"gone"}}`, "",
		"stop V8's profiler: send the inspector Profiler.stop: gone")
	check(`{"id":ID,"result":{"profile":{}}}`, "",
		"read V8's profile: the profile has no nodes")
}
