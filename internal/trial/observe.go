package trial

import (
	"context"
	"fmt"
	"hash/fnv"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/base/cmdlog"
	"prony.example/internal/base/runtimes"
	"prony.example/internal/observe/gclog"
	"prony.example/internal/observe/profile"
	"prony.example/internal/service"
	"prony.example/internal/suite"
	"prony.example/internal/suite/agents"
	"prony.example/internal/telemetry"
	"prony.example/internal/trial/processes"
	"prony.example/record"
)

// Bounds of telemetry: it must not delay a trial.
const (
	homeWait    = 25 * time.Second
	scrapeEvery = time.Second
)

// ToHome is the instrument of trials whose services send telemetry to the collector.
const ToHome = "home of telemetry"

// Home receives the telemetry of services. Real runs use a *telemetry.Client.
type Home interface {
	Endpoints() telemetry.Endpoints
	Begin(context.Context, telemetry.Trial) error
	Scrape(context.Context, telemetry.Trial) error
	Mark(telemetry.Mark) // never waits
	End(context.Context) telemetry.Report
}

// Ride is an agent that was fetched for a variant's targets.
type Ride struct {
	Path  string        // value of {agent}
	Files string        // value of {files}: the agent's folder in the checkout
	Agent *record.Agent // nil: nothing was fetched
}

// Environment variables by which the lab passes its own options to a runtime.
const (
	javaOptions = "JAVA_TOOL_OPTIONS" // JVM Tool Interface specification, "JAVA_TOOL_OPTIONS"
	pprofPort   = "PPROF_PORT"        // port of the catalog's Go services for profilers
	pprofHost   = "PPROF_HOST"        // address of that port
)

// fromOutside are the profilers that read a process through the kernel. frameOptions let them walk
// and name the frames of runtimes that compile at run time.
var (
	fromOutside  = []string{"ebpf", "perf"}
	frameOptions = map[string]string{
		javaOptions:    "-XX:+PreserveFramePointer",
		"NODE_OPTIONS": "--perf-basic-prof --interpreted-frames-native-stack",
	}
)

// waitRates let a Go service's runtime sample waits: one in this many contended locks, and one wait
// per this many ns of waiting on average (runtime.SetMutexProfileFraction, SetBlockProfileRate).
var waitRates = map[string]struct{ name, value string }{
	profile.Lock:   {"PPROF_MUTEX", "10"},
	profile.OffCPU: {"PPROF_BLOCK", "10000"},
}

// board adds the variant's agent and the lab's own observers to an order, and reports to the
// collector that a trial begins.
func (f *life) board(ctx context.Context, o *processes.Order, port func() (int, error)) error {
	rides := f.trial.With
	o.On, o.Env, o.Append = rides.Processes, map[string]string{}, map[string]string{}
	for name, value := range rides.Env {
		o.Env[name] = string(value)
		f.rec.Provenance.VariantEnv = append(f.rec.Provenance.VariantEnv,
			name+"="+cmdlog.Hush(string(value)))
		if value, ok := rides.UserEnv[name]; ok {
			o.Env[name] = string(value)
		}
	}
	slices.Sort(f.rec.Provenance.VariantEnv)
	out, err := filepath.Abs(filepath.Join(f.lab.Dir, "agents", f.trial.ID))
	if err != nil {
		return err
	}
	o.Words = map[string]string{
		"agent": f.trial.Ride.Path, "files": f.trial.Ride.Files, "platform": agents.Platform(),
		"run": filepath.Base(f.lab.Dir), "trial": f.trial.ID, "target": f.trial.Target,
		"variant": f.trial.Variant, "out": out, "metricsHost": f.launcher().Listen(),
	}
	if strings.Contains(strings.Join(f.rec.Provenance.VariantEnv, " "), "{out}") {
		if err := os.MkdirAll(out, 0o755); err != nil {
			return err
		}
	}
	if f.lab.Home != nil {
		endpoints := f.lab.Home.Endpoints()
		o.Words["otlpGrpc"], o.Words["otlpHttp"] = endpoints.GRPC, endpoints.HTTP
		o.Words["zipkin"] = endpoints.Zipkin
	} else if rides.Home {
		return hinted("run with --telemetry",
			"variant %s sends telemetry, but the telemetry collector does not run", rides.Name)
	}
	if err := f.equip(o, port); err != nil {
		return err
	}
	return f.announce(ctx, rides)
}

// equip gives the processes the options that the lab's own observers need.
func (f *life) equip(o *processes.Order, port func() (int, error)) error {
	w := f.trial.Watched
	profiled := len(w.Profile) > 0 && f.trial.Subject.Service.Language == "Go"
	ported := profiled || strings.Contains(strings.Join(f.rec.Provenance.VariantEnv, " "),
		"{metricsPort}")
	for range f.trial.Subject.Service.Processes(f.trial.Subject.Target) {
		if !ported {
			break
		}
		p, err := port()
		if err != nil {
			return fmt.Errorf("find a free port: %w", err)
		}
		o.MetricsPorts = append(o.MetricsPorts, p)
	}
	f.pages = o.MetricsPorts
	if w.GC && f.onJVM() {
		path, err := filepath.Abs(filepath.Join(f.lab.Dir, "logs",
			gclog.LogName(f.trial.ID, "{part}", "%p")))
		if err != nil {
			return err
		}
		if strings.ContainsAny(path, " ,:") { // HotSpot's option would end there
			return hinted("with --out, choose a folder without blanks, commas and colons in its "+
				"path",
				"JVMs cannot log their garbage collections into %s", path)
		}
		o.Append[javaOptions] = strings.ReplaceAll(gclog.LogOption, "{file}", path)
		f.rec.Instruments = append(f.rec.Instruments, "GC logs")
	}
	if slices.Contains(fromOutside, w.Profiler) {
		for name, value := range frameOptions {
			o.Append[name] = strings.TrimSpace(o.Append[name] + " " + value)
		}
		f.rec.Instruments = append(f.rec.Instruments, "frames kept for profilers")
	}
	if w.Traces > 0 {
		f.rec.Instruments = append(f.rec.Instruments, w.Traces.String()+" of requests traced")
	}
	if profiled {
		o.Append[pprofPort], o.Append[pprofHost] = "{metricsPort}", f.launcher().Listen()
		for kind, rate := range waitRates {
			if slices.Contains(w.Profile, kind) {
				o.Append[rate.name] = rate.value
			}
		}
		f.pprof = true
	}
	if w.Period > 0 {
		f.rec.Instruments = append(f.rec.Instruments, "sampled every "+w.Period.String())
	}
	return nil
}

