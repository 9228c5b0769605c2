package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prony.example/internal/base/cache"
	"prony.example/internal/suite"
	"prony.example/internal/suite/adhoc"
	"prony.example/internal/trial"
)

// TestServices makes a service of each source, with the longer of both bounds on its startup, and
// says nothing if there is nothing to say.
func TestServices(t *testing.T) {
	check := func(startup, bound time.Duration, ready, path string) {
		t.Helper()
		heard := &listener{}
		l := &Lab{Root: t.TempDir(), Tell: heard, AsMe: true}
		got, err := l.Services(t.Context(), []adhoc.Source{
			{Way: adhoc.Command("/bin/sleep 1"), Dir: l.Root},
			{Name: "second", Way: adhoc.Command("/bin/sleep 2"), Dir: l.Root, Again: true}},
			ready, "", startup)
		if err != nil || len(got) != 2 || len(heard.lines) > 0 {
			t.Fatalf("services %v, error %v, said %q", got, err, heard.lines)
		}
		for _, s := range got {
			if s.Run.Startup != bound || s.Run.Ready != path || !s.AsMe {
				t.Errorf("service %s: startup %v, ready %q, as me: %v", s.Name, s.Run.Startup,
					s.Run.Ready, s.AsMe)
			}
		}
	}
	check(0, trial.ReadyBound, "/ready", "/ready")
	check(2*trial.ReadyBound, 2*trial.ReadyBound, "-", "")
}

// TestServicesInUnwritableFolder checks that results in another folder need no folder here.
func TestServicesInUnwritableFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file") // below it no folder can be made
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv(cache.Env, t.TempDir())
	l := &Lab{Root: file, Tell: &listener{}}
	if _, err := l.Services(t.Context(), nil, "", "elsewhere", 0); err != nil {
		t.Errorf("with --out: %v", err)
	}
	if _, err := l.Services(t.Context(), nil, "", "", 0); err == nil ||
		!strings.Contains(err.Error(), "choose another one for the results with --out") {
		t.Errorf("without --out: %v", err)
	}
}

// TestFill checks what a comparison takes from its sources: the protocol of their URLs, whether one
// of them stays where it is, and the first one once more as a control.
func TestFill(t *testing.T) {
	source := func(way adhoc.Way) adhoc.Source { return adhoc.Source{Way: way} }
	request, err := adhoc.ParseRequest("/")
	if err != nil {
		t.Fatal(err)
	}
	check := func(protocol string, stay bool, fails string, ways ...adhoc.Way) {
		t.Helper()
		c := Comparison{Requests: []suite.Request{request}, Memory: 64 << 20, Again: true,
			Change: suite.Override{Interleave: suite.ByBlocks},
			Options: adhoc.Options{Connections: 1, Blocks: 1, CPUs: 1,
				Speaks: suite.Scenario{Protocol: protocol}}}
		for _, way := range ways {
			c.Sources = append(c.Sources, source(way))
		}
		err := c.fill()
		if fails != "" {
			if err == nil || !strings.Contains(err.Error(), fails) {
				t.Errorf("%q: error %v, want %q", ways, err, fails)
			}
			return
		}
		o := c.Options
		if err != nil || len(c.Sources) != len(ways)+1 || !c.Sources[len(ways)].Again ||
			c.Sources[0].Again || c.Sources[len(ways)].Way != ways[0] || o.Stay != stay ||
			o.MemoryBytes != 64<<20 || o.CPUs != 1 || o.Interleave != suite.ByBlocks {
			t.Errorf("%q: error %v, %d sources, the last one %+v, options %+v", ways, err,
				len(c.Sources), c.Sources[len(c.Sources)-1], o)
		}
		if secure := strings.HasPrefix(fmt.Sprint(ways[0]), "https:"); secure !=
			(o.Speaks.Protocol == "https") {
			t.Errorf("%q: protocol %q", ways, o.Speaks.Protocol)
		}
	}
	const plain, secure = adhoc.URL("http://127.0.0.1:1"), adhoc.URL("https://127.0.0.1:2")
	check("", false, "", adhoc.Command("./a"), adhoc.Command("./b"))
	check("", true, "", adhoc.Command("./a"), plain)
	check("", true, "", secure)
	check("https", true, "", secure, secure)
	check("http", true, "the protocol http has no TLS", secure)
	check("", true, "all services of a comparison need the same protocol", plain, secure)
}
