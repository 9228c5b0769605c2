package suite

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"slices"
	"unicode/utf8"

	"prony.example/load/pace"
	"prony.example/load/template"
)

// Maximum sizes of the files that a suite names, in bytes.
const (
	bodyMax  = 16 << 20
	traceMax = 256 << 20
	pemMax   = 1 << 20 // a system's trust store is a quarter of that
)

// attach reads the bodies and traces that the suite names, and adds them to the hash.
func (c *checker) attach(s *Suite, dir string, sum hash.Hash) {
	for i := range s.Scenarios {
		keyPath := fmt.Sprintf("scenarios[%d].", i)
		c.bodies(&s.Scenarios[i], keyPath, dir, sum)
		if tls := &s.Scenarios[i].TLS; tls.CA != "" {
			data, _ := c.read(keyPath+"tls.ca", dir, tls.CA, pemMax, nil)
			tls.PEM = string(data)
		}
	}
	for i := range s.Loads {
		l := &s.Loads[i]
		if l.Trace == "" {
			continue
		}
		keyPath := fmt.Sprintf("loads[%d].trace", i)
		data, ok := c.read(keyPath, dir, l.Trace, traceMax, sum)
		if !ok {
			continue
		}
		trace, err := pace.ReadTrace(bytes.NewReader(data))
		if err != nil {
			c.Wrong(keyPath, "", "%v", err)
			continue
		}
		l.trace, l.TraceHash = trace, hashOf(data)
	}
}

// rowsMax limits the rows of data, which stay in memory during the load.
const rowsMax = 1_000_000

// data reads the data of the scenario at a path.
func (c *checker) data(s *Scenario, keyPath, dir string, sum hash.Hash) {
	data, ok := c.read(keyPath+"data", dir, s.Data, bodyMax, sum)
	if !ok {
		return
	}
	s.DataHash = hashOf(data)
	wrong := func(hint, format string, args ...any) {
		c.Wrong(keyPath+"data", hint, format, args...)
	}
	all, err := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff")))).ReadAll()
	switch {
	case err != nil:
		wrong("write the file as CSV (RFC 4180)", "read %s: %v", s.Data, err)
		return
	case len(all) < 2:
		wrong("add rows below the first line, which contains the column names", "data file %s has "+
			"no rows",
			s.Data)
		return
	case len(all)-1 > rowsMax:
		wrong("", "data file %s has %d rows, but at most %d are "+
			"allowed", s.Data, len(all)-1, rowsMax)
		return
	}
	for i, name := range all[0] {
		if hasMeaning(name) || !varForm.MatchString(name) || slices.Contains(all[0][:i], name) {
			wrong("write unique column names into the first line, such as user,password",
				"%q in the first line of %s is not a valid column name", name, s.Data)
			return
		}
	}
	s.columns = all[0]
	for _, row := range all[1:] {
		values := make([][]byte, len(row))
		for i, v := range row {
			values[i] = []byte(v)
		}
		s.table = append(s.table, values)
	}
}

// bodies reads the data and the request bodies of the scenario at a path.
func (c *checker) bodies(s *Scenario, keyPath, dir string, sum hash.Hash) {
	if s.Data != "" {
		c.data(s, keyPath, dir, sum)
	}
	for i := range s.Requests {
		r := &s.Requests[i]
		if r.BodyFile == "" {
			continue
		}
		data, ok := c.read(
			fmt.Sprintf("%srequests[%d].bodyFile", keyPath, i),
			dir,
			r.BodyFile,
			bodyMax,
			sum,
		)
		if !ok {
			continue
		}
		r.content, r.BodyHash = string(data), hashOf(data)
		if !utf8.Valid(data) {
			r.content = template.Escape(r.content)
		}
	}
}

// read returns the content of a file below dir, and adds it to the hash if there is one. A suite
// can name files only in its folder, so that a copy of the folder is complete.
func (c *checker) read(keyPath, dir, name string, limit int64, sum hash.Hash) ([]byte, bool) {
	data, cached := c.files[named{name, limit}]
	if !cached && c.sealed {
		c.Wrong(
			keyPath,
			"save the suite as a file and check that file",
			"cannot check a suite with the file %s: the server opens only files that a saved "+
				"suite names",
			name,
		)
		return nil, false
	}
	var err error
	if !cached {
		data, err = readBelow(dir, name, limit)
	}
	if err != nil {
		if inner, is := errors.AsType[*fs.PathError](err); is {
			err = inner.Err // the name appears once
		}
		c.Wrong(
			keyPath,
			"write the file's path relative to the suite's folder, and keep the file in or below "+
				"that folder",
			"read %s: %v",
			name,
			err,
		)
		return nil, false
	}
	if c.files != nil {
		c.files[named{name, limit}] = data
	}
	if sum != nil {
		fmt.Fprintf(sum, "\n%s %d\n", name, len(data))
		sum.Write(data)
	}
	return data, true
}

func readBelow(dir, name string, limit int64) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // nothing was written
	info, err := root.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("it is not a regular file")
	case info.Size() > limit:
		return nil, fmt.Errorf("its size is %d bytes, but at most %d bytes are "+
			"allowed", info.Size(), limit)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	// The file may have grown since Stat.
	return io.ReadAll(io.LimitReader(f, limit))
}
