package suite

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"prony.example/internal/base/strictyaml"
	"prony.example/record"
)

// Target is what a plan needs of a target in the catalog. Mode replaces {mode} in paths.
type Target struct {
	Name, Service, Mode, Runtime, Language string
	Contracts                              []string
	Build                                  string   // of its service; empty: the default
	Builds                                 []string // all further builds of its service
	Processes                              []string // of a system, by name
	Protocols                              []string // beside HTTP/1.1, for variants
	// Startup is its approximate startup time, for estimates.
	Startup  time.Duration
	Launcher string // the only launcher that can start it; empty: the suite's launchers
	// Connections is the number of connections of its loads and its warm-up; 0: the suite's.
	Connections int
	// Body is the size of request bodies; 0: the suite's bodies.
	Body strictyaml.Size
	// NoImage is why it cannot be started as a container; empty: it can.
	NoImage string
	// ControlOf is the target of which it is a second copy; empty: none.
	ControlOf string
	// Aside is why it is measured only if it is named; empty: it is not restricted.
	Aside string
}

// Trial is one planned measurement: a target × variant under one scenario and all loads, offered by
// one load generator.
type Trial struct {
	// ID is unique in the plan and valid as a file name: "b1-03-java-jdk.virtual" is block 1, order
	// 3. With several scenarios, load generators, launchers or arms, their names follow after "-".
	ID       string `json:"id"`
	Block    int    `json:"block"` // from 1
	Order    int    `json:"order"` // position in the whole plan, from 1
	Target   string `json:"target"`
	Scenario string `json:"scenario"`
	Variant  string `json:"variant"`            // "none": the bare target
	Driver   string `json:"driver,omitempty"`   // one of Drivers
	Launcher string `json:"launcher,omitempty"` // one of Launchers but the first; empty: the first
	Arm      string `json:"arm,omitempty"`      // one of Arms if the target is compared with itself
	Role     string `json:"role,omitempty"`     // one of record's; empty: of the comparison
	Profile  string `json:"profile,omitempty"`  // of an observed trial: its kind
	// Group is the trial's group of targets, from 1, if memory does not allow all targets of a
	// start at once; 0: there are no groups. Groups have blocks of their own.
	Group int `json:"group,omitempty"`
	// Start names the start in which the trial runs side by side with its neighbors in the plan;
	// empty: it runs alone.
	Start string `json:"start,omitempty"`
	// Seed is the seed of the trial's loads, below 2^53. It is the same for all targets within a
	// block and scenario, so that all get the same arrivals and keys.
	Seed uint64 `json:"seed"`
	// Connections is the number of connections of its loads and its warm-up; 0: the suite's.
	Connections int `json:"connections,omitempty"`
	// Body is the size of request bodies; 0: the suite's bodies.
	Body strictyaml.Size `json:"body,omitempty"`
}

// Plan is a suite that is expanded against a catalog and fixed.
type Plan struct {
	Suite    *Suite  // a copy, which does not follow later changes of the original
	Baseline string  // the target's name; empty: none, or left out by an override of the targets
	Trials   []Trial // in the order in which they run
	// Reserve are the trials of further starts, in order. They run only if a precision needs them,
	// or if starts lost a target.
	Reserve []Trial
	// Aside are the targets that match the suite's patterns and must be named to run.
	Aside []Target
	// Uncontained are the targets that the suite also wants in containers, and that cannot be.
	Uncontained []Target
	// Blockwise is why slices are impossible and targets run one after another; empty: they run
	// side by side, or there is only one.
	Blockwise string
	// Quick is how a preview differs because of its targets; empty: it does not.
	Quick string
	// Grouped is how targets are divided and why; empty: all of a scenario run side by side.
	Grouped string
	// Hash identifies what is measured: the suite after overrides, without file, hash and question,
	// and the trials. SHA-256, the first 16 hex digits.
	Hash string

	targets map[string]Target // by name
	control string            // target that is a second copy of the baseline; empty: none
}

// Targets returns the names of a plan's targets, each once, in the order of their first trials.
func (p *Plan) Targets() (out []string) {
	for _, t := range p.Trials {
		if !slices.Contains(out, t.Target) {
			out = append(out, t.Target)
		}
	}
	return out
}

// none is the variant of a bare target.
const none = "none"

