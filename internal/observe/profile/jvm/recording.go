package jvm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	pprof "github.com/google/pprof/profile"

	"prony.example/internal/base/cmdlog"
	"prony.example/internal/base/files"
	"prony.example/internal/base/lazyregexp"
	"prony.example/internal/observe/profile"
)

// event is an event in the form of the JDK's jfr, with the fields that are used here.
type event struct {
	Type   string `json:"type"`
	Values values `json:"values"`
}

type values struct {
	StackTrace     stackTrace `json:"stackTrace"`
	Duration       duration   `json:"duration"`
	SamplingPeriod duration   `json:"samplingPeriod"`
	SumOfPauses    duration   `json:"sumOfPauses"`
	LongestPause   duration   `json:"longestPause"`
	Weight         int64      `json:"weight"` // bytes
	LostSamples    int64      `json:"lostSamples"`
	Failed         bool       `json:"failed"`
	ObjectClass    class      `json:"objectClass"`
	ParkedClass    class      `json:"parkedClass"`
	MonitorClass   class      `json:"monitorClass"`
	State          string     `json:"state"`   // async-profiler only
	Samples        int64      `json:"samples"` // async-profiler: equal ones in sequence
}

// class is a class with the JVM's name: "java/lang/String", "[B".
type class struct {
	Name string `json:"name"`
}

// primitives maps the JVM's names of array elements to Java's (JVMS 4.3.2).
var primitives = map[string]string{"B": "byte", "C": "char", "D": "double", "F": "float",
	"I": "int", "J": "long", "S": "short", "Z": "boolean"}

// java returns the class's name in Java: "java.lang.String", "byte[]".
func (c class) java() string {
	element := strings.TrimLeft(c.Name, "[")
	dimensions := len(c.Name) - len(element)
	if dimensions > 0 {
		if name := primitives[element]; name != "" {
			element = name
		}
		element = strings.TrimSuffix(strings.TrimPrefix(element, "L"), ";")
	}
	return dotted(element) + strings.Repeat("[]", dimensions)
}

type stackTrace struct {
	Truncated bool `json:"truncated"`
	Frames    []struct {
		Method struct {
			Type class  `json:"type"`
			Name string `json:"name"`
		} `json:"method"`
	} `json:"frames"`
}

// frames returns a stack's frames, outermost first.
func (s stackTrace) frames() (out []string) {
	if s.Truncated {
		out = append(out, "(cut off)")
	}
	for _, f := range slices.Backward(s.Frames) {
		name := f.Method.Name
		if f.Method.Type.Name != "" {
			name = f.Method.Type.Name + "." + name
		}
		out = append(out, dotted(name))
	}
	return out
}

// duration is a duration in ISO 8601 in the form of java.time.Duration: "PT1M0.5S".
type duration time.Duration

var iso = lazyregexp.New(`^PT(?:(-?[0-9]+)H)?(?:(-?[0-9]+)M)?(?:(-?[0-9.]+)S)?$`)

// UnmarshalJSON parses a duration. Infinite, missing and impossibly long durations are 0.
func (d *duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return nil //nolint:nilerr // a number or null, which jfr writes for missing values
	}
	parts := iso.FindStringSubmatch(text)
	if parts == nil {
		return fmt.Errorf("read duration %q: it is not in the format of ISO 8601, such as PT0.01S",
			text)
	}
	var total float64
	for i, seconds := range []float64{3600, 60, 1} {
		if parts[i+1] == "" {
			continue
		}
		n, err := strconv.ParseFloat(parts[i+1], 64)
		if err != nil {
			return fmt.Errorf("read duration %q: %w", text, err)
		}
		total += n * seconds
	}
	if total *= float64(time.Second); total >= 0 && total < math.MaxInt64 {
		*d = duration(total)
	}
	return nil
}

// eachEvent reads the named events of a recording one by one, with the jfr program of the JDK that
// wrote it.
func eachEvent(ctx context.Context, pid int, file string, names []string,
	visit func(event)) error {
	program, err := tool(pid, "jfr")
	if err != nil {
		return err
	}
	recording, err := files.Plain(file) // jfr would wait for a pipe
	if err != nil {
		return fmt.Errorf("read a recording: %w", err)
	}
	_ = recording.Close() // jfr opens it
	cmd := exec.CommandContext(ctx, program, "print", "--json", "--stack-depth", "2048",
		"--events", strings.Join(names, ","), file)
	cmdlog.Command(cmd)
	var output strings.Builder
	cmd.Stderr = &output
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	err = decode(out, visit)
	if err != nil {
		_ = cmd.Process.Kill() // otherwise it waits for a reader
	}
	if done := cmd.Wait(); done != nil || err != nil {
		return fmt.Errorf("read %s by %s print: %w: %s", file, program, errors.Join(err, done),
			strings.TrimSpace(output.String()))
	}
	return nil
}

// decode parses {"recording": {"events": [...]}} one event at a time, because the deep stacks of a
// window may take hundreds of megabytes.
func decode(r io.Reader, visit func(event)) error {
	d := json.NewDecoder(r)
	for {
		token, err := d.Token()
		if err != nil {
			return fmt.Errorf("find the events: %w", err)
		}
		if token == json.Delim('[') {
			break
		}
	}
	for d.More() {
		var e event
		if err := d.Decode(&e); err != nil {
			return fmt.Errorf("read an event: %w", err)
		}
		visit(e)
	}
	if _, err := io.Copy(io.Discard, io.MultiReader(d.Buffered(), r)); err != nil {
		return fmt.Errorf("read the recording to its end: %w",
			err) // else jfr dies of a closed pipe
	}
	return nil
}

// wallInterval is the time between samples of one thread, as set in events.
const wallInterval = 20 * time.Millisecond

// sleeping is async-profiler's mark of a thread that was not running when it was sampled.
const sleeping = "STATE_SLEEPING"

// readWall returns the samples of threads that were not running, from a recording of
// async-profiler's wall clock, which samples all threads.
func readWall(ctx context.Context, pid int, file string) (*pprof.Profile, error) {
	stacks := profile.NewStacks(profile.OffCPU)
	err := eachEvent(ctx, pid, file, []string{"profiler.WallClockSample"}, func(e event) {
		if e.Values.State == sleeping {
			n := max(e.Values.Samples, 1)
			stacks.Add(e.Values.StackTrace.frames(), n, n*int64(wallInterval))
		}
	})
	if err != nil {
		return nil, err
	}
	return stacks.Profile(), nil
}
