package trial_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/launch"
	"prony.example/internal/service"
	"prony.example/internal/suite"
	"prony.example/record"
)

// A system's processes start in order, the agent is in the environment of its processes only, and
// the record describes each process and the agent.
func TestLifeOfASystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		port := 8080
		w.lab.Port = func() (int, error) { port++; return port, nil }
		var launched []string
		w.launcher.Start = func(s launch.Spec) (http.Handler, time.Duration, error) {
			ride := "bare"
			if i := slices.IndexFunc(s.Env, func(e string) bool {
				return strings.HasPrefix(e, "AGENT=")
			}); i >= 0 {
				ride = s.Env[i]
			}
			last := s.Args[len(s.Args)-1]
			launched = append(launched, fmt.Sprintf("%s %s %s %d of %d MiB", s.Args[0], last, ride,
				s.ShareBytes>>20, s.MemoryBytes>>20))
			return w.handler(s.Name)
		}
		e := w.experiment("a")
		subject := e.Subjects["a"]
		subject.Service.Run.Processes = []service.Process{
			{Name: "back", Command: []string{"back"}, Ready: "/ready"},
			{Name: "front", Command: []string{"front", "-p", "{port}", "{back.port}",
				"http://me:secret@db/"}, Ready: "/ready"},
		}
		e.Subjects["a"] = subject
		e.Plan.Suite.Variants = []suite.Variant{{Name: "agent", Processes: []string{"back"},
			Env: map[string]suite.Text{"AGENT": "on {port}"}}}
		e.Plan.Trials[0].Variant = "agent"
		records, err := w.run(context.Background(), e)
		if err != nil || len(records) != 1 || records[0].Outcome != record.Measured {
			t.Fatalf("%d records, error %v", len(records), err)
		}
		// 64 MiB in two parts; front's port is 8082.
		want := []string{"back back AGENT=on 8081 32 of 64 MiB",
			"front http://me:secret@db/ bare 32 of 64 MiB"}
		if !slices.Equal(launched, want) {
			t.Errorf("launched %q, want %q", launched, want)
		}
		r := records[0]
		if got := fmt.Sprint(r.Provenance.VariantEnv); got != "[AGENT=on {port}]" {
			t.Errorf("rides %s", got)
		}
		if len(r.Processes) != 2 || r.Processes[0].Name != "back" ||
			// The ports, which differ in each trial, do not make a target's trials different.
			!slices.Equal(r.Processes[1].Args, []string{"front", "-p", "{port}", "{back.port}",
				"http://me:xxxxx@db/"}) ||
			!slices.Equal(r.Provenance.ServiceArgs, r.Processes[1].Args) {
			t.Fatalf("processes %+v", r.Processes)
		}
		// Each listens 40 ms after its own start; the wait between two requests is 20 ms at most.
		// The target was ready when both were, one after the other.
		sum := int64(0)
		for _, p := range r.Processes {
			if ms := p.ReadyNs / 1e6; ms < 40 || ms > 60 {
				t.Errorf("%s was ready after %d ms, want 40 to 60", p.Name, ms)
			}
			sum += p.ReadyNs
		}
		if diff := r.Start.ReadyNs - sum; diff < 0 || diff > 5e6 {
			t.Errorf("ready after %d, its processes after %d together", r.Start.ReadyNs, sum)
		}
		stops := slices.DeleteFunc(slices.Clone(w.notes), func(n string) bool {
			return !strings.HasPrefix(n, "stop ")
		})
		if len(stops) != 2 {
			t.Errorf("stopped %q, want both", stops)
		}
	})
}

// Passwords of URLs in commands and variables, and values of the user's environment, reach the
// service and are not recorded.
func TestSecretsAreNotRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const secret = "s3cret"
		w := newWorld(t)
		var launched launch.Spec
		w.launcher.Start = func(s launch.Spec) (http.Handler, time.Duration, error) {
			launched = s
			return w.handler(s.Name)
		}
		e := w.experiment("a")
		subject := e.Subjects["a"]
		subject.Service.Run.Command = []string{"a", "--db=redis://ann:" + secret + "@db"}
		e.Subjects["a"] = subject
		e.Plan.Suite.Variants = []suite.Variant{{Name: "agent",
			Env: map[string]suite.Text{"KEY": "Bearer ${KEY}",
				"DB": "redis://:" + secret + "@db"},
			UserEnv: map[string]suite.Text{"KEY": "Bearer " + secret}}}
		e.Plan.Trials[0].Variant = "agent"
		records, err := w.run(context.Background(), e)
		if err != nil || len(records) != 1 || records[0].Outcome != record.Measured {
			t.Fatalf("%d records, error %v", len(records), err)
		}
		if !slices.Contains(launched.Env, "KEY=Bearer "+secret) ||
			!slices.Contains(launched.Env, "DB=redis://:"+secret+"@db") ||
			!strings.Contains(launched.Args[1], secret) {
			t.Errorf("launched %q with %q", launched.Args, launched.Env)
		}
		text, err := json.Marshal(records[0])
		if err != nil || strings.Contains(string(text), secret) {
			t.Errorf("the record contains the secret, error %v: %s", err, text)
		}
		if got := records[0].Provenance.VariantEnv; !slices.Contains(got, "KEY=Bearer ${KEY}") {
			t.Errorf("the record lists %q", got)
		}
	})
}

// When a process of a system ends, the trial ends and names it.
func TestProcessOfASystemEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		port := 8080
		w.lab.Port = func() (int, error) { port++; return port, nil }
		started := 0
		w.launcher.Start = func(s launch.Spec) (http.Handler, time.Duration, error) {
			if started++; started == 2 {
				return nil, 0, fmt.Errorf("no database")
			}
			return w.handler(s.Name)
		}
		e := w.experiment("a")
		subject := e.Subjects["a"]
		for _, name := range []string{"database", "back", "front"} {
			subject.Service.Run.Processes = append(subject.Service.Run.Processes,
				service.Process{Name: name, Command: []string{name}, Ready: "/ready"})
		}
		e.Subjects["a"] = subject
		records, err := w.run(context.Background(), e)
		if err != nil || len(records) != 1 {
			t.Fatalf("%d records, error %v", len(records), err)
		}
		f := records[0].Failure
		if f == nil || f.Step != "launch" || !strings.Contains(f.Error, "back: exit status 1") ||
			len(f.Log) == 0 || f.Log[len(f.Log)-1] != "back: no database" ||
			!strings.Contains(f.Hint, ".back.log") {
			t.Errorf("failure %+v", f)
		}
		if len(records[0].Processes) != 2 {
			t.Errorf("processes %+v", records[0].Processes)
		}
	})
}
