package profile

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	pprof "github.com/google/pprof/profile"

	"prony.example/internal/base/lazyregexp"
)

// lineBytes limits a line of folded stacks: async-profiler's deepest stack has 2048 frames.
const lineBytes = 1 << 20

// seen is the type of the value that counts samples, also in Go's profiles. Estimated numbers of
// objects and contentions don't count samples.
const seen = "samples"

// unread names a frame that the tool could not read.
const unread = "[unknown]"

// Stacks collects samples by stack for a profile.
type Stacks struct {
	types   []*pprof.ValueType
	samples map[string]*stack // by frames, joined
}

type stack struct {
	frames        []string // outermost first
	times, weight int64
}

// NewStacks returns Stacks for one kind. A sample's values are the number of occurrences and the
// amount in the kind's unit.
func NewStacks(kind string) *Stacks {
	return &Stacks{samples: map[string]*stack{}, types: []*pprof.ValueType{
		{Type: seen, Unit: Count}, {Type: kind, Unit: Unit(kind)}}}
}

// Add records a stack, outermost frame first, with its occurrences and amount. It cleans frames by
// Clean and leaves out empty ones.
func (s *Stacks) Add(frames []string, times, weight int64) {
	cleaned := make([]string, 0, len(frames))
	for _, f := range frames {
		if f = Clean(f); f != "" {
			cleaned = append(cleaned, f)
		}
	}
	if len(cleaned) == 0 {
		cleaned = append(cleaned, unread)
	}
	cleaned = mounted(cleaned)
	key := strings.Join(cleaned, "\x00")
	place := s.samples[key]
	if place == nil {
		place = &stack{frames: cleaned}
		s.samples[key] = place
	}
	place.times += times
	place.weight += weight
}

// Profile returns a profile of the added stacks, in an order that depends only on them. It has no
// addresses and no mappings: a function is its name.
func (s *Stacks) Profile() *pprof.Profile {
	last := s.types[len(s.types)-1]
	// Profiles without a type of period cannot be merged.
	p := &pprof.Profile{SampleType: s.types, DefaultSampleType: last.Type, PeriodType: last}
	locations := map[string]*pprof.Location{}
	for _, key := range slices.Sorted(maps.Keys(s.samples)) {
		from := s.samples[key]
		sample := &pprof.Sample{Value: []int64{from.times, from.weight}}
		for _, name := range slices.Backward(from.frames) {
			if locations[name] == nil {
				id := uint64(len(p.Location) + 1)
				f := &pprof.Function{ID: id, Name: name, SystemName: name}
				locations[name] = &pprof.Location{ID: id, Line: []pprof.Line{{Function: f}}}
				p.Function = append(p.Function, f)
				p.Location = append(p.Location, locations[name])
			}
			sample.Location = append(sample.Location, locations[name])
		}
		p.Sample = append(p.Sample, sample)
	}
	return p
}

// EachFolded visits the lines of folded stacks: frames joined by semicolons, outermost first, a
// space and a number (Gregg's flamegraph.pl). An empty stack means that the tool, such as py-spy,
// could not read it. Errors name the line.
func EachFolded(r io.Reader, visit func(frames []string, n int64)) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, lineBytes)
	for pos := 1; lines.Scan(); pos++ {
		line := strings.TrimRight(lines.Text(), " \r\n")
		if line == "" {
			continue
		}
		i := strings.LastIndexByte(line, ' ')
		if i < 0 {
			return fmt.Errorf("read folded stacks, line %d: no number after %q", pos, line)
		}
		n, err := strconv.ParseInt(line[i+1:], 10, 64)
		if err != nil {
			return fmt.Errorf("read folded stacks, line %d: %w", pos, err)
		}
		visit(strings.Split(strings.TrimSpace(line[:i]), ";"), n)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read folded stacks: %w", err)
	}
	return nil
}

// Folded returns a profile as sorted folded stacks, by the value at Main. Semicolons and line ends
// in names become commas and spaces.
func Folded(p *pprof.Profile) []byte {
	totals := map[string]int64{}
	index := Main(p)
	safe := strings.NewReplacer(";", ",", "\n", " ")
	for _, s := range p.Sample {
		var names []string
		for _, name := range frames(s) {
			names = append(names, safe.Replace(name))
		}
		totals[strings.Join(names, ";")] += s.Value[index]
	}
	var b strings.Builder
	for _, line := range slices.Sorted(maps.Keys(totals)) {
		if totals[line] != 0 {
			fmt.Fprintf(&b, "%s %d\n", line, totals[line])
		}
	}
	return []byte(b.String())
}

