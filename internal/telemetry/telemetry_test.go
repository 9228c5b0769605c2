package telemetry

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"

	"prony.example/internal/report/rows"
)

// said returns the JSON form of all messages between prony and its collector.
func said(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct:
		var b strings.Builder
		for f := range t.Fields() {
			fmt.Fprintf(&b, "%s %s;", f.Tag.Get("json"), said(f.Type))
		}
		return "{" + b.String() + "}"
	case reflect.Slice, reflect.Pointer:
		return t.Kind().String() + " " + said(t.Elem())
	case reflect.Map:
		return "map " + said(t.Elem())
	}
	return t.Kind().String()
}

// Changed messages need another protocol number.
func TestProtocol(t *testing.T) {
	const protocol, form = 4, "aa024f2f8c49"
	var all strings.Builder
	for _, v := range []any{Word{}, Trial{}, Mark{}, Over{}, Report{}, Own{}, Stats{},
		rows.Head{}} {
		all.WriteString(said(reflect.TypeOf(v)))
	}
	all.WriteString(strings.Join(LaunchSpec{Listen: "a", Forward: "b", ForwardOnly: true}.args(),
		" ") + ParquetVerb)
	if got := fmt.Sprintf("%.12x", sha256.Sum256([]byte(all.String())))[:12]; got != form ||
		Protocol != protocol {
		t.Errorf("protocol %d has the form %s, and %d had %s: make Protocol one more where an "+
			"older side would misread this one, and write both here", Protocol, got, protocol, form)
	}
}

func TestVersionOf(t *testing.T) {
	info := &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}
	check := func(info *debug.BuildInfo, ok bool, want string) {
		t.Helper()
		if got := versionOf(info, ok); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	check(nil, false, "unknown")
	check(info, true, "devel")
	info.Settings = []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}}
	check(info, true, "devel 0123456789ab")
}
