package suite

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"prony.example/internal/base/strictyaml"
)

// Original is the file of a suite, beside which others are written and read:
//
//	override ─► With ─► text of the suite that it makes ─► Asked ─► override
//
// What a file has no key for, such as For, goes neither way.
type Original struct {
	suite *Suite
	data  []byte
	files map[named][]byte // that it names
}

// ReadOriginal reads a suite as Read does.
func ReadOriginal(file string, data []byte) (*Original, error) {
	c, err := newChecker(file, data)
	if err != nil {
		return nil, err
	}
	c.files = map[named][]byte{}
	s, err := c.suite(file, data)
	if err != nil {
		return nil, err
	}
	return &Original{s, data, c.files}, nil
}

// textName is what errors call a text that is in no file.
const textName = "YAML"

// read makes the suite of another text. It comes from anybody, so no file is read for it: what it
// names has been read for the original, or is refused.
func (o *Original) read(text string) (*Suite, error) {
	c, err := newChecker(textName, []byte(text))
	if err != nil {
		return nil, err
	}
	c.files, c.sealed = o.files, true
	return c.suite(textName, []byte(text))
}

// With is the text of the suite that an override makes: the file's own, changed where it has to be,
// or, where anchors and aliases forbid that, one of the values alone. It has been read again, and
// is that suite.
func (o *Original) With(v Override) (string, error) {
	v.For = 0 // a flag's, and with it the blocks and the warm-up that it brings
	want := *o.suite
	if err := want.Override(v); err != nil {
		return "", err
	}
	if len(unlike(o.suite, &want)) == 0 {
		return string(o.data), nil
	}
	var why error
	for _, write := range []func(*Suite) (string, error){o.edit, bare} {
		text, err := write(&want)
		var got *Suite
		if err == nil {
			got, err = o.read(text)
		}
		if err == nil {
			left := unlike(got, &want)
			if len(left) == 0 {
				return text, nil
			}
			err = fmt.Errorf("%s would not be as asked", left[0].path)
		}
		why = errors.Join(why, err)
	}
	return "", fmt.Errorf("write suite %s as YAML: %w", want.Name, why)
}

// edit changes the file's text into that of a suite that an override has made.
func (o *Original) edit(want *Suite) (string, error) {
	return strictyaml.Change(o.suite.File, o.data, func(e *strictyaml.Edit) error {
		now := *o.suite
		now.Scenarios = keptBy(o.suite.Scenarios, want.Scenarios, sceneName)
		now.Loads = keptBy(o.suite.Loads, want.Loads, loadName)
		err := errors.Join(
			keep(e, "scenarios", o.suite.Scenarios, now.Scenarios, sceneName),
			keep(e, "loads", o.suite.Loads, now.Loads, loadName))
		for _, l := range unlike(&now, want) {
			err = errors.Join(err, l.write(e))
		}
		return err
	})
}

func sceneName(s Scenario) string { return s.Name }

func loadName(l Load) string { return l.Name }

func variantName(v Variant) string { return v.Name }

// keptBy are those of all whose names the others have.
func keptBy[T any](all, others []T, name func(T) string) []T {
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool {
		return !slices.ContainsFunc(others, func(o T) bool { return name(o) == name(one) })
	})
}

// keep takes the items of the list at a path out of a text that are not among the kept.
func keep[T any](e *strictyaml.Edit, path string, all, kept []T, name func(T) string) error {
	if len(all) == len(kept) {
		return nil
	}
	return e.Keep(path, func(i int) bool {
		return slices.ContainsFunc(kept, func(k T) bool { return name(k) == name(all[i]) })
	})
}

// leaf is a value of a suite's file: where it stands, and by which row.
type leaf struct {
	path, key string
	v         reflect.Value // of what is wanted
	more      int           // of a list of groups: the first item that there is not yet
}

// write puts the value into a text.
func (l leaf) write(e *strictyaml.Edit) error {
	if l.more > 0 && e.Has(l.path) {
		var err error
		for i := l.more; i < l.v.Len(); i++ {
			err = errors.Join(err, e.Add(l.path, keysIn(l.v.Index(i), l.key+"[].")))
		}
		return err
	}
	value := valueOf(l.v, l.key)
	if row := rows[l.key]; row.late && l.v.IsZero() {
		value = row.usualValue(l.v.Type()).Interface() // in words
	}
	within := ""
	if at := strings.LastIndexByte(l.path, '.'); at >= 0 {
		within = l.path[:at]
	}
	if within != "" && !e.Has(within) { // such as limits.cpus, where there are no limits
		name, _, _ := strings.Cut(l.path, ".")
		step := yaml.MapSlice{{Key: last(l.path), Value: value}}
		return e.Set(name, step, topKeys(reflect.TypeFor[Suite]()))
	}
	order := topKeys(reflect.TypeFor[Suite]())
	if strings.HasPrefix(l.path, "loads[") {
		order = topKeys(reflect.TypeFor[Load]())
	}
	return e.Set(l.path, value, order)
}

// unlike are the values of b that a has otherwise, in the order of the file's keys. Of what a file
// has no key for it says nothing.
func unlike(a, b *Suite) (out []leaf) {
	own := map[string]reflect.Value{}
	walk(reflect.ValueOf(a).Elem(), "", "", func(_ *parameter, v reflect.Value, path string) {
		own[path] = v
	})
	below := func(path string) bool {
		return slices.ContainsFunc(out, func(l leaf) bool {
			rest, within := strings.CutPrefix(path, l.path)
			return within && (rest == "" || rest[0] == '.' || rest[0] == '[')
		})
	}
	walk(reflect.ValueOf(b).Elem(), "", "", func(row *parameter, v reflect.Value, path string) {
		was := own[path]
		switch {
		case isGroup(v.Type()) || below(path):
		case isList(v.Type()) && was.Len() != v.Len():
			out = append(out, leaf{path, row.key, v, was.Len()})
		case isList(v.Type()) || sameValue(was, v):
		default:
			out = append(out, leaf{path, row.key, v, 0})
		}
	})
	return out
}

