package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/generator"
	"prony.example/internal/launch"
	"prony.example/internal/launch/process"
	"prony.example/internal/observe/host"
	"prony.example/internal/observe/probe"
	"prony.example/internal/service"
	"prony.example/internal/suite"
	"prony.example/internal/trial"
	"prony.example/load/engine/nethttp"
	"prony.example/record"
)

// The proof on real runs: servers that are slower than another by a known amount, or not at all,
// run in whole trials, and the conclusions of the statistics from the records are compared with the
// known truth.
//
//	costs ─► rounds of each arm ─► truth ─► trials, in shuffled blocks ─► records ─► tables
//	(prooftruth)                  (its own clock)   (the lab's own code)    (prooftable)
//
// All results remain in a folder, from which the tables can be made again.

// proofSize is the size of a proof.
type proofSize struct {
	blocks, warmBlocks int
	warmup, window     time.Duration // of a trial that compares
	settle             time.Duration // of a warm-up that is the subject
	cost               int64         // requests for measuring the cost of a round
	truth              int64         // requests for measuring the true costs
}

// BenchmarkProof is the whole proof, about a quarter of an hour: PRONY_PROOF_BLOCKS blocks (default
// 40), and PRONY_PROOF_WARM_BLOCKS (default 5) for the warm-ups, in an order shuffled from
// PRONY_PROOF_SEED (default 1). With PRONY_PROOF_READ it runs nothing and reads the records of that
// folder.
func BenchmarkProof(b *testing.B) {
	dir := os.Getenv("PRONY_PROOF_READ")
	if dir == "" {
		blocks := Setting(b, "PRONY_PROOF_BLOCKS", 40)
		size := proofSize{
			blocks: blocks, warmBlocks: Setting(b, "PRONY_PROOF_WARM_BLOCKS", 5),
			warmup: 500 * time.Millisecond, window: time.Second, settle: 6 * time.Second,
			cost: 100_000, truth: int64(blocks) * 25_000,
		}
		journal, _, err := process.OpenJournal(process.DefaultDir())
		if err != nil {
			b.Fatal(err)
		}
		defer journal.Close()
		if dir, err = os.MkdirTemp("", "prony-proof-"); err != nil {
			b.Fatal(err)
		}
		newProof(b, dir, journal, uint64(Setting(b, "PRONY_PROOF_SEED", 1))).all(size)
	}
	text := proofReport(b, dir)
	if err := os.WriteFile(filepath.Join(dir, "proof.md"), []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(0, "ns/op") // the time of a proof has no meaning
	b.Logf("records are in %s\n\n%s", dir, text)
}

// proof is a proof in progress.
type proof struct {
	tb       testing.TB
	dir      string
	seed     uint64
	layout   host.Layout
	launcher *process.Launcher
}

// newProof confines this process to the load's cores.
func newProof(tb testing.TB, dir string, j *process.Journal, seed uint64) *proof {
	tb.Helper()
	cores, err := host.Cores()
	if err != nil {
		tb.Fatal(err)
	}
	layout, err := host.Divide(cores, 1)
	if err != nil {
		tb.Fatal(err)
	}
	if layout.Shared {
		tb.Skip("skipped: needs two cores")
	}
	if err := host.Confine(layout.Load); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := host.Confine(cores); err != nil {
			tb.Error(err)
		}
	})
	return &proof{tb, dir, seed, layout, &process.Launcher{Journal: j}}
}

// The runs of a proof, each a folder of records.
const (
	proofCompare = "compare" // the arms, in blocks
	proofWhole   = "whole"   // warm-ups long enough to show everything
	proofHasty   = "hasty"   // the same, ended by the trial's rule as soon as it holds
	proofTruths  = "truth.json"
)

func (p *proof) all(size proofSize) {
	p.tb.Helper()
	p.say("find what a request costs")
	cost := p.requestCost(size.cost)
	known := proofKnown{Seed: p.seed, Cost: cost, Arms: cost.arms(), Warm: cost.warm(size.settle)}
	p.say("compare the arms' costs by processor time")
	p.measureTruth(known.Arms, size.truth)
	text, err := json.MarshalIndent(known, "", "  ")
	if err != nil {
		p.tb.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, proofTruths), text, 0o644); err != nil {
		p.tb.Fatal(err)
	}
	servers := map[string]burner{}
	for _, a := range known.Arms {
		servers[a.Name] = burner{Rounds: []int64{a.Rounds}}
	}
	p.run(proofCompare, size.blocks, size.warmup, size.warmup, size.window, servers)
	clear(servers)
	for _, w := range known.Warm {
		servers[w.Name] = w.Server
	}
	p.run(proofWhole, size.warmBlocks, size.settle, size.settle*7/6, size.window, servers)
	p.run(proofHasty, size.warmBlocks, min(size.settle, time.Second/2), size.settle, size.window,
		servers)
}

// say reports the progress, because a proof takes minutes.
func (p *proof) say(text string) { fmt.Fprintln(os.Stderr, "proof:", text) }

// proofSuite is one trial, as short as possible with a useful window.
const proofSuite = `
name: proof-%s
question: Does the lab find what is known?
contract: compute
blocks: %d
seed: %d
timeout: 5s
limits: {cpus: 1, memory: 256MiB}
warmup: {connections: 16, min: %v, max: %v}
scenarios:
  - name: burn
    requests:
      - request: GET /burn
        expect: {body: ok}
loads:
  - {name: peak, model: closed, connections: 16, leadIn: 100ms, measure: %v}
`