// Plan lists the trials: within each block every target × variant × scenario × driver once,
// shuffled (Fisher-Yates on PCG-DXSM, O'Neill 2014) by only the seed and the block's number. The
// catalog's order does not matter. If a pattern or a baseline matches no target, the error has
// file, line and the nearest name.
func (s *Suite) Plan(catalog []Target) (*Plan, error) {
	targets, skipped, err := s.choose(catalog)
	if err != nil {
		return nil, err
	}
	if !s.retargeted { // targets that a flag or a missing tool selects may have no variant
		if err := s.fits(targets); err != nil {
			return nil, err
		}
	}
	frozen := *s
	s = &frozen
	p := &Plan{Suite: s, Aside: skipped, Quick: s.extend(targets)}
	if p.Baseline, err = s.baseline(catalog, targets); err != nil {
		return nil, err
	}
	p.targets = map[string]Target{}
	for _, t := range targets {
		p.targets[t.Name] = t
		if t.ControlOf != "" && t.ControlOf == p.Baseline {
			p.control = t.Name
		}
		if t.NoImage = s.uncontained(t); t.NoImage != "" {
			p.Uncontained = append(p.Uncontained, t)
		}
	}
	if !slices.ContainsFunc(targets, func(t Target) bool { return len(s.launchers(t)) > 0 }) &&
		len(p.Uncontained) > 0 {
		lost := p.Uncontained[0]
		return nil, s.where().Problem("launchers", fmt.Sprintf("none of the targets can run as a "+
			"container; %s: %s", lost.Name, lost.NoImage), "add process to the launchers, or add "+
			"the target's image build")
	}
	if err := p.repeat(targets); err != nil {
		return nil, err
	}
	if err := p.join(); err != nil {
		return nil, err
	}
	if s.usesCapacity() {
		p.Trials = append(s.beside(record.Pilot, targets), p.Trials...)
	}
	if s.Observed {
		p.Trials = append(p.Trials, s.beside(record.Observed, targets)...)
	}
	if err := p.reserve(targets); err != nil {
		return nil, err
	}
	p.number()
	p.Hash = p.hash()
	return p, nil
}

// repeat adds the trials of all blocks. A run with a time has only as many as can be read.
func (p *Plan) repeat(targets []Target) error {
	s := p.Suite
	for block := 1; block <= s.Blocks; block++ {
		more := s.block(block, targets)
		switch {
		case len(p.Trials)+len(more) <= record.MaxTrials:
			p.Trials = append(p.Trials, more...)
		case s.For > 0:
			return nil
		default:
			return s.where().Problem("blocks", fmt.Sprintf("the plan has more than %d trials, "+
				"which a run cannot have", record.MaxTrials),
				"use fewer blocks, targets or scenarios")
		}
	}
	return nil
}

// number sets the positions and ids of trials.
func (p *Plan) number() {
	s, width := p.Suite, max(2, len(fmt.Sprint(len(p.Trials))))
	name := func(t *Trial, order int) {
		t.Order = order
		t.ID = fmt.Sprintf("%s-%0*d-%s", cmp.Or(t.Role, fmt.Sprintf("b%d", t.Block)), width,
			t.Order, plain(t.Target))
		for _, part := range []struct {
			notify bool
			name   string
		}{
			{t.Profile != "", t.Profile}, {len(s.Scenarios) > 1, plain(t.Scenario)},
			{len(s.Drivers) > 1, t.Driver}, {t.Launcher != "", t.Launcher},
			{t.Variant != none, t.Variant}, {t.Arm != "", t.Arm},
		} {
			if part.notify {
				t.ID += "-" + part.name
			}
		}
	}
	for i := range p.Trials {
		name(&p.Trials[i], i+1)
	}
	for i := range p.Reserve {
		name(&p.Reserve[i], len(p.Trials)+i+1)
	}
}

// block returns the trials of one block in their order, without order numbers.
func (s *Suite) block(block int, targets []Target) []Trial {
	var trials []Trial
	for _, t := range targets {
		for _, variant := range s.variants(t) {
			for _, sc := range s.Scenarios {
				if !sc.has(variant) || !sc.kept(t) {
					continue
				}
				trials = append(trials, s.trials(block, t, variant, sc.Name)...)
			}
		}
	}
	rand.New(rand.NewPCG(s.Seed, uint64(block))).Shuffle(len(trials), func(i, j int) {
		trials[i], trials[j] = trials[j], trials[i]
	})
	return trials
}

// trials returns the trials of one target and variant under one scenario, in one block.
func (s *Suite) trials(block int, target Target, variant, scene string) (out []Trial) {
	for _, driver := range s.drivers() {
		for _, launcher := range s.launchers(target) {
			for _, arm := range s.arms() {
				out = append(out, Trial{Block: block, Target: target.Name, Scenario: scene,
					Variant: variant, Driver: driver, Launcher: launcher, Arm: arm,
					Seed: s.loadSeed(block, scene), Connections: target.Connections,
					Body: target.Body})
			}
		}
	}
	return out
}

