package record

import (
	"os"
	"path/filepath"

	"prony.example/internal/base/files"
)

// readmeFile explains a folder of runs to readers who find the folder without Prony.
const readmeFile = "README.md"

const readme = `# Runs of Prony

Each folder is a run. Its name is its start in UTC. Open report.html first.

| file | content |
|---|---|
| report.html, report.txt, report.md, report.csv, report.json | the report |
| run.json | the plan: suite, targets, trials, machine |
| trials.ndjson | a record for each trial: all numbers, and the verdict with its reasons |
| logs/ | output of the services |
| hdr/ | histograms of response times |
| series/ | CPU time, memory and threads over time |
| slices/ | requests and CPU time of each slice |
| profiles/, telemetry/, agents/, dumps/ | only if the run has them |

docs/formats/record.md in Prony's repository describes each file.

    prony report RUN        prints a run's table again
    prony compare RUN RUN   compares two runs

RUN is a folder, its name, or latest.
`

// describe writes the README.md of the folder results, in which a run has its id as its name, if
// there is none. It writes into no folder that the user chose, and into no hidden one. It ignores
// errors, because a run is complete without this text.
func describe(run, id string) {
	results := filepath.Dir(run)
	if filepath.Base(run) != id || filepath.Base(results) != "results" {
		return
	}
	name := filepath.Join(results, readmeFile)
	if _, err := os.Stat(name); os.IsNotExist(err) {
		_ = files.Put(name, []byte(readme))
	}
}
