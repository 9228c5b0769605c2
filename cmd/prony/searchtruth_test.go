package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// capacityMD1 is the rate of Poisson arrivals, a second, up to which a queue of one server that
// takes serviceS for each keeps p99 of its response times at so many service times: M/D/1, by
// Crommelin's series for the waiting time (Post Office Electrical Engineers' Journal 25, 1932),
// which for a whole number n of service times has no term of cancelling parts that matters:
// P(W <= n) = (1-rho) * sum over k to n of (rho(k-n))^k / k! * exp(-rho(k-n)).
func capacityMD1(serviceS float64, times int) float64 {
	n := float64(times - 1) // that it may wait
	within := func(rho float64) (p float64) {
		factorial := 1.0
		for k := 0.0; k <= n; k++ {
			factorial *= max(k, 1)
			p += math.Pow(rho*(k-n), k) / factorial * math.Exp(-rho*(k-n))
		}
		return (1 - rho) * p
	}
	return highest(1, 60, func(rho float64) bool { return within(rho) >= 0.99 }) / serviceS
}

// highest halves the way to the most so often, towards the largest that is kept.
func highest(most float64, times int, kept func(float64) bool) float64 {
	lo, hi := 0.0, most
	for range times {
		if m := (lo + hi) / 2; kept(m) {
			lo = m
		} else {
			hi = m
		}
	}
	return lo
}

// capacityMM1 is likewise of exponential service: p99 is ln(100)·s/(1−ρ).
func capacityMM1(serviceS, limitS float64) float64 {
	return (1 - math.Log(100)*serviceS/limitS) / serviceS
}

// inSteps is what a search for a capacity means: the rate at which half of the steps, of so many
// seconds, keep p99 below a limit, for a queue of one server. Where a queue remembers longer than a
// step lasts that is above the rate that all time together would keep, as it is for M/M/1 here.
func inSteps(work func(*rand.Rand) float64, most, stepS, limitS float64) float64 {
	const steps, leadS = 400, 0.3
	return highest(most, 12, func(rate float64) bool {
		r, held := rand.New(rand.NewPCG(1, 2)), 0
		for range steps {
			free, took := 0.0, []float64(nil)
			for at := r.ExpFloat64() / rate; at < leadS+stepS; at += r.ExpFloat64() / rate {
				free = max(free, at) + work(r)
				if at > leadS {
					took = append(took, free-at)
				}
			}
			slices.Sort(took)
			if len(took) == 0 || took[len(took)*99/100] < limitS {
				held++
			}
		}
		return held > steps/2
	})
}

// queueServer starts this program as a truth server of a kind, which the test's end ends, and gives
// its URL.
func queueServer(t *testing.T, kind, service string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "truth", kind, "--service", service)
	cmd.Env = append(os.Environ(), "PRONY_TEST_MAIN=1")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return truthURL.FindString(line)
}

var truthURL = regexp.MustCompile(`http://[0-9.]+:[0-9]+`)