// Main returns the index of the value that views show: the profile's default, or the last one,
// which is pprof's rule.
func Main(p *pprof.Profile) int {
	for i, t := range p.SampleType {
		if t.Type == p.DefaultSampleType {
			return i
		}
	}
	return len(p.SampleType) - 1
}

// Total returns the sum of the value at Main, and its unit.
func Total(p *pprof.Profile) (int64, string) {
	if len(p.SampleType) == 0 {
		return 0, Count
	}
	index, sum := Main(p), int64(0)
	for _, s := range p.Sample {
		sum += s.Value[index]
	}
	return sum, p.SampleType[index].Unit
}

// Samples returns the number of samples, which determines the precision of shares, or -1 if the
// profile lacks it.
func Samples(p *pprof.Profile) int64 {
	index := slices.IndexFunc(p.SampleType, func(t *pprof.ValueType) bool {
		return t.Type == seen && t.Unit == Count
	})
	if index < 0 {
		return -1
	}
	var sum int64
	for _, s := range p.Sample {
		sum += s.Value[index]
	}
	return sum
}

// Merge adds up profiles of one kind, such as those of a target's processes. They must have the
// same values in the same units.
func Merge(all ...*pprof.Profile) (*pprof.Profile, error) {
	if len(all) == 0 {
		return nil, fmt.Errorf("merge profiles: the list of profiles is empty")
	}
	p, err := pprof.Merge(all)
	if err != nil {
		return nil, fmt.Errorf("merge profiles: %w", err)
	}
	p.DefaultSampleType = all[0].DefaultSampleType
	return p, nil
}

// frames returns the functions of a sample, outermost first, inlined ones included.
func frames(s *pprof.Sample) (out []string) {
	for _, l := range slices.Backward(s.Location) {
		if len(l.Line) == 0 {
			out = append(out, unknown(l))
		}
		for _, line := range slices.Backward(l.Line) {
			if line.Function == nil || line.Function.Name == "" {
				out = append(out, unknown(l))
			} else {
				out = append(out, line.Function.Name)
			}
		}
	}
	return out
}

// unknown names a location without a symbol by its file, because addresses differ from one start to
// the next.
func unknown(l *pprof.Location) string {
	if l.Mapping != nil && l.Mapping.File != "" {
		return "[" + l.Mapping.File[strings.LastIndexByte(l.Mapping.File, '/')+1:] + "]"
	}
	return unread
}

// hidden and numbered match parts of names that differ between starts of a JVM and would split a
// function: addresses and counters of hidden and generated classes.
var (
	hidden   = lazyregexp.New(`[./+]0x[0-9a-f]+`)
	numbered = lazyregexp.New(`(\$\$Lambda|LambdaForm\$D?MH|GeneratedMethodAccessor|` +
		`GeneratedConstructorAccessor|GeneratedSerializationConstructorAccessor|\$Proxy)` +
		`[$./]?[0-9]+`)
)

// Clean removes from a function's name what differs between processes. Clean names stay unchanged.
func Clean(name string) string {
	name = hidden.ReplaceAllString(strings.TrimSpace(name), "")
	return numbered.ReplaceAllString(name, "$1")
}

// VirtualThread is the frame that replaces the frames with which a carrier thread runs a virtual
// thread: about a dozen in every stack, which are not the program's.
const VirtualThread = "(virtual thread)"

// mountedAt is the first method of every virtual thread's own stack.
const mountedAt = "java.lang.VirtualThread.run"

// mounted replaces the carrier's frames of a virtual thread's stack.
func mounted(frames []string) []string {
	for i, f := range frames {
		if f == mountedAt {
			return append([]string{VirtualThread}, frames[i+1:]...)
		}
	}
	return frames
}

// Short returns a name without its packages: "DispatcherServlet.doDispatch", "http.(*conn).serve".
// Text in brackets stays unchanged.
func Short(name string) string {
	head, tail := name, ""
	if i := strings.IndexAny(name, "[(< "); i >= 0 {
		head, tail = name[:i], name[i:]
	}
	if i := strings.LastIndexByte(head, '/'); i >= 0 {
		return head[i+1:] + tail
	}
	// Java: at least two lower-case packages, then a class.
	parts := strings.Split(head, ".")
	for i, part := range parts {
		if part == "" {
			break
		}
		if unicode.IsUpper([]rune(part)[0]) {
			if i < 2 {
				break
			}
			return strings.Join(parts[i:], ".") + tail
		}
	}
	return name
}
