package report

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"prony.example/internal/analysis/table"
	"prony.example/internal/analysis/wording"
	"prony.example/internal/report/rows"
	"prony.example/record"
)

// trialRow is one load of one trial; a trial without a load also has a row.
type trialRow struct {
	record      *record.Record
	load        *record.Load // nil: no load
	percentiles []table.Percentile
}

// notFlat lists the fields of records that do not fit a column of numbers, or that other columns
// represent better. Only the histogram of response times is worth its size.
var notFlat = []string{
	"loads", "failure_log", "verdict_findings", "warmup_rate_per_s", "warmup_levels",
	"load_routes", "load_series",
}

// commandLines lists fields with command-line arguments.
var commandLines = []string{"provenance_command", "provenance_service_args"}

const keptHistogram = "load_response_time_hdr"

// recordColumns returns the columns of a record, or of a load in it: one per field, by reflection,
// so that new fields of the record are included. A name consists of the names in the record's JSON,
// with underscores, joined by underscores.
func recordColumns[T any](prefix string, root func(*trialRow) *T) []column[trialRow] {
	var out []column[trialRow]
	for _, leaf := range leaves(reflect.TypeFor[T](), prefix) {
		out = append(out, column[trialRow]{leaf.name, leaf.kind, func(r *trialRow) any {
			if v := root(r); v != nil {
				return leaf.value(reflect.ValueOf(v).Elem())
			}
			return nil
		}})
	}
	return out
}

// leaf is a field with a value and without further fields.
type leaf struct {
	name  string
	kind  rows.Kind
	value func(reflect.Value) any // of the struct that was passed to leaves
}

func leaves(t reflect.Type, prefix string) []leaf {
	var out []leaf
	for _, f := range reflect.VisibleFields(t) {
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		name := prefix + snake(tag)
		hidden := strings.HasSuffix(name, "_hdr") && name != keptHistogram
		if tag == "" || tag == "-" || hidden || slices.Contains(notFlat, name) {
			continue
		}
		below := f.Type
		if below.Kind() == reflect.Pointer {
			below = below.Elem()
		}
		if below.Kind() == reflect.Struct && below != reflect.TypeFor[time.Time]() {
			for _, l := range leaves(below, name+"_") {
				counted := below == reflect.TypeFor[record.Errors]() // a count of zero is a value
				out = append(out, l.inside(f.Index, counted))
			}
			continue
		}
		k, value := reader(f.Type, name)
		if value == nil {
			continue
		}
		// Values that JSON omits are unknown; -1 means that the kernel reports none
		// (docs/formats/record.md).
		optional, silent := options != "", strings.HasPrefix(tag, "pressure")
		out = append(out, leaf{name, k, func(v reflect.Value) any {
			field := v.FieldByIndex(f.Index)
			if optional && field.IsZero() || silent && field.Float() < 0 {
				return nil
			}
			return value(field)
		}})
	}
	return out
}

// inside returns a leaf of a struct in a struct. If the inner struct is all zero, it was not
// measured, unless it holds counts.
func (l leaf) inside(index []int, counted bool) leaf {
	value := l.value
	l.value = func(v reflect.Value) any {
		field := v.FieldByIndex(index)
		if field.IsZero() && !counted {
			return nil
		}
		if field.Kind() == reflect.Pointer {
			field = field.Elem()
		}
		return value(field)
	}
	return l
}

// reader returns the column's kind for a type and the function that reads it; nil for a type
// without a column. The separator of lists is more than a space if their words may have spaces.
func reader(t reflect.Type, name string) (rows.Kind, func(reflect.Value) any) {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return rows.Instant, func(v reflect.Value) any { return v.Interface() }
	case t.Kind() == reflect.String:
		return rows.Text, func(v reflect.Value) any { return v.String() }
	case t.Kind() == reflect.Bool:
		return rows.Flag, func(v reflect.Value) any { return v.Bool() }
	case t.Kind() == reflect.Float64:
		return rows.Real, func(v reflect.Value) any { return v.Float() }
	case t.Kind() == reflect.Int || t.Kind() == reflect.Int64:
		return rows.Count, func(v reflect.Value) any { return v.Int() }
	case t.Kind() == reflect.Uint64: // seeds: all 64 bits, which do not fit a signed number
		return rows.Text, func(v reflect.Value) any { return fmt.Sprint(v.Uint()) }
	case t == reflect.TypeFor[[]int]() || slices.Contains(commandLines, name):
		return rows.Text, func(v reflect.Value) any { return joined(v, " ") }
	case t == reflect.TypeFor[[]string]():
		return rows.Text, func(v reflect.Value) any { return joined(v, "; ") }
	case t == reflect.TypeFor[[]record.Limit]():
		return rows.Text, func(v reflect.Value) any {
			limits, _ := reflect.TypeAssert[[]record.Limit](v)
			return strings.Join(wording.Limits(limits), "; ")
		}
	case t == reflect.TypeFor[map[string]string]():
		return rows.Text, func(v reflect.Value) any { return pairs(v) }
	}
	return "", nil
}

func joined(v reflect.Value, source string) any {
	var all []string
	for i := range v.Len() {
		all = append(all, fmt.Sprint(v.Index(i).Interface()))
	}
	return strings.Join(all, source)
}

// pairs formats a map as "go=go1.26; java=25", sorted.
func pairs(v reflect.Value) any {
	var all []string
	for _, k := range v.MapKeys() {
		all = append(all, k.String()+"="+v.MapIndex(k).String())
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// snake turns otherCPUShare into other_cpu_share.
func snake(name string) string {
	var b strings.Builder
	rs := []rune(name)
	for i, r := range rs {
		if unicode.IsUpper(r) && i > 0 && (!unicode.IsUpper(rs[i-1]) ||
			i+1 < len(rs) && unicode.IsLower(rs[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
