package lab

import (
	"context"
	"errors"
	"slices"

	"prony.example/internal/service"
)

// BuildAhead builds services before this lab takes the machine, so that other labs can measure in
// the meantime. Later builds of the same services take the results from the cache. Without Wait, it
// builds nothing while another lab measures, because the run would end after the builds.
func (l *Lab) BuildAhead(ctx context.Context, services Catalog) error {
	services = slices.DeleteFunc(slices.Clone(services), func(s *service.Service) bool {
		return s.Made != nil || s.ControlOf != ""
	})
	if len(services) == 0 || l.used != nil {
		return nil
	}
	if err := l.World.Busy(); err != nil && l.Wait == 0 {
		return err
	}
	b := l.Builder(service.FindTools(ctx))
	var errs []error
	for _, o := range BuildAll(ctx, l.World.Build, b, services, 0) {
		errs = append(errs, o.Err)
	}
	l.built = true
	return errors.Join(errs...)
}
