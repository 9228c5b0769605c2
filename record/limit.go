package record

import (
	"encoding/json"
)

// Limit is a bound on what a service may use: one that is in force, or one that was asked for and
// that nothing enforces. Package internal/analysis/wording puts it into words.
type Limit struct {
	Kind string `json:"kind"` // one of the kinds of limits; empty: version 1's, in words alone
	By   string `json:"by"`   // what enforces it, such as ByCgroup1; ByNone: nothing
	// Value is processor seconds a second of LimitCPU, and bytes of LimitMemory.
	Value float64 `json:"value,omitempty"`
	Cores []int   `json:"cores,omitempty"` // of LimitCores
	// Process is the one of a system that the limit holds, or misses, alone; empty: all of them.
	Process string `json:"process,omitempty"`
	// Reason is why nothing enforces it, one of the reasons; empty: nobody knows, or it is in
	// force.
	Reason string `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"` // the error of who refused it
	PIDs   []int  `json:"pids,omitempty"`   // the processes that have strayed
	Text   string `json:"text,omitempty"`   // version 1's words; empty in newer records
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

// What enforces a limit. Of LimitOwners, whoever started the service does.
const (
	ByAffinity = "affinity"
	ByCgroup1  = "cgroup v1"
	ByCgroup2  = "cgroup v2"
	ByRlimit   = "rlimit" // holds the private memory of each process
	ByHere     = "owner, on this machine"
	ByAway     = "owner, on another machine"
	ByNone     = "none"
)

// Reasons why nothing enforces a limit.
const (
	Refused      = "refused"       // by the kernel or to this user, as Detail says
	EndedBefore  = "ended before"  // the service ended before limits could be read
	NotMounted   = "not mounted"   // the container's control groups are not seen here
	PerContainer = "per container" // each container of the system has it for itself, as Detail says
	NotCounted   = "not counted"   // the kernel does not count swap
	Permitted    = "permitted"     // the node lets pods swap
	Strayed      = "strayed"       // processes are in another control group: their use is not known
)

// Unenforced is a limit that nothing enforces, with the reason.
func Unenforced(l Limit, reason, detail string) Limit {
	l.By, l.Reason, l.Detail = ByNone, reason, detail
	return l
}

// HasStrayed tells whether limits that nothing enforces have been left: usage is not known then.
func HasStrayed(missing []Limit) bool {
	for _, l := range missing {
		if l.Reason == Strayed {
			return true
		}
	}
	return false
}

// UnmarshalJSON reads a limit, or the sentence that version 1 had in its place.
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
