package truth_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/generator/truth"
	"prony.example/load/pace"
)

const ms = time.Millisecond

// at converts milliseconds to ns, from an origin other than 0.
func at(ms ...float64) (ns []int64) {
	for _, x := range ms {
		if math.IsInf(x, 1) {
			ns = append(ns, truth.Never)
		} else {
			ns = append(ns, 7e9+int64(math.Round(x*1e6)))
		}
	}
	return ns
}

// TestMoments checks all times of plans, in milliseconds after the first request.
func TestMoments(t *testing.T) {
	check := func(name string, p truth.Plan, came, answered []float64) {
		t.Helper()
		var got []int64
		for i, now := range at(came...) {
			got = append(got, p(now, truth.Request{N: int64(i + 1), OnConn: int64(i + 1)}).At)
		}
		if want := at(answered...); !slices.Equal(got, want) {
			t.Errorf("%s: answered at %d, want %d", name, got, want)
		}
	}
	never := math.Inf(1)
	draws := func(list ...int64) func(int64) time.Duration {
		return func(n int64) time.Duration { return time.Duration(list[n-1]) * ms }
	}
	fixed := truth.Fixed
	check("fixed", fixed(5*ms), []float64{0, 1, 1}, []float64{5, 6, 6})
	// 0+2; the second waits until 2, the third does not wait.
	check("queue", truth.Queue(draws(2, 2, 2)), []float64{0, 1, 5}, []float64{2, 4, 7})
	// Each request has the draw of its own number.
	check("queue of draws", truth.Queue(draws(3, 0, 4)), []float64{0, 0, 1}, []float64{3, 3, 7})
	// Two run at once; the third takes over from the first, the fourth from the second.
	check("cap", truth.Cap(2, 10*ms), []float64{0, 1, 2, 3, 30}, []float64{10, 11, 20, 21, 40})
	check("cap of one", truth.Cap(1, 10*ms), []float64{0, 1, 40}, []float64{10, 20, 50})
	check("stall", truth.Stall(10*ms, 5*ms, fixed(0)), []float64{0, 9.9, 10, 14, 14.9, 15, 25},
		[]float64{0, 9.9, 15, 15, 15, 15, 25})
	// Due during the freeze, at 11: sent at its end. Arrived during the freeze: accepted at its
	// end.
	check("stall of a slow server", truth.Stall(10*ms, 5*ms, fixed(3*ms)),
		[]float64{0, 6, 8, 12, 16}, []float64{3, 9, 15, 18, 19})
	// Frozen from 7 to 10 and from 17 to 20.
	check("pause", truth.Pause(10*ms, 3*ms, fixed(0)), []float64{0, 6.9, 7, 9, 10, 16.9, 17},
		[]float64{0, 6.9, 10, 10, 10, 16.9, 20})
	check("pause of a slow server", truth.Pause(10*ms, 3*ms, fixed(ms)),
		[]float64{0, 6.5, 9, 16, 16.5}, []float64{1, 10, 11, 20, 20})
	// 100 − t until 80, then 20.
	check("warm-up", truth.WarmUp(100*ms, 20*ms, 80*ms), []float64{0, 40, 80, 200},
		[]float64{100, 100, 100, 220})
	check("silent", truth.Every(3, truth.Silent, fixed(ms)), []float64{0, 0, 0, 0, 0, 0},
		[]float64{1, 1, never, 1, 1, never})
	check("hang", truth.Hang(10*ms, fixed(ms)), []float64{0, 9.9, 10, 20},
		[]float64{1, 10.9, never, never})
	// Two are served; the third and the fifth are refused at once; each end makes room.
	check("shed", truth.Shed(2, 10*ms), []float64{0, 1, 2, 10, 10.5, 11},
		[]float64{10, 11, 2, 20, 10.5, 21})
	check("drip", truth.Drip(20*ms, 10, 5*ms), []float64{0, 3}, []float64{20, 23})
	check("burn", truth.Burn(ms), []float64{0, 3}, []float64{0, 3})
}

// text reads a response as net/http does.
func text(t *testing.T, b []byte) (status int, body string, last bool) {
	t.Helper()
	r, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(b)), nil)
	if err != nil {
		t.Fatalf("%q: %v", b, err)
	}
	defer r.Body.Close()
	got, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatalf("%q: %v", b, err)
	}
	return r.StatusCode, string(got), r.Close
}