func (f *life) onJVM() bool {
	return runtimes.Of(f.trial.Subject.Target.Runtime).HotSpot
}

// announce reports to the collector that a trial begins. Without a response, the trial is measured
// all the same.
func (f *life) announce(ctx context.Context, rides suite.Variant) error {
	if f.lab.Home == nil || !f.trial.Watched.Telemetry && !rides.Home && rides.Scrape == "" {
		return nil // requests to the collector would disturb the trial and bring nothing
	}
	f.rec.Instruments = append(f.rec.Instruments, ToHome)
	f.heard = true
	if err := toHome(ctx, f.lab.Home.Begin, f.named()); err != nil {
		return err
	}
	for _, m := range f.unsaid {
		f.lab.Home.Mark(m)
	}
	return nil
}

// scrape lets the collector read the metrics pages of the agents in the started processes, whose
// addresses are unknown before.
func (f *life) scrape(ctx context.Context) error {
	rides := f.trial.With
	if !f.heard || rides.Scrape == "" {
		return nil
	}
	t := f.named()
	for i, p := range f.trial.Subject.Service.Processes(f.trial.Subject.Target) {
		enabled := len(rides.Processes) == 0 || p.Name == "" ||
			slices.Contains(rides.Processes, p.Name)
		if enabled && i < len(f.pages) && i < len(f.proc.Parts) {
			t.Scrape = append(t.Scrape, telemetry.ScrapeTarget{
				URL:     "http://" + f.address(i, f.pages[i]) + rides.Scrape,
				Service: service.ProcessName(f.trial.Subject.Service, f.trial.Subject.Target, p),
				Every:   scrapeEvery,
			})
		}
	}
	return toHome(ctx, f.lab.Home.Scrape, t)
}

// toHome sends a trial to the collector by notify. It returns an error only if ctx has ended; the
// collector's report contains all other failures.
func toHome(ctx context.Context, notify func(context.Context, telemetry.Trial) error,
	t telemetry.Trial) error {
	bounded, cancel := context.WithTimeout(ctx, homeWait)
	defer cancel()
	if err := notify(bounded, t); err != nil {
		return ctx.Err()
	}
	return nil
}

// address returns the address of a port of a part, on the host where the part runs.
func (f *life) address(part, port int) string {
	host := f.proc.Parts[part].Addr().Addr()
	return netip.AddrPortFrom(host, uint16(port)).String()
}

// mark reports to the collector that a phase begins.
func (f *life) mark(kind, name string) { f.markAt(kind, name, clock.Wall().UnixNano()) }

func (f *life) markAt(kind, name string, wallNs int64) {
	m := telemetry.Mark{Trial: f.trial.ID, Kind: kind, Name: name, WallNs: wallNs}
	switch {
	case f.heard:
		f.lab.Home.Mark(m)
	case f.lab.Meter != nil:
		f.unsaid = append(f.unsaid, m)
	}
}

// hear adds the collector's report and the garbage collectors' logs of an ended trial to its
// record.
func (f *life) hear() {
	f.collections()
	if !f.heard {
		return
	}
	bounded, cancel := context.WithTimeout(context.Background(), homeWait)
	defer cancel()
	report := f.lab.Home.End(bounded)
	f.rec.Telemetry = &report.Telemetry
	for i := range f.rec.Loads {
		l := &f.rec.Loads[i]
		if reported, ok := report.Loads[l.Name]; ok {
			reported.WindowNs = f.betweenNs[i]
			l.Telemetry = &reported
		}
	}
}

// collections adds the garbage collections of all JVMs of the target to the loads' records.
func (f *life) collections() {
	if !f.trial.Watched.GC || !f.onJVM() || f.proc == nil {
		return
	}
	logs, err := gclog.ReadTrial(filepath.Join(f.lab.Dir, "logs"), f.trial.ID)
	if err != nil {
		return // the table shows that collections are unknown
	}
	for i := range f.rec.Loads {
		l := &f.rec.Loads[i]
		if l.WindowOpenedMonotonicNs == 0 || len(logs) == 0 {
			continue // the kernel does not report the opening, or there is no log
		}
		var all []record.GC
		for _, log := range logs {
			all = append(all, log.Window(l.WindowOpenedMonotonicNs,
				l.WindowOpenedMonotonicNs+l.WindowNs))
		}
		sum := gclog.Sum(all)
		l.GC = &sum
	}
}

// salt distinguishes the trace ids of trials.
func (f *life) salt() uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, f.rec.Time.UnixNano(), f.trial.ID)
	return h.Sum64()
}
