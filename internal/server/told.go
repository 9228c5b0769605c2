package server

// Told is a line that the verb start writes with --json, and that a server reads: what it has come
// to with the target that it holds.
type Told struct {
	Kind string `json:"kind"` // one of the kinds below

	Text string `json:"text,omitempty"` // say: a line of the lab's log; end: how it ended

	// Of a target that is ready.
	URL     string   `json:"url,omitempty"`
	ReadyS  float64  `json:"readyS,omitempty"` // from its exec to the first good answer
	InForce []string `json:"inForce,omitempty"`
	Missing []string `json:"missing,omitempty"` // limits that nothing enforces
	Log     string   `json:"log,omitempty"`     // the file of what it writes
	Cores   []int    `json:"cores,omitempty"`   // that are a load's

	Case  *Checked `json:"case,omitempty"`
	Usage *Usage   `json:"usage,omitempty"`
}

// Kinds of Told.
const (
	ToldSay   = "say"
	ToldReady = "ready"
	ToldCase  = "case"
	ToldAll   = "checked" // there are no more cases
	ToldUsage = "usage"
	ToldEnd   = "end"
)

// Checked is a case of a contract.
type Checked struct {
	Contract string `json:"contract"`
	Name     string `json:"name"`
	Request  string `json:"request"`
	State    string `json:"state"` // pass, fail or skip
	Text     string `json:"text"`  // what differs, or why it was skipped
}

// States of a case.
const (
	Passed = "pass"
	Failed = "fail"
	Left   = "skip"
)

// Usage is what a target takes, over the second before.
type Usage struct {
	TS     float64 `json:"tS"`    // since it was ready
	Cores  float64 `json:"cores"` // processor seconds a second
	Memory int64   `json:"memoryBytes"`
	Alive  int     `json:"processes"`
}
