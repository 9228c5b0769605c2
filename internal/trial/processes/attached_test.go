package processes

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"prony.example/internal/launch"
)

// A service of only HTTP/3 has no TCP port that accepts a connection.
func TestOfDatagramsAlone(t *testing.T) {
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	by := attached{l.LocalAddr().(*net.UDPAddr).AddrPort()}
	p, err := by.Launch(t.Context(), launch.Spec{})
	if err != nil || !slices.Equal(p.PIDs(), []int{os.Getpid()}) {
		t.Errorf("%v, %v; want %d", p, err, os.Getpid())
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := by.Launch(t.Context(), launch.Spec{}); err == nil ||
		!strings.Contains(err.Error(), "start the service first") {
		t.Errorf("nobody listens: %v", err)
	}
}

// A child of the process that listens serves requests too; a program that only forwards them to
// another network does not, whatever it uses.
func TestAttachedProcesses(t *testing.T) {
	for _, name := range []string{"serves", "docker-proxy"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		file, err := l.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sh", "-c",
			"printf "+name+" > /proc/$$/comm; sleep 60 3>&- & echo $!; wait")
		cmd.ExtraFiles = []*os.File{file}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(cmd.Start(), file.Close(), l.Close()); err != nil {
			t.Fatal(err)
		}
		child := 0
		_, err = fmt.Fscan(out, &child)
		p, err2 := attached{l.Addr().(*net.TCPAddr).AddrPort()}.Launch(t.Context(), launch.Spec{})
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		for _, pid := range []int{cmd.Process.Pid, child} {
			got, want := slices.Contains(p.PIDs(), pid), name == "serves"
			if got != want {
				t.Errorf("%s: process %d is measured: %v, want %v", name, pid, got, want)
			}
		}
		_ = syscall.Kill(child, syscall.SIGKILL)
		_ = cmd.Wait() // the shell reports its child's end
	}
}
