package service

import "prony/internal/config"

// document is a YAML file under check, with what is wrong with it so far.
type document struct {
	places *config.Document
	errs   []error
}

func newDocument(file string, data []byte) (*document, error) {
	places, err := config.Parse(file, data)
	if err != nil {
		return nil, err
	}
	return &document{places: places}, nil
}

// wrong notes a problem at a path such as "$.targets[1].mode", or at the nearest node above it.
func (d *document) wrong(path, problem, hint string) {
	d.errs = append(d.errs, d.places.Problem(path, problem, hint))
}