// run runs every server's trials, and saves the records in the folder of the name.
func (p *proof) run(name string, blocks int, least, most, window time.Duration,
	servers map[string]burner) {
	p.tb.Helper()
	text := fmt.Sprintf(proofSuite, name, blocks, p.seed, least, most, window)
	s, err := suite.Read("proof.yaml", []byte(text))
	if err != nil {
		p.tb.Fatal(err)
	}
	e := trial.Experiment{Head: record.Run{
		ID: name, Suite: s.Name, Question: s.Question, Blocks: blocks, Seed: p.seed,
		Command: os.Args,
	}, Prov: record.Provenance{Seed: p.seed, Command: os.Args}}
	var catalog []suite.Target
	for arm := range servers {
		catalog = append(catalog, suite.Target{Name: arm, Service: arm, Mode: "virtual",
			Contracts: []string{s.Contract}})
	}
	plan, err := s.Plan(catalog)
	if err != nil {
		p.tb.Fatal(err)
	}
	for _, t := range plan.Trials {
		spec := trial.Resolve(plan.Suite, t)
		spec.Subject = p.subject(t.Target, servers[t.Target])
		e.Trials, e.Head.Trials = append(e.Trials, spec), append(e.Head.Trials, t.ID)
	}
	lab := p.lab(filepath.Join(p.dir, name), func(ev trial.Event) {
		if r := ev.Record; r != nil && r.Order%len(servers) == 0 {
			p.say(fmt.Sprintf("%s: block %d of %d", name, r.Block, blocks))
		}
	})
	if _, err := lab.Run(context.Background(), e); err != nil {
		p.tb.Fatal(err)
	}
}

// subject is this program as a service.
func (p *proof) subject(name string, b burner) trial.Subject {
	p.tb.Helper()
	self, err := os.Executable()
	if err != nil {
		p.tb.Fatal(err)
	}
	text, err := json.Marshal(b)
	if err != nil {
		p.tb.Fatal(err)
	}
	target := service.Target{Name: "burn", Runtime: "native", Mode: "virtual"}
	return trial.Subject{
		Service: &service.Service{
			Name: name, Language: "go", Framework: "truth", Targets: []service.Target{target},
			Run: service.Run{Command: []string{self}, Env: map[string]string{burnEnv: string(text)},
				Health: "/data", Ready: "/data"},
		},
		Target: target, Built: &service.Built{Dir: p.dir},
	}
}

// lab returns a lab as of `prony run`.
func (p *proof) lab(dir string, observe func(trial.Event)) *trial.Lab {
	return &trial.Lab{
		Launcher: p.launcher, Layout: p.layout, Dir: dir, Port: freePort, Observe: observe,
		Driver: func(_, engine string, _ *nethttp.Config) (trial.Driver, error) {
			return generator.Prony{Engine: engine}, nil
		},
		Watch: func(up launch.Process, _ time.Duration) (trial.Watcher, error) {
			subject := probe.Subject{PIDs: up.PIDs}
			for _, g := range up.Groups() {
				subject.Groups = append(subject.Groups, probe.Group(g))
			}
			return probe.Start(probe.Config{Cores: p.layout.Load}, subject)
		},
	}
}

// freePort returns a free port from the kernel.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// proofReport makes the tables from the folder of a proof.
func proofReport(tb testing.TB, dir string) string {
	tb.Helper()
	var known proofKnown
	text, err := os.ReadFile(filepath.Join(dir, proofTruths))
	if err != nil {
		tb.Fatal(err)
	}
	if err := json.Unmarshal(text, &known); err != nil {
		tb.Fatal(err)
	}
	records := map[string][]*record.Record{}
	for _, name := range []string{proofCompare, proofWhole, proofHasty} {
		_, all, bad, err := record.Read(filepath.Join(dir, name))
		if err != nil || len(bad) > 0 {
			tb.Fatal(err, bad)
		}
		records[name] = all
	}
	var out bytes.Buffer
	printKnown(&out, known, records[proofCompare])
	printComparison(&out, analyzeComparison(records[proofCompare], known, newResample(known.Seed)))
	printWarm(&out, "Warm-ups that are long enough", analyzeWarm(records[proofWhole], known))
	printWarm(&out, "Warm-ups that the trial's rule ends as soon as it holds",
		analyzeWarm(records[proofHasty], known))
	return out.String()
}

// A short proof: whole trials of every server, and the tables from their records.
func TestProofInSmall(t *testing.T) {
	testsets.Long(t, "the proof on real runs, in small: some twenty servers", testsets.Needs{})
	testsets.Measured(t)
	journal, _, err := process.OpenJournal(filepath.Join(t.TempDir(), "journal"))
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	dir := t.TempDir()
	newProof(t, dir, journal, 1).all(proofSize{
		blocks: 1, warmBlocks: 1, warmup: 100 * time.Millisecond, window: 100 * time.Millisecond,
		settle: 300 * time.Millisecond, cost: 20 * proofSlice, truth: 50 * proofSlice,
	})
	for _, name := range []string{proofCompare, proofWhole, proofHasty} {
		_, records, _, err := record.Read(filepath.Join(dir, name))
		if err != nil || len(records) == 0 {
			t.Fatalf("%s: %d records, %v", name, len(records), err)
		}
		for _, r := range records {
			if r.Outcome != record.Measured || r.Loads[0].Errors.Total() > 0 {
				t.Errorf("%s: %s: %+v, loads %+v", name, r.Trial, r.Failure, r.Loads)
			}
		}
	}
	t.Log(proofReport(t, dir))
}
