package record

// Network is a network that the generator simulated between itself and the service.
type Network struct {
	DelayNs  int64 `json:"delayNs"`            // requested for a round trip, mean
	JitterNs int64 `json:"jitterNs,omitempty"` // requested: largest difference from it
	// Added is what was added to round trips of the load, including its lead-in and handshakes.
	Added Dist `json:"added"`
}
