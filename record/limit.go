package record

import (
	"encoding/json"
)

// Limit is a limit on the service's resources: one in force, or one requested that nothing
// enforces. Package internal/analysis/wording formats it.
type Limit struct {
	Kind string `json:"kind"` // one of the kinds of limits; empty: only Text is known
	By   string `json:"by"`   // what enforces it, for example ByCgroup1; ByNone: nothing
	// Value is CPU seconds per second for LimitCPU, and bytes for LimitMemory.
	Value float64 `json:"value,omitempty"`
	Cores []int   `json:"cores,omitempty"` // for LimitCores
	// Process is the only process of a system that the limit affects; empty: all processes.
	Process string `json:"process,omitempty"`
	// Reason is why nothing enforces it, one of the reasons; empty: unknown, or it is in force.
	Reason string `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"` // the error that explains the reason
	PIDs   []int  `json:"pids,omitempty"`   // processes outside the control group
	Text   string `json:"text,omitempty"`   // text of version 1; empty in newer records
}

// Kinds of limits.
const (
	LimitCores  = "cores"
	LimitCPU    = "cpu"
	LimitMemory = "memory"
	LimitSwap   = "swap"  // memory may not be swapped out
	LimitGroup  = "group" // all processes stay in the control group that they were started in
	LimitOwners = "owner's"
)

// What enforces a limit. LimitOwners are enforced by who started the service.
const (
	ByAffinity = "affinity"
	ByCgroup1  = "cgroup v1"
	ByCgroup2  = "cgroup v2"
	ByRlimit   = "rlimit" // limits the private memory of each process
	ByHere     = "owner, on this machine"
	ByAway     = "owner, on another machine"
	ByNone     = "none"
)

// Reasons why nothing enforces a limit.
const (
	Refused      = "refused"       // by the kernel or for this user, see Detail
	EndedBefore  = "ended before"  // the service ended before limits could be read
	NotMounted   = "not mounted"   // the container's control groups are not accessible here
	PerContainer = "per container" // each container of the system has its own limit, see Detail
	NotCounted   = "not counted"   // the kernel does not count swap
	Permitted    = "permitted"     // the node lets pods swap
	Strayed      = "strayed"       // processes are in another control group: use is unknown
)

// Unenforced returns the limit as one that nothing enforces, with the reason.
func Unenforced(l Limit, reason, detail string) Limit {
	l.By, l.Reason, l.Detail = ByNone, reason, detail
	return l
}

// HasStrayed reports whether processes have left their control group; resource use is then unknown.
func HasStrayed(missing []Limit) bool {
	for _, l := range missing {
		if l.Reason == Strayed {
			return true
		}
	}
	return false
}

// UnmarshalJSON reads a limit, also of version 1, which was text.
func (l *Limit) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
		*l = limitOfText(text)
		return nil
	}
	type plain Limit
	return json.Unmarshal(data, (*plain)(l))
}
