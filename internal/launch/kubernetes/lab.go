package kubernetes

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync/atomic"

	"prony/internal/launch/kernel"
)

// lab is one launcher of one process of this program, told from any other that ever was: in a
// cluster others have the same numbers.
type lab struct {
	ID        string `json:"id"`
	Process   string `json:"process"` // PID-BIRTH
	Boot      string `json:"boot"`
	Namespace string `json:"namespace"` // of process numbers
}

// count tells launchers of a process, and pods of a launcher.
var count atomic.Int64

func thisLab() (lab, error) {
	own, err := kernel.Own()
	if err != nil {
		return lab{}, err
	}
	l := lab{Process: own.Process, Boot: own.Boot, Namespace: own.Namespace}
	sum := sha256.Sum256(fmt.Append(nil, l, count.Add(1)))
	l.ID = hex.EncodeToString(sum[:8])
	return l, nil
}

// notes are the annotations by which a lab on the same machine knows whether this one lives.
func (l lab) notes() object {
	return object{noteProcess: l.Process, noteBoot: l.Boot, noteNamespace: l.Namespace}
}

// next names what the lab starts.
func (l lab) next() string { return fmt.Sprintf("prony-%s-%d", l.ID, count.Add(1)) }

// outlived says whether the lab that made a job is gone. Of one on another machine, in another boot
// or another PID namespace nobody here can tell: the job's deadline is for those.
func (l lab) outlived(j job) bool {
	notes := j.Metadata.Annotations
	if notes[noteBoot] != l.Boot || notes[noteNamespace] != l.Namespace {
		return false
	}
	return kernel.Gone(notes[noteProcess])
}
