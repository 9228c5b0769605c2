package record_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"prony.example/record"
)

// A run's folder is written trial by trial and read as a whole. Each trial is safe once Append
// returns.
func ExampleCreate() {
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	dir = filepath.Join(dir, "1")
	w, err := record.Create(dir, record.Run{Version: record.Version, ID: "1", Suite: "hello"})
	if err != nil {
		log.Fatal(err)
	}
	r := &record.Record{Version: record.Version, Run: "1", Trial: "b1-01-hello",
		Outcome: record.Measured, Verdict: record.Verdict{Grade: record.Valid},
		Loads: []record.Load{{Name: "peak", WindowNs: 1e9, Scheduled: 1234, Done: 1234,
			ThroughputPerS: 1234}}}
	if err := w.Append(r); err != nil {
		log.Fatal(err)
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	head, records, bad, err := record.Read(dir)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(head.Suite, len(bad), records[0].Trial, records[0].Loads[0].ThroughputPerS)
	// Output: hello 0 b1-01-hello 1234
}

// A run that ended early is resumed: missing records are appended to its folder.
func ExampleResume() {
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	dir = filepath.Join(dir, "1")
	head := record.Run{ID: "1", Suite: "hello", Trials: []string{"b1-01-hello", "b2-02-hello"}}
	w, err := record.Create(dir, head)
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Append(&record.Record{Trial: "b1-01-hello", Outcome: record.Failed}); err != nil {
		log.Fatal(err)
	}
	if err := w.Close(); err != nil { // the program ends here
		log.Fatal(err)
	}

	head, records, _, err := record.Read(dir)
	if err != nil {
		log.Fatal(err)
	}
	missing := head.Missing(records)
	head.Resumed = append(head.Resumed, record.Resumption{Trials: len(records)})
	if w, err = record.Resume(dir, head); err != nil {
		log.Fatal(err)
	}
	for _, trial := range missing {
		fmt.Println("missing:", trial.Trial)
		r := &record.Record{Trial: trial.Trial, Outcome: record.Failed,
			Resumed: len(head.Resumed)}
		if err := w.Append(r); err != nil {
			log.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	if head, records, _, err = record.Read(dir); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d records, %d missing\n", len(records), len(head.Missing(records)))
	// Output:
	// missing: b2-02-hello
	// 2 records, 0 missing
}

// Errors of a load, by class, and how many are failed requests.
func ExampleErrors() {
	e := record.Errors{Connect: 2, Read: 1, Status: 3, Example: "GET /: status 503, want 200"}
	fmt.Println(e.Total(), e.Requests(), e.Why())
	// Output: 6 4 GET /: status 503, want 200
}

// Invalid lines are reported, and the other lines are read.
func ExampleReadLines() {
	in := strings.NewReader("{\"a\": 1}\nno JSON\n{\"a\": 2}\n")
	n := 0
	bad, err := record.ReadLines("trials.ndjson", in, func(line []byte) error {
		if line[0] != '{' {
			return fmt.Errorf("not an object")
		}
		n++
		return nil
	})
	fmt.Println(n, len(bad), err)
	fmt.Println(bad[0])
	// Output:
	// 2 1 <nil>
	// trials.ndjson:2: not an object; it is left out
}