func TestAnswers(t *testing.T) {
	check := func(name string, p truth.Plan, n int64, status int, body string, last bool,
		then truth.End) {
		t.Helper()
		var r truth.Reply
		for k := range n {
			r = p(0, truth.Request{N: k + 1, OnConn: k + 1})
		}
		if gotStatus, got, close := text(t, r.Text); gotStatus != status || got != body ||
			close != last || r.Then != then {
			t.Errorf("%s: %d %q, last %v, then %d", name, gotStatus, got, close, r.Then)
		}
	}
	fixed := truth.Fixed(0)
	check("good", fixed, 1, 200, "ok", false, truth.Keep)
	check("before the wrong one", truth.Every(3, truth.Wrong, fixed), 2, 200, "ok", false,
		truth.Keep)
	check("wrong", truth.Every(3, truth.Wrong, fixed), 3, 200, "no", false, truth.Keep)
	check("wrong again", truth.Every(3, truth.Wrong, fixed), 6, 200, "no", false, truth.Keep)
	check("shed", truth.Shed(2, ms), 3, 503, "no", false, truth.Keep)
	check("renewed", truth.Renew(2, fixed), 2, 200, "ok", true, truth.Close)
	check("not yet renewed", truth.Renew(2, fixed), 1, 200, "ok", false, truth.Keep)
	check("drip", truth.Drip(0, 5, ms), 1, 200, ".....", false, truth.Keep)

	r := truth.Every(1, truth.Torn, fixed)(0, truth.Request{N: 1})
	if string(r.Text) != "HTTP/1.1 2" || r.Then != truth.Reset {
		t.Errorf("torn: %q, then %d", r.Text, r.Then)
	}
	r = truth.Drip(0, 5, ms)(0, truth.Request{N: 1})
	if rest := string(r.Text[r.First:]); rest != "...." || r.Step != ms {
		t.Errorf("of the drip %q leave one by one, %v apart", rest, r.Step)
	}
	if r := truth.Burn(ms)(0, truth.Request{N: 1}); r.Burn != ms {
		t.Errorf("burns %v", r.Burn)
	}
}

// responses returns the response times of n Poisson arrivals at a plan; refused ones are counted
// separately.
func responses(t *testing.T, p truth.Plan, perS float64, n int) (ns []float64, refused int) {
	t.Helper()
	arrivals, err := pace.Schedule{Arrivals: pace.Poisson, Rate: pace.Flat(perS)}.Process(11)
	if err != nil {
		t.Fatal(err)
	}
	for k := range n {
		now := arrivals.Next()
		r := p(now, truth.Request{N: int64(k + 1)})
		if bytes.HasPrefix(r.Text, []byte("HTTP/1.1 503")) {
			refused++
			continue
		}
		ns = append(ns, float64(r.At-now))
	}
	return ns, refused
}

// TestFormulas checks that a million arrivals agree with the textbook's formulas.
func TestFormulas(t *testing.T) {
	const n = 1_000_000
	check := func(name string, got, want, limit float64) {
		t.Helper()
		if off := got/want - 1; !(math.Abs(off) <= limit) {
			t.Errorf("%s: %g, want %g, off by %.2f %%", name, got, want, 100*off)
		}
	}
	mean := func(ns []float64) (sum float64) {
		for _, x := range ns {
			sum += x / float64(len(ns))
		}
		return sum
	}
	const s = float64(2 * ms)
	// M/D/1 at ρ = 0.7: s + 0.7·s/(2·0.3) = 2.1667·s (Pollaczek and Khinchine).
	ns, _ := responses(t, truth.Queue(func(int64) time.Duration { return 2 * ms }), 350, n)
	check("M/D/1 mean", mean(ns), s*(1+0.7/0.6), 0.01)
	// M/M/1 at ρ = 0.6: exponential with mean s/0.4, so p50 = ln 2 and p99 = ln 100 of that.
	ns, _ = responses(t, truth.Queue(truth.Exponential(2*ms, 3)), 300, n)
	slices.Sort(ns)
	check("M/M/1 mean", mean(ns), s/0.4, 0.01)
	check("M/M/1 p50", ns[n/2], math.Ln2*s/0.4, 0.01)
	check("M/M/1 p99", ns[n/100*99], math.Log(100)*s/0.4, 0.02)
	// 300/s · 10 ms keep 3 of 4 servers busy. M/D/4 has no short formula; its wait is near half of
	// M/M/4's, which is C/(4−3)·10 ms with Erlang's C(4, 3) = 0.5094, 5.094 ms.
	ns, _ = responses(t, truth.Cap(4, 10*ms), 300, n)
	check("M/D/4 wait", mean(ns)-float64(10*ms), 0.5094/2*float64(10*ms), 0.08)
	// B(4, 4) = (256/24)/(1 + 4 + 8 + 64/6 + 256/24) = 0.31068.
	_, refused := responses(t, truth.Shed(4, 20*ms), 200, n)
	check("Erlang B", float64(refused)/n, 0.31068, 0.005)
}