// launchers returns the suite's launchers that can start a target. The default one is "".
func (s *Suite) launchers(t Target) (out []string) {
	for _, name := range s.Launchers {
		switch {
		case name == Launchers[0]:
			if t.Launcher == "" {
				out = append(out, "")
			}
		case t.NoImage == "" && (len(t.Processes) == 0 || !Pods(name)):
			out = append(out, name)
		}
	}
	switch {
	case len(out) > 0:
		return out
	case t.Launcher != "":
		return []string{t.Launcher}
	case len(s.Launchers) == 0:
		return []string{""}
	}
	return nil
}

// uncontained returns why a target cannot use all of the suite's launchers; empty: it can.
func (s *Suite) uncontained(t Target) string {
	switch {
	case !others(s.Launchers, Launchers[0]) || t.Launcher != "":
		return ""
	case t.NoImage == "" && len(t.Processes) > 0 && slices.ContainsFunc(s.Launchers, Pods):
		return "a system of several processes cannot run as a pod yet"
	}
	return t.NoImage
}

// Arms are the two trials of a target that is compared with itself. They differ only in name.
var Arms = []string{"a", "b"}

func (s *Suite) arms() []string {
	if s.AA {
		return Arms
	}
	return []string{""}
}

func (s *Suite) drivers() []string {
	if len(s.Drivers) == 0 {
		return Drivers[:1]
	}
	return s.Drivers
}

// loadSeed depends on the scenario's name and not on its position, so that a scenario gets the same
// requests whatever else the suite contains. FNV-1a separates its stream from those of the
// shuffles.
func (s *Suite) loadSeed(block int, scenario string) uint64 {
	h := fnv.New64a()
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(block)))
	h.Write([]byte(scenario))
	return rand.NewPCG(s.Seed, h.Sum64()).Uint64() & maxExact
}

// plain makes a name valid in file names: "java-jdk/virtual" becomes java-jdk.virtual, and spaces
// become dashes.
func plain(name string) string {
	return strings.NewReplacer("/", ".", " ", "-").Replace(name)
}

// hash leaves out defaults, including Prony's own generator, so that a plan keeps its hash when
// suites get new keys.
func (p *Plan) hash() string {
	s := *p.Suite
	s.Hash, s.File, s.Question, s.Columns = "", "", "", nil
	trials := slices.Clone(p.Trials)
	for i := range trials {
		if trials[i].Driver == Drivers[0] {
			trials[i].Driver = ""
		}
	}
	return hashAsJSON(struct {
		Suite    Suite
		Baseline string
		Trials   []Trial
	}{s, p.Baseline, trials})
}

// choose returns the targets that match the patterns and support the contract, by name, and
// separately the matching targets that must be named and are not.
func (s *Suite) choose(catalog []Target) (chosen, skipped []Target, err error) {
	patterns := s.Targets
	if len(patterns) == 0 {
		patterns = []string{"all"}
	}
	for i, pattern := range patterns {
		matched := slices.DeleteFunc(slices.Clone(catalog), func(t Target) bool {
			return !t.matches(pattern)
		})
		retained := slices.DeleteFunc(slices.Clone(matched), func(t Target) bool {
			return s.Contract != "" && !slices.Contains(t.Contracts, s.Contract)
		})
		keyPath := fmt.Sprintf("targets[%d]", i)
		switch {
		case len(matched) == 0 && pattern != "all":
			return nil, nil, noTarget(s.where(), keyPath, pattern, catalog)
		case len(retained) == 0 && pattern == "all":
			return nil, nil, s.where().Problem("contract",
				fmt.Sprintf("no target gives the contract %s", s.Contract), "")
		case len(retained) == 0:
			return nil, nil, s.where().
				Problem(keyPath, fmt.Sprintf("no target that matches %q gives the contract "+
					"%s", pattern, s.Contract), "")
		}
		for _, t := range retained {
			if t.Aside == "" || pattern == t.Name {
				chosen = append(chosen, t)
			} else {
				skipped = append(skipped, t)
			}
		}
	}
	chosen = byName(chosen)
	skipped = slices.DeleteFunc(byName(skipped), func(t Target) bool {
		return slices.ContainsFunc(chosen, func(c Target) bool { return c.Name == t.Name })
	})
	if len(chosen) == 0 {
		return nil, nil, s.where().Problem("targets", fmt.Sprintf("target %s is excluded by "+
			"default: %s",
			skipped[0].Name, skipped[0].Aside), "write its full name in targets to measure it")
	}
	return chosen, skipped, nil
}

