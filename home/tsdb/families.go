package tsdb

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/storage"

	"prony.example/home/spanstore"
	"prony.example/internal/telemetry/traces"
)

// familiesFile is beside the database, whose blocks cannot hold it: a family a line.
const familiesFile = "families.ndjson"

const (
	maxFamilies  = 10_000
	maxHelpBytes = 512
)

// Family describes a metric.
type Family struct {
	Name string           `json:"name"`
	Type model.MetricType `json:"type"`
	Unit string           `json:"unit,omitempty"`
	Help string           `json:"help,omitempty"`
}

// families stores each family once, and writes it at once, so that a crash loses none.
type families struct {
	mu     sync.RWMutex
	byName map[string]Family
	file   *os.File // nil: read-only or failed
}

func openFamilies(dir string) (*families, error) {
	f, err := readFamilies(dir)
	if err != nil {
		return nil, err
	}
	f.file, err = spanstore.OpenLines(filepath.Join(dir, familiesFile))
	return f, err
}

// readFamilies reads the file. It skips incomplete lines, left by a crash.
func readFamilies(dir string) (*families, error) {
	f := &families{byName: map[string]Family{}}
	_, err := traces.ReadLines(filepath.Join(dir, familiesFile), func(one *Family) error {
		if one.Name != "" && len(f.byName) < maxFamilies {
			f.byName[one.Name] = *one
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read families of metrics: %w", err)
	}
	return f, nil
}

// learn stores the family that came with a sample. It copies the strings, which belong to the
// sender's buffer. If writing fails, the family is known until the end of the process.
func (f *families) learn(o storage.AOptions) {
	if o.MetricFamilyName == "" || o.Metadata.IsEmpty() {
		return
	}
	f.mu.RLock()
	_, have := f.byName[o.MetricFamilyName]
	full := len(f.byName) >= maxFamilies
	f.mu.RUnlock()
	if have || full || len(o.MetricFamilyName) > maxLabelBytes {
		return
	}
	one := Family{
		Name: strings.Clone(o.MetricFamilyName), Type: o.Metadata.Type,
		Unit: strings.Clone(o.Metadata.Unit[:min(len(o.Metadata.Unit), maxHelpBytes)]),
		Help: strings.Clone(o.Metadata.Help[:min(len(o.Metadata.Help), maxHelpBytes)]),
	}
	line, err := json.Marshal(one)
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, have := f.byName[one.Name]; have {
		return
	}
	f.byName[one.Name] = one
	if err == nil && f.file != nil {
		_, err = f.file.Write(append(line, '\n'))
		if err != nil { // help texts need no error and no retry
			_ = f.file.Close()
			f.file = nil
		}
	}
}

// suffixes are those of series of a family with several.
var suffixes = []string{"_bucket", "_count", "_sum", "_total", "_created", "_info"}

// of returns the family of a series' name.
func (f *families) of(name string) (Family, bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	one, ok := f.byName[name]
	for _, s := range suffixes {
		if base, cut := strings.CutSuffix(name, s); cut && !ok {
			one, ok = f.byName[base]
		}
	}
	return one, ok
}

func (f *families) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	return err
}

// described is a family in Prometheus' HTTP API.
type described struct {
	Type model.MetricType `json:"type"`
	Unit string           `json:"unit"`
	Help string           `json:"help"`
}

// list returns the families with a name, or all if it is empty; at most most, unless that is
// negative.
func (f *families) list(name string, most int) map[string][]described {
	f.mu.RLock()
	defer f.mu.RUnlock()
	out := map[string][]described{}
	for _, one := range f.byName {
		if most >= 0 && len(out) >= most {
			break
		}
		if name == "" || name == one.Name {
			out[one.Name] = []described{{one.Type, one.Unit, one.Help}}
		}
	}
	return out
}
