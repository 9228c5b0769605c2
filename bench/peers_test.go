package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/generator/truth"
	"prony.example/internal/observe/host"
)

// answer is the response of the server for both generators.
const answer = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"

// TestMain also runs the server, in a process of its own on a core of its own.
func TestMain(m *testing.M) {
	if text := os.Getenv(burnEnv); text != "" {
		if err := burnAsChild(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if core := os.Getenv("PRONY_BENCH_SERVER"); core != "" {
		if err := serve(core); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if text := os.Getenv(childEnv); text != "" {
		if err := offerAsChild(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func serve(core string) error {
	n, err := strconv.Atoi(core)
	if err != nil {
		return err
	}
	if err := host.Confine([]int{n}); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin) //nolint:errcheck // any end of the input
		cancel()
	}()
	return truth.Null(ctx, l.(*net.TCPListener), []byte(answer))
}

// server starts the server and returns its address.
func server(tb testing.TB, core int) netip.AddrPort {
	tb.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("PRONY_BENCH_SERVER=%d", core))
	in, err := cmd.StdinPipe() // the server ends when this pipe closes for any reason
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		in.Close()
		cmd.Wait() //nolint:errcheck // it ends because its input does
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		tb.Fatal(err)
	}
	addr, err := netip.ParseAddrPort(strings.TrimSpace(line))
	if err != nil {
		tb.Fatal(err)
	}
	return addr
}

var requestsIn = regexp.MustCompile(`(\d+) requests in `)

// wrk measures the cost of a request with wrk, with one thread. Its CPU time is that of the whole
// process (wait4).
func wrk(tb testing.TB, x shape, at netip.AddrPort, core int, d time.Duration) float64 {
	tb.Helper()
	seconds := max(int(d.Seconds()), 1)
	cmd := exec.Command("wrk", "-t1", fmt.Sprintf("-c%d", x.connections),
		fmt.Sprintf("-d%ds", seconds), fmt.Sprintf("%s://%s/hello?key=12345", x.protocol, at))
	out, err := onCore(core, cmd)
	if err != nil {
		tb.Fatal(err)
	}
	m := requestsIn.FindStringSubmatch(string(out))
	if m == nil {
		tb.Fatalf("wrk said %s", out)
	}
	requests, _ := strconv.ParseFloat(m[1], 64) // digits, by the pattern
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return float64(cpu) / requests
}

// onCore runs a command on a core, by its parent's affinity during the fork.
func onCore(core int, cmd *exec.Cmd) ([]byte, error) {
	var set unix.CPUSet
	set.Set(core)
	type output struct {
		text []byte
		err  error
	}
	done := make(chan output)
	go func() { // a thread of its own, which ends with the goroutine and its affinity
		runtime.LockOSThread()
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			done <- output{nil, err}
			return
		}
		text, err := cmd.Output()
		done <- output{text, err}
	}()
	o := <-done
	return o.text, o.err
}
