package result

// Asks is what a database or an upstream of the service counted of the window, by itself.
type Asks struct {
	Of   string `json:"of"`   // the counter's name
	What string `json:"what"` // it counts: transactions, statements, or its series
	// Count is from its reading at the window's opening to that at its end; BetweenNs is the time
	// of load between the two.
	Count     float64 `json:"count"`
	BetweenNs int64   `json:"betweenNs"`
	LateNs    int64   `json:"lateNs,omitempty"`   // for so long an ask may not be counted yet
	Wanted    float64 `json:"wanted"`             // at least, by the window's good answers
	RestPerS  float64 `json:"restPerS,omitempty"` // by how much it moved before the load
	Error     string  `json:"error,omitempty"`    // why it was not read; Count is nothing then
}
