package report

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"prony.example/internal/observe/profile"
	"prony.example/record"
)

// hostile is a function whose name is markup.
const hostile = `Evil.<img src=x onerror=document.title="owned"></script><script>alert(1)</script>`

// folded returns a profile of fictional stacks, a line each: frames joined by semicolons, weight in
// ms.
func folded(t *testing.T, kind, tool string, lines ...string) []byte {
	t.Helper()
	s := profile.NewStacks(kind)
	err := profile.EachFolded(strings.NewReader(strings.Join(lines, "\n")),
		func(frames []string, n int64) { s.Add(frames, n, n*1e6) })
	if err != nil {
		t.Fatal(err)
	}
	p := s.Profile()
	profile.Describe(p, tool, "event: one sample a ms, of "+tool)
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// profiled returns the rich run with profiles: go-nethttp's CPU at two loads, each once outside the
// comparison; rust-axum's in two blocks of the comparison, which are summed; java-netty's, one of
// whose two files is lost; node-express's, which could not be taken.
//
// Of go-nethttp's 1000 samples at half, serve has 600 (parse 400, of which evil 100, and json 200),
// the collector 250, and the root's own idle frame 150. At peak parse has grown to 600. Its
// allocation profile has no number of samples.
func profiled(t *testing.T) (fs.FS, []record.Record) {
	t.Helper()
	half := folded(t, profile.CPU, "pprof of Go",
		"net/http.(*conn).serve;main.parse 300",
		"net/http.(*conn).serve;main.parse;"+hostile+" 100",
		"net/http.(*conn).serve;encoding/json.Marshal 200",
		"runtime.gcBgMarkWorker;runtime.scanobject 250", "runtime.idle 150")
	peak := folded(t, profile.CPU, "pprof of Go",
		"net/http.(*conn).serve;main.parse 500",
		"net/http.(*conn).serve;main.parse;"+hostile+" 100",
		"net/http.(*conn).serve;encoding/json.Marshal 200",
		"runtime.gcBgMarkWorker;runtime.scanobject 100", "runtime.idle 100")
	axum := folded(t, profile.CPU, "perf_events",
		"tokio::runtime::run;hyper::proto::dispatch;axum::serve 400",
		"tokio::runtime::run;hyper::proto::dispatch;axum::serve;main.parse 100",
		"entry_SYSCALL_64_[k];tcp_sendmsg_[k] 500")
	deep := "java.lang.Thread.run"
	for i := range 60 {
		deep += fmt.Sprintf(";io.netty.handler.Chain%02d.fire", i)
	}
	netty := folded(t, profile.CPU, "async-profiler 4.1", deep+" 70",
		deep+";com.example.App.hello 25", "java.lang.Thread.run;GC 5")
	stacks := profile.NewStacks(profile.Alloc)
	stacks.Add([]string{"main.answer"}, 1, 700)
	stacks.Add([]string{"main.parse"}, 1, 300)
	alloc := stacks.Profile()
	alloc.SampleType[0].Type = "objects" // which are no samples
	var bytesOf bytes.Buffer
	if err := alloc.Write(&bytesOf); err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{}
	put := func(name string, data []byte) record.Profile {
		files["profiles/"+name] = &fstest.MapFile{Data: data}
		load := "peak"
		if strings.Contains(name, ".half.") {
			load = "half"
		}
		kind := name[strings.LastIndexByte(name, '.')+1:]
		return record.Profile{Kind: kind, Load: load, File: "profiles/" + name, DurationNs: 10e9}
	}
	lost := record.Profile{Kind: profile.CPU, Load: "peak", File: "profiles/lost.pb.gz"}
	failed := record.Profile{Kind: profile.Lock, Load: "peak", Failed: "node has no locks to see"}
	records := append([]record.Record{}, rich()...)
	beside := map[string]record.Record{}
	blocks := 0
	for i := range records {
		r := &records[i]
		beside[r.Target.Name] = *r
		if r.Target.Name == "rust-axum" && r.Failure == nil && blocks < 2 {
			blocks++
			r.Profiles = []record.Profile{put(fmt.Sprintf("b%d.peak.cpu", blocks), axum)}
		}
	}
	for name, profiles := range map[string][]record.Profile{
		"go-nethttp": {put("go.half.cpu", half), put("go.peak.cpu", peak),
			put("go.half.alloc", bytesOf.Bytes()), put("go.peak.alloc", bytesOf.Bytes())},
		"rust-axum":    {put("beside.peak.cpu", peak)},
		"java-netty":   {put("netty.peak.cpu", netty), lost},
		"node-express": {failed},
	} {
		r, ok := beside[name]
		if !ok {
			t.Fatalf("the fixture has no target %s", name)
		}
		r.Role, r.Trial, r.Profiles = record.Observed, name+"-observed", profiles
		records = append(records, r)
	}
	return files, records
}
