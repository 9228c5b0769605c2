package node

import (
	"encoding/json"
	"errors"
	"fmt"

	"prony.example/internal/observe/profile"
)

// V8's names of frames that are not functions.
const (
	root = "(root)"
	idle = "(idle)" // the loop waits for the kernel
)

// Parts of the inspector's responses (Chrome DevTools Protocol: Runtime.CallFrame,
// Profiler.Profile, HeapProfiler.SamplingHeapProfile).
type (
	callFrame struct {
		FunctionName string `json:"functionName"`
		URL          string `json:"url"`
		LineNumber   int64  `json:"lineNumber"`
	}

	cpuProfile struct {
		Nodes      []*cpuNode `json:"nodes"`
		Samples    []int64    `json:"samples"`    // ids of nodes
		TimeDeltas []int64    `json:"timeDeltas"` // µs since the previous sample
	}

	cpuNode struct {
		ID        int64      `json:"id"`
		CallFrame *callFrame `json:"callFrame"`
		Children  []int64    `json:"children"`
	}

	heapProfile struct {
		Head    *allocations `json:"head"`
		Samples []struct {
			NodeID int64 `json:"nodeId"`
		} `json:"samples"`
	}

	// allocations are a frame's own allocations and those of the frames below it.
	allocations struct {
		ID        int64          `json:"id"`
		CallFrame *callFrame     `json:"callFrame"`
		SelfSize  float64        `json:"selfSize"` // bytes
		Children  []*allocations `json:"children"`
	}
)

// readCPU adds V8's samples, each with the time since the previous one. It leaves out idle samples,
// because an idle loop uses no processor.
func readCPU(answer json.RawMessage, into *profile.Stacks) error {
	var reply struct {
		Profile cpuProfile `json:"profile"`
	}
	if err := json.Unmarshal(answer, &reply); err != nil {
		return err
	}
	p := reply.Profile
	if len(p.Samples) != len(p.TimeDeltas) {
		return fmt.Errorf("the profile has %d samples, but %d times",
			len(p.Samples), len(p.TimeDeltas))
	}
	if len(p.Nodes) == 0 {
		return errors.New("the profile has no nodes")
	}
	stacks := map[int64][]string{}
	nodes := map[int64]*cpuNode{}
	for i, n := range p.Nodes {
		if n == nil {
			return fmt.Errorf("entry %d of the list of nodes is empty", i)
		}
		nodes[n.ID] = n
	}
	var walk func(id int64, above []string) error
	walk = func(id int64, above []string) error {
		n := nodes[id]
		if n == nil || n.CallFrame == nil || stacks[id] != nil {
			return fmt.Errorf("node %d is missing, has no name, or has two parents", id)
		}
		stacks[id] = below(above, frame(n.CallFrame.FunctionName, n.CallFrame.URL,
			n.CallFrame.LineNumber))
		for _, child := range n.Children {
			if err := walk(child, stacks[id]); err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk(p.Nodes[0].ID, nil); err != nil {
		return err
	}
	for i, id := range p.Samples {
		stack := stacks[id]
		if stack == nil {
			return fmt.Errorf("sample %d refers to node %d, which does not exist", i, id)
		}
		if stack[len(stack)-1] != idle {
			into.Add(stack[1:], 1, max(p.TimeDeltas[i], 0)*1000) // µs
		}
	}
	return nil
}

// below returns a stack with one more frame. It shares no memory with its siblings.
func below(above []string, name string) []string {
	return append(above[:len(above):len(above)], name)
}

// readHeap adds V8's tree of sampled allocations: each node's bytes, and the number of samples from
// which they were estimated.
func readHeap(answer json.RawMessage, into *profile.Stacks) error {
	var reply struct {
		Profile heapProfile `json:"profile"`
	}
	if err := json.Unmarshal(answer, &reply); err != nil {
		return err
	}
	times := map[int64]int64{}
	for _, s := range reply.Profile.Samples {
		times[s.NodeID]++
	}
	var walk func(n *allocations, above []string) error
	walk = func(n *allocations, above []string) error {
		if n == nil || n.CallFrame == nil {
			return errors.New("a node has no name")
		}
		name := frame(n.CallFrame.FunctionName, n.CallFrame.URL, n.CallFrame.LineNumber)
		if name == root {
			name = "" // Add leaves it out
		}
		stack := below(above, name)
		if n.SelfSize > 0 {
			into.Add(stack, times[n.ID], int64(n.SelfSize))
		}
		for _, child := range n.Children {
			if err := walk(child, stack); err != nil {
				return err
			}
		}
		return nil
	}
	return walk(reply.Profile.Head, nil)
}
