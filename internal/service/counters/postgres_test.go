package counters

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
)

// nobody may run PostgreSQL, which refuses to run as root.
const nobody = 65534

// server starts a PostgreSQL with an authentication method of pg_hba.conf, and returns its URL
// without a password.
func server(t *testing.T, way string, more ...string) *url.URL {
	t.Helper()
	bin, err := exec.LookPath("postgres")
	if err == nil {
		bin, err = filepath.EvalSymlinks(bin)
	}
	if err != nil {
		t.Skip("needs PostgreSQL (apt install postgresql)")
	}
	dir, err := os.MkdirTemp("", "asks-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	pass := filepath.Join(dir, "password")
	if err := os.WriteFile(pass, []byte("p,=w\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().(*net.TCPAddr)
	l.Close()
	data := filepath.Join(dir, "data")
	command := func(name string, args ...string) *exec.Cmd {
		c := exec.Command(filepath.Join(filepath.Dir(bin), name), append(args, "-D", data)...)
		c.Dir = dir
		if os.Getuid() == 0 {
			c.SysProcAttr = &syscall.SysProcAttr{
				Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		}
		return c
	}
	if os.Getuid() == 0 {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	out, err := command("initdb", "-U", "clinic", "--pwfile", pass, "-A", way, "--no-sync",
		"--no-locale").CombinedOutput()
	if err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	run := command("postgres", append(more, "-h", "127.0.0.1", "-p", fmt.Sprint(at.Port), "-k",
		"", "-F")...)
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = run.Process.Signal(syscall.SIGINT)
		_ = run.Wait()
	})
	u := &url.URL{Scheme: "postgres", Host: at.String(), Path: "/postgres",
		User: url.UserPassword("clinic", "p,=w")}
	ready := &postgres{url: u}
	defer ready.Close()
	for range 2400 { // a minute
		if _, err = ready.query(t.Context(), "SELECT 1"); err == nil {
			return u
		}
		ready.Close()
		time.Sleep(25 * time.Millisecond)
	}
	t.Fatalf("it is not ready: %v", err)
	return nil
}

// ask touches a table: a server process reports a transaction without a table only with the next
// one that touches a table.
const ask = "SELECT count(*) FROM pg_namespace"

// counted returns by how much a counter of the server grows while another client sends this many
// queries. Unreported ones are reported with the next query after a second.
func counted(t *testing.T, p Place, at *url.URL, asks int) float64 {
	t.Helper()
	c, err := Open(p)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	client := &postgres{url: at}
	defer client.Close()
	read := func() float64 {
		time.Sleep(c.Late() + 100*time.Millisecond)
		if _, err := client.query(t.Context(), ask); err != nil {
			t.Fatal(err)
		}
		n, err := c.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	read()
	before := read()
	for range asks {
		if _, err := client.query(t.Context(), ask); err != nil {
			t.Fatal(err)
		}
	}
	return read() - before
}

// A real PostgreSQL can be read with each authentication method, and counts every query, including
// those of the reading.
func TestPostgres(t *testing.T) {
	testsets.Once(t, "counters of a real PostgreSQL", testsets.Needs{})
	const asks = 500
	for _, way := range []string{"scram-sha-256", "password"} {
		at := server(t, way, "-c", "shared_preload_libraries=pg_stat_statements")
		got := counted(t, Place{Postgres: at.String()}, at, asks)
		if got < asks || got > asks+10 {
			t.Errorf("%s: %d asks are %v transactions", way, asks, got)
		}
		wrong := *at
		wrong.User = url.UserPassword("clinic", "other")
		c, err := Open(Place{Postgres: wrong.String()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(t.Context()); err == nil ||
			!strings.Contains(err.Error(), "password authentication failed") {
			t.Errorf("%s, with another password: %v", way, err)
		}
		statements := Place{Postgres: at.String(), Statements: true}
		if c, err = Open(statements); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(t.Context()); err == nil ||
			!strings.Contains(err.Error(), `relation "pg_stat_statements" does not exist`) {
			t.Errorf("statements without the extension: %v", err)
		}
		if _, err := (&postgres{url: at}).query(t.Context(),
			"CREATE EXTENSION pg_stat_statements"); err != nil {
			t.Fatal(err)
		}
		if got := counted(t, statements, at, asks); got < asks || got > asks+10 {
			t.Errorf("%s: %d asks are %v statements", way, asks, got)
		}
	}
}

// A silent server delays a reading only for the given time, and a server with another protocol is
// detected.
func TestStrange(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	read := func(within time.Duration) error {
		c, err := Open(Place{Postgres: "postgres://a:b@" + l.Addr().String()})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		_, err = c.Read(ctx)
		return err
	}
	if err := read(50 * time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("silence: error %v", err)
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n"))
			defer conn.Close()
		}
	}()
	if err := read(time.Minute); err == nil || !strings.Contains(err.Error(),
		"is not PostgreSQL") {
		t.Errorf("HTTP: error %v", err)
	}
}