// byName sorts targets and removes duplicates.
func byName(targets []Target) []Target {
	slices.SortFunc(targets, func(a, b Target) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(targets, func(a, b Target) bool { return a.Name == b.Name })
}

func (t Target) matches(pattern string) bool {
	return pattern == "all" || matches(pattern, t.Name) || matches(pattern, t.Service)
}

// where returns the file for errors about a target, or nil if a flag named it.
func (s *Suite) where() *strictyaml.Document {
	if s.retargeted {
		return nil
	}
	return s.source
}

func noTarget(src *strictyaml.Document, keyPath, pattern string, catalog []Target) error {
	var names []string
	for _, t := range catalog {
		names = append(names, t.Name, t.Service)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	hint := "there are " + strings.Join(names, ", ")
	if len(names) == 0 {
		hint = "the catalog has no targets"
	}
	return src.Problem(keyPath, fmt.Sprintf("no target or service matches %q", pattern),
		strictyaml.Meant(pattern, names, hint))
}

// baseline returns the name of the target that the suite compares with. The name of a service with
// one target is also valid.
func (s *Suite) baseline(catalog, chosen []Target) (string, error) {
	if s.Baseline == "" {
		return "", nil
	}
	fits := func(t Target) bool { return t.Name == s.Baseline || t.Service == s.Baseline }
	var names []string
	for _, t := range chosen {
		if t.Name == s.Baseline {
			return t.Name, nil
		}
		if fits(t) {
			names = append(names, t.Name)
		}
	}
	switch {
	case len(names) == 1:
		return names[0], nil
	case len(names) > 1:
		return "", s.source.Problem("baseline",
			fmt.Sprintf("baseline %q is a service with several targets", s.Baseline),
			"choose one of these targets: "+strings.Join(names, ", "))
	case !slices.ContainsFunc(catalog, fits):
		return "", noTarget(s.source, "baseline", s.Baseline, catalog)
	case s.retargeted:
		return "", nil // requested by a flag: the others are measured without it
	}
	subject := "this project"
	if s.Contract != "" {
		subject = "contract " + s.Contract
	}
	return "", s.source.Problem("baseline",
		fmt.Sprintf("baseline %q is not among the targets of %s", s.Baseline, subject),
		"add the baseline to targets, or remove the key baseline")
}

// Estimate returns the least and the greatest time of the plan: if each target starts in its
// Startup and is warm as soon as can be detected, and if each warm-up takes its maximum. It does
// not count drains, which end with the last response, and builds. A run with a time budget has at
// least one complete block.
func (p *Plan) Estimate() (least, most time.Duration) {
	lasts := time.Duration(p.Suite.For)
	for _, t := range p.Trials {
		if soon, late := p.estimate(t); lasts == 0 || t.Role != "" {
			least, most = least+soon, most+late
		}
	}
	if s := p.Suite; s.Precision.Within > 0 {
		most = max(most, time.Duration(s.Precision.Within))
	} else if s.Precision.Half > 0 {
		most += most / time.Duration(s.Blocks) * time.Duration(s.MostStarts()-s.Blocks)
	}
	if lasts > 0 {
		soon, late := p.Block()
		least, most = least+max(lasts, soon), most+max(lasts, late)
	}
	return least, most
}

// Block returns the time of the first block, as Estimate does.
func (p *Plan) Block() (least, most time.Duration) {
	for _, t := range p.Trials {
		if t.Block == 1 && t.Role == "" {
			soon, late := p.estimate(t)
			least, most = least+soon, most+late
		}
	}
	return least, most
}

// estimate returns the time of one trial, as Estimate does.
func (p *Plan) estimate(t Trial) (least, most time.Duration) {
	target, w := p.targets[t.Target], p.Suite.Warmup
	least = target.Startup
	for _, l := range p.Suite.OfTrial(t) {
		least += l.Length()
	}
	if t.Start != "" {
		least += p.Suite.slicesLast()
	}
	w = w.ByRuntime(target.Runtime, t.Start != "")
	return least + min(time.Duration(w.Max), max(time.Duration(w.Min), steady)),
		least + time.Duration(w.Max)
}

// slicesLast returns how long a target is loaded in the slices of a start. Open slices take half as
// long as closed ones.
func (s *Suite) slicesLast() time.Duration {
	closed := slices.IndexFunc(s.Loads, Load.Sliceable)
	if closed < 0 {
		return 0
	}
	if slices.ContainsFunc(s.Loads, func(l Load) bool {
		return l.OpenSliceable(s.Loads[closed].Name)
	}) {
		return time.Duration(s.Slices) * 3 / 2
	}
	return time.Duration(s.Slices)
}

// steady is how long a rate must keep its level to count as steady.
const steady = 2 * time.Second