// sameValue says whether two values are one to a file, which cannot tell nothing from an empty
// list.
func sameValue(a, b reflect.Value) bool {
	switch b.Kind() {
	case reflect.Slice, reflect.Map:
		if a.Len() == 0 && b.Len() == 0 {
			return true
		}
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// bare is the text of a suite that nobody wrote.
func bare(s *Suite) (string, error) {
	text, err := yaml.MarshalWithOptions(keysIn(reflect.ValueOf(*s), ""),
		yaml.IndentSequence(true))
	return string(text), err
}

// keysIn are the keys of a struct, which stands at key in the table, that are not as they would be
// without them.
func keysIn(v reflect.Value, key string) (out yaml.MapSlice) {
	for i := range v.NumField() {
		if v.Type().Field(i).Anonymous {
			out = append(out, keysIn(v.Field(i), key)...)
			continue
		}
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		if name == "" || name == "-" || rows[key+name].usual(v.Field(i)) {
			continue
		}
		value := valueOf(v.Field(i), key+name)
		if group, is := value.(yaml.MapSlice); is && len(group) == 0 {
			continue
		}
		out = append(out, yaml.MapItem{Key: name, Value: value})
	}
	return out
}

// usual says whether a value is what a suite has that does not name the key.
func (p *parameter) usual(v reflect.Value) bool {
	if p.def == "" || p.when != "" || p.late || isGroup(v.Type()) {
		return v.IsZero() && !p.required
	}
	return reflect.DeepEqual(p.usualValue(v.Type()).Interface(), v.Interface())
}

// valueOf is a value as the YAML library writes it.
func valueOf(v reflect.Value, key string) any {
	switch {
	case isGroup(v.Type()):
		return keysIn(v, key+".")
	case isList(v.Type()):
		items := []any{}
		for i := range v.Len() {
			items = append(items, keysIn(v.Index(i), key+"[]."))
		}
		return items
	case isMapping(v.Type()):
		entries := yaml.MapSlice{}
		for _, name := range keysOf(v) {
			entry := keysIn(v.MapIndex(reflect.ValueOf(name)), key+".NAME.")
			entries = append(entries, yaml.MapItem{Key: name, Value: entry})
		}
		return entries
	case v.Type() == reflect.TypeFor[float64]() && v.Float() == math.Trunc(v.Float()):
		return int64(v.Float()) // 2, which the library would write as 2.0
	}
	return v.Interface()
}

// Asked is the override that makes the suite of a text of this one, as far as it can; others are
// the keys of the text that no override sets so. An error says what is wrong with the text.
func (o *Original) Asked(text string) (v Override, others []string, err error) {
	got, err := o.read(text)
	if err != nil {
		return v, nil, err
	}
	v = o.suite.asked(got)
	made := *o.suite
	if err := made.Override(v); err != nil {
		return v, nil, err
	}
	for _, l := range unlike(&made, got) {
		others = append(others, l.path)
	}
	return v, others, nil
}

// asked reads an override off another suite: what is as it is here is left out.
func (s *Suite) asked(got *Suite) (v Override) {
	if got.Blocks != s.Blocks {
		v.Blocks = got.Blocks
	}
	if got.Seed != s.Seed {
		v.Seed = &got.Seed
	}
	if got.Limits.CPUs != s.Limits.CPUs {
		v.Limits.CPUs = got.Limits.CPUs
	}
	if got.Limits.Memory != s.Limits.Memory {
		v.Limits.Memory = got.Limits.Memory
	}
	if !slices.Equal(got.Targets, s.Targets) {
		v.Targets = got.Targets
	}
	if !slices.Equal(got.Launchers, s.Launchers) {
		v.Launchers = got.Launchers
		if len(v.Launchers) == 0 { // the default, in words
			v.Launchers = Launchers[:1]
		}
	}
	if narrowed(s.Scenarios, got.Scenarios, sceneName) {
		v.Scenarios = namesOf(got.Scenarios, sceneName)
	}
	s.askedLoads(got, &v)
	for _, rides := range got.Variants[min(len(s.Variants), len(got.Variants)):] {
		if rides.Agent != "" {
			v.Agents = append(v.Agents, rides.Agent)
		}
	}
	return v
}

// askedLoads reads which loads there are, and a window that all of them have. A load that stays
// because another is a share of it need not be named.
func (s *Suite) askedLoads(got *Suite, v *Override) {
	kept := keptBy(s.Loads, got.Loads, loadName)
	if narrowed(s.Loads, got.Loads, loadName) {
		v.Loads = namesOf(slices.DeleteFunc(slices.Clone(kept), func(l Load) bool {
			return slices.ContainsFunc(kept, func(o Load) bool { return o.Rate.Of == l.Name })
		}), loadName)
	}
	windows := map[Duration]bool{}
	for _, l := range got.Loads {
		windows[l.Measure] = true
	}
	for _, l := range kept {
		if len(windows) == 1 && !windows[l.Measure] {
			v.Measure = got.Loads[0].Measure
		}
	}
}

// narrowed says whether a list has some of all, and nothing else.
func narrowed[T any](all, some []T, name func(T) string) bool {
	return len(some) < len(all) && len(keptBy(some, all, name)) == len(some)
}

func namesOf[T any](all []T, name func(T) string) (names []string) {
	for _, one := range all {
		names = append(names, name(one))
	}
	return names
}
