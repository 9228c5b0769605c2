package result

// Pod is what a cluster made of the target, by the words of its API and, for cores, by what the
// kernel of its node was read to say.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Node      string `json:"node"`
	Server    string `json:"server"`            // version of the API server
	Kubelet   string `json:"kubelet,omitempty"` // version; empty: this user may not look at nodes
	Runtime   string `json:"runtime,omitempty"` // likewise, with its name
	QoS       string `json:"qos"`               // "Guaranteed": limits are what was asked for
	Image     string `json:"image"`             // what the node started, by its digest
	Service   string `json:"service,omitempty"` // its address, where requests went through one
	Cores     []int  `json:"cores"`             // that its kubelet gave it
	// Shared says who else may run on them, in words; none: they are its own.
	Shared []string `json:"shared,omitempty"`
	Away   []Away   `json:"away,omitempty"`
	// Reader read limits and use on its node; absent: prony itself did, there.
	Reader *Reader `json:"reader,omitempty"`
}

// Reader is a pod of this program on the node of the one that is measured. Readings have that
// node's own moments, by the sampler's time line, so that no clock is part of a difference of two.
type Reader struct {
	Pod   string `json:"pod"`
	Image string `json:"image"` // what the node started, by its digest
	Clock Clock  `json:"clock"` // its node's beside the lab's; drift is that of the whole trial
	// LateMaxNs is how long after it was asked for the latest reading at a window's edge was taken.
	LateMaxNs int64 `json:"lateMaxNs"`
	// Lost are the readings that did not come, each with its time (UTC) and why.
	Lost []string `json:"lost,omitempty"`
}

// Away is a stretch in which the cluster's API could not be asked. What was measured meanwhile does
// not depend on it.
type Away struct {
	AtNs int64 `json:"atNs"` // Unix time
	Ns   int64 `json:"ns"`
}
