package processes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"prony.example/internal/service"
)

// copyCount numbers the copies that this program makes.
var copyCount atomic.Int64

// copy gives a start its own copy of the service's folder, if that is ordered and possible. It
// notes the copy before it makes it, and forgets it after removal.
func (s *System) copy(ctx context.Context, o *Order) error {
	s.remove = func() error { return nil }
	if o.Copies == "" {
		return nil
	}
	dir := filepath.Join(o.Copies, fmt.Sprintf("%s%d-%d", service.CopyPrefix, os.Getpid(),
		copyCount.Add(1)))
	forget := func() error { return nil }
	if o.Note != nil {
		var err error
		if forget, err = o.Note(dir); err != nil {
			return err
		}
	}
	fresh, err := o.Built.Copy(ctx, dir)
	if err != nil {
		if remaining := service.RemoveCopy(dir); remaining != nil {
			return errors.Join(err, remaining) // still in the journal
		}
		if errors.As(err, &s.NoCopy) {
			err = nil
		}
		return errors.Join(err, forget())
	}
	o.Built, s.folder = fresh, dir
	s.remove = func() error {
		if err := service.RemoveCopy(dir); err != nil {
			return err // still in the journal
		}
		s.remove = func() error { return nil }
		return forget()
	}
	return nil
}
