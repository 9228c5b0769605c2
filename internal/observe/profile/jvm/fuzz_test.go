package jvm

import (
	"bytes"
	"testing"

	"prony.example/internal/observe/profile"
)

// FuzzDecode checks that any text is an error or gives events that make a valid profile.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"", `{"recording":{"events":[]}}`, `{"recording":{"events":[
		{"type":"jdk.CPUTimeSample","values":{"samplingPeriod":"PT0.01S","stackTrace":{
		"truncated":true,"frames":[{"method":{"type":{"name":"java/lang/Object"},"name":"x"}},
		{"method":null}]}}},{"type":"jdk.ObjectAllocationSample","values":{"weight":9,
		"objectClass":{"name":"[[Lx;"},"stackTrace":null}}]}}`,
		`[{"type":"jdk.ThreadPark","values":{"duration":"PT-9H","parkedClass":{"name":"[["}}}]`,
		`[{"type":"jdk.GarbageCollection","values":{"sumOfPauses":"PT-1M.S"}}]`,
		`[{"type":"jdk.GarbageCollection","values":{"sumOfPauses":"PT99999999999999999999H"}}]`,
		`[{"type":"jdk.ThreadPark","values":{"duration":"PT9999999999999999999S"}}]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, kind := range profile.Kinds {
			r := reading{kind: kind, timed: profile.NewStacks(kind),
				sampled: profile.NewStacks(kind)}
			if err := decode(bytes.NewReader(text), r.take); err != nil {
				return
			}
			p := r.profile()
			if err := p.CheckValid(); err != nil {
				t.Error(err)
			}
			for _, s := range p.Sample {
				if s.Value[0] < 1 || s.Value[1] < 0 {
					t.Errorf("a sample has the values %d", s.Value)
				}
			}
			r.notes()
		}
	})
}
