package result

// Grading is what is known against a host as a place to measure on.
type Grading struct {
	Grade  string  `json:"grade"` // the worst of the checks: Fit, Doubtful or Unfit
	Checks []Check `json:"checks"`
}

// Grades of a host, in order of trust. Unknown is for single checks: the kernel does not say.
const (
	Fit      = "fit"
	Doubtful = "doubtful"
	Unfit    = "unfit"
	Unknown  = "unknown"
)

// Check is one property of the host.
type Check struct {
	Name     string `json:"name"` // one or two words
	Grade    string `json:"grade"`
	Observed string `json:"observed"`
	Wanted   string `json:"wanted"`
	Why      string `json:"why"`           // what it does to numbers
	Fix      string `json:"fix,omitempty"` // a command or a setting; may be empty
	Source   string `json:"source"`        // kernel document, paper or issue
}
