package truth

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// Shift adds ns to the times of requests.
func Shift(all []Times, ns int64) {
	for i := range all {
		t := &all[i]
		t.CameNs += ns
		if t.LeftNs != 0 {
			t.LeftNs += ns
		}
	}
}

// timesHead lists the columns of a file of times.
var timesHead = []string{"came_ns", "left_ns", "service_ns", "processor_ns"}

// WriteTimes writes CSV with a line for each request.
func WriteTimes(w io.Writer, all []Times) error {
	out := csv.NewWriter(w)
	lines := make([][]string, 0, len(all)+1)
	lines = append(lines, timesHead)
	for _, t := range all {
		line := make([]string, 0, len(timesHead))
		for _, ns := range []int64{t.CameNs, t.LeftNs, t.ServiceNs, t.ProcessorNs} {
			line = append(line, strconv.FormatInt(ns, 10))
		}
		lines = append(lines, line)
	}
	if err := out.WriteAll(lines); err != nil {
		return fmt.Errorf("write the file with the times of requests: %w", err)
	}
	return nil
}

// ReadTimes reads the format of WriteTimes.
func ReadTimes(r io.Reader) ([]Times, error) {
	in := csv.NewReader(r)
	in.FieldsPerRecord, in.ReuseRecord = len(timesHead), true
	var all []Times
	for first := true; ; first = false {
		line, err := in.Read()
		if errors.Is(err, io.EOF) && !first {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the file with the times of requests: %w", err)
		}
		if first {
			continue
		}
		var t Times
		for i, ns := range []*int64{&t.CameNs, &t.LeftNs, &t.ServiceNs, &t.ProcessorNs} {
			if *ns, err = strconv.ParseInt(line[i], 10, 64); err != nil {
				return nil, fmt.Errorf("read the file with the times of requests: %w", err)
			}
		}
		all = append(all, t)
	}
}