// What a search finds of real servers in processes of their own, whose capacity under an objective
// is arithmetic, by the real program in another one: by the verb capacity, and as a load of versus,
// which finds both rates and so their ratio.
func TestCapacitiesAreTrue(t *testing.T) {
	testsets.Long(t, "searches for capacities that are known", testsets.Needs{})
	testsets.Cores(t)
	md1, mm1 := queueServer(t, "md1", "2ms"), queueServer(t, "mm1", "1ms")
	const limitS = 0.020
	fixed := func(*rand.Rand) float64 { return 0.002 }
	drawn := func(r *rand.Rand) float64 { return 0.001 * r.ExpFloat64() }
	truths := map[string]float64{md1: inSteps(fixed, 500, 1, limitS),
		mm1: inSteps(drawn, 1000, 1, limitS)}
	for _, long := range [][2]float64{
		{capacityMD1(0.002, 10), inSteps(fixed, 500, 30, limitS)},
		{capacityMM1(0.001, limitS), inSteps(drawn, 1000, 30, limitS)},
	} {
		if math.Abs(long[1]/long[0]-1) > 0.03 {
			t.Errorf("in long steps %v, by arithmetic %v", long[1], long[0])
		}
	}
	names := map[string]string{md1: "md1", mm1: "mm1"}
	prony := func(args ...string) (stdout, stderr string, exit int) {
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env = append(os.Environ(), "PRONY_TEST_MAIN=1", "PRONY_BESIDE=1")
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		_ = cmd.Run() // its exit code tells
		return out.String(), errs.String(), cmd.ProcessState.ExitCode()
	}
	const slo = "p99<20ms"
	for url, truth := range truths {
		tries(t, "capacity "+names[url], truth, func(t *testing.T) (lo, hi float64, reason string) {
			stdout, stderr, exit := prony("capacity", url+"/", "--slo", slo, "--budget", "40s",
				"--window", "1s", "--json")
			var got capacityReport
			if err := json.Unmarshal([]byte(stdout), &got); err != nil || got.Capacity == nil {
				t.Fatalf("exit %d, error %v: %s%s", exit, err, stdout, stderr)
			}
			c := got.Capacity
			return c.LoPerS, c.HiPerS, c.Reason
		})
	}
	ownFolder(t)
	run, seen := 0, map[string]int{} // a run has both, and who looks again wants another one
	for url, truth := range truths {
		tries(t, "versus "+names[url], truth, func(t *testing.T) (lo, hi float64, reason string) {
			again := seen[url] == run
			if again {
				run++
			}
			seen[url] = run
			out := fmt.Sprintf("r%d", run)
			if !again {
				return searchOf(t, out, names[url])
			}
			stdout, stderr, exit := prony("versus", "-n", "md1", "--url", md1, "-n", "mm1", "--url",
				mm1, "--get", "/", "--slo", slo, "--blocks", "1", "--again=false", "--measure",
				"1s", "--warmup", "300ms", "--out", out)
			if exit != cli.Fine && exit != cli.Invalid {
				t.Fatalf("exit %d\n%s%s", exit, stdout, stderr)
			}
			return searchOf(t, out, names[url])
		})
	}
}

// searchOf is what a run has found of a target.
func searchOf(t *testing.T, run, target string) (lo, hi float64, reason string) {
	t.Helper()
	_, records, _, err := record.Read(run)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		switch {
		case r.Target.Name != target:
		case r.Outcome != record.Measured:
			return 0, 0, r.Failure.Error
		default:
			s := r.Loads[len(r.Loads)-1].Search
			return s.LoPerS, s.HiPerS, s.Reason
		}
	}
	t.Fatalf("no record of %s", target)
	return 0, 0, ""
}

// tries looks for a capacity until the machine lets a search end, three times, and holds the
// interval that is found against the truth. What is beside the test can only lower what is found,
// so that it is held more loosely from below. One of twenty intervals misses by chance, and a stall
// may end a search: two in a row, and by a twentieth, are no chance.
func tries(t *testing.T, name string, truth float64,
	look func(*testing.T) (lo, hi float64, reason string)) {
	t.Run(name, func(t *testing.T) {
		said, missed := "", false
		for range 3 {
			lo, hi, reason := look(t)
			busy := func(word string) bool { return strings.Contains(reason, word) }
			switch {
			case reason == "":
				t.Logf("found %.0f to %.0f/s of %.0f/s", lo, hi, truth)
				if lo <= 1.05*truth && hi >= 0.9*truth && lo >= 0.7*truth && hi <= 1.5*truth {
					return
				}
			case slices.ContainsFunc([]string{"busy", "budget ended", "lag: "}, busy):
				said = reason
				continue
			default:
				t.Logf("the search ended by itself: %s", reason)
			}
			if missed {
				t.Fatal("that is not the capacity")
			}
			missed = true
		}
		if missed {
			t.Fatal("that is not the capacity")
		}
		t.Skip("the machine is too busy for a search: ", said)
	})
}