// TestExponential checks that draws depend only on seed and number, and are independent of the
// intervals between arrivals from the same seed: the correlation of n pairs has a standard
// deviation of 1/√n; 3.29 times that is exceeded once in a thousand cases.
func TestExponential(t *testing.T) {
	const n = 100_000
	draw := truth.Exponential(ms, 5)
	product := 0.0
	for k := range int64(n) {
		d := float64(draw(k)) / float64(ms)
		product += (d - 1) * (pace.Exp(5, uint64(k)) - 1) / n
	}
	if limit := 3.29 / math.Sqrt(n); math.Abs(product) > limit {
		t.Errorf("service times and gaps correlate by %g, limit %g", product, limit)
	}
	if a, b := draw(7), truth.Exponential(ms, 5)(7); a != b {
		t.Errorf("draw 7 is %v, then %v", a, b)
	}
	if a, b := draw(7), truth.Exponential(ms, 6)(7); a == b {
		t.Errorf("two seeds draw %v", a)
	}
}

var flagName = regexp.MustCompile(`--(\w+)`)

// TestKinds checks that each kind works with its defaults, is found by its name, and describes only
// its own parameters.
func TestKinds(t *testing.T) {
	names := map[string]bool{}
	for _, k := range truth.Kinds() {
		if p, err := k.Plan(k.Zero); err != nil || p == nil {
			t.Errorf("%s as it is: %v", k.Name, err)
		}
		if found, ok := truth.Find(k.Name); !ok || found.Name != k.Name || names[k.Name] {
			t.Errorf("%s is not found, or twice", k.Name)
		}
		names[k.Name] = true
		var needs []string
		for _, n := range k.Needs {
			needs = append(needs, n.Name)
			k.Zero.Field(n.Name) // panics if it is missing
		}
		for _, m := range flagName.FindAllStringSubmatch(k.Does+" "+k.Reads, -1) {
			if !slices.Contains(needs, m[1]) {
				t.Errorf("%s speaks of --%s, which it does not hear", k.Name, m[1])
			}
		}
		for _, n := range needs {
			// The effect of a service time on a freeze or a silence needs no description.
			said := n == "seed" || n == "service"
			if !said && !strings.Contains(k.Does+" "+k.Reads, n) {
				t.Errorf("%s does not speak of its %s", k.Name, n)
			}
		}
	}
	if _, ok := truth.Find("none"); ok {
		t.Error("a kind is found that there is not")
	}
}

func TestBadParameters(t *testing.T) {
	check := func(kind string, change func(*truth.Params), want string) {
		t.Helper()
		k, _ := truth.Find(kind)
		p := k.Zero
		change(&p)
		if _, err := k.Plan(p); err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v, want %q", kind, err, want)
		}
	}
	check("fixed", func(p *truth.Params) { p.Service = -1 },
		"fixed: parameter --service is out of range: it m")
	check("mm1", func(p *truth.Params) { p.Service = 0 }, "out of range: it must be greater than 0")
	check("cap", func(p *truth.Params) { p.N = 0 }, "n is out of range: it must be from 1 to 65536")
	check("cap", func(p *truth.Params) { p.N = 1 << 40 }, "n is out of range")
	check("wrong", func(p *truth.Params) { p.N = 0 },
		"n is out of range: it must be greater than 0")
	check("drip", func(p *truth.Params) { p.N = 1 << 30 }, "must be from 1 to 1048576")
	check("warmup", func(p *truth.Params) { p.After = 0 }, "after is out of range")
	check("pause", func(p *truth.Params) { p.Stall = p.Every }, "never ends")
	check("pause", func(p *truth.Params) { p.Every = 0 }, "every is out of range")
	check("stall", func(p *truth.Params) { p.Stall = -ms }, "it must not be negative")
}
