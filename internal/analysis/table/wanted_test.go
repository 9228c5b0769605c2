package table

import (
	"slices"
	"strings"
	"testing"

	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/record/metric"
)

// full returns a trial in which all values are known: 100/s for 10 s, 1.5 processors, 7 threads.
func full(block int) record.Record {
	r := trial("a", block, 100)
	l := &r.Loads[0]
	l.ResponseTime = record.Dist{Count: 1000, MeanNs: 2.5e6, P50Ns: 2e6, P90Ns: 3e6, P99Ns: 4e6,
		P999Ns: 5e6, MaxNs: 41.8e6}
	l.Errors = record.Errors{Status: 10}
	l.Service = record.Usage{WindowNs: 10e9, CPUNs: 15e9, CPUPerRequestNs: 15e6, ThreadsMax: 7,
		RSSMaxBytes: 12 << 20,
		Roles:       &record.Roles{CompilerNs: 0.9e9, GCNs: 0.45e9}}
	r.Start = record.Start{ListenNs: 26e6, ReadyNs: 30e6, FirstResponseNs: 31e6,
		RSSBytes: 8 << 20}
	r.Artifact = record.Artifact{SizeBytes: 10 << 20, ImageBytes: 312 << 20}
	return r
}

func TestWantedColumns(t *testing.T) {
	records := []record.Record{full(1), full(2)}
	tab := only(t, sheetOf(records, Options{Columns: metric.ColumnNames()}))
	check := func(key, heading, want string) {
		t.Helper()
		if got := find(t, tab, "a", key).Text(); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
		i := slices.IndexFunc(tab.Columns, func(c Column) bool { return c.Key == key })
		if got := tab.Columns[i].Heading(); got != heading {
			t.Errorf("%s is headed %q, want %q", key, got, heading)
		}
	}
	check("peak/mean", "mean closed", "2.5 ms")
	check("peak/p90", "p90 closed", "3.0 ms")
	check("peak/max", "max closed", "41.8 ms")
	check("peak/requests", "requests", "1,000") // 100/s in 10 s
	check("peak/errors", "errors", "1.0 %")     // 10 of 1,010
	check("cost/cpu_used", "CPU", "150 %")      // 15 s in 10 s
	check("cost/threads_max", "threads", "7")
	check("cost/compiler_share", "compiler", "6.0 %") // 0.9 s of 15 s
	check("cost/gc_share", "collector", "3.0 %")      // 0.45 s
	check("start/listen", "listens", "26.0 ms")
	check("start/first", "first answer", "31.0 ms")
	check("start/idle", "idle RSS", "8.0 MiB")
	check("artifact/size", "size", "10 MiB")
	check("artifact/image", "image", "312 MiB")
	usual := only(t, sheetOf(records, Options{}))
	for _, c := range usual.Columns {
		if strings.HasSuffix(c.Key, "/mean") || strings.HasPrefix(c.Key, "artifact/") {
			t.Errorf("nobody asked for %s", c.Key)
		}
	}
}

// The times of a load above capacity grow with the test: 980 of 1,000 are below 99 %.
func TestNoMeanOfABacklog(t *testing.T) {
	check := func(done int64, want string) {
		t.Helper()
		r := with(trial("a", 1, 100), 1000, 2e6)
		r.Loads[1].Done = done
		r.Loads[1].ResponseTime.MeanNs = 2e6
		tab := only(t, sheetOf([]record.Record{r}, Options{Columns: []string{"mean"}}))
		if got := find(t, tab, "a", "half/mean").Text(); got != want {
			t.Errorf("%d of 1,000: %s, want %s", done, got, want)
		}
	}
	check(990, "2.0 ms")
	check(980, units.Absent)
}

// system returns a trial whose gateway used 6 s and whose back used 2 s of 8 s, in 10 s of 800
// requests.
func system(block int) record.Record {
	r := trial("clinic", block, 80)
	r.Loads[0].Service = record.Usage{WindowNs: 10e9, CPUNs: 8e9, CPUPerRequestNs: 10e6,
		Parts: []record.Part{
			{Name: "back", CPUNs: 2e9, RSSBytes: 100 << 20, Threads: 20},
			{Name: "gateway", CPUNs: 6e9, RSSBytes: 200 << 20, Threads: 30},
		}}
	r.Processes = []record.Started{{Name: "back", ReadyNs: 5e9}, {Name: "gateway", ReadyNs: 7e9}}
	return r
}

func TestPartsOfASystem(t *testing.T) {
	s := sheetOf([]record.Record{system(1), system(2), full(1), full(2)}, Options{})
	if len(s.Tables) != 2 || s.Tables[1].Title() != "Resource usage by process" {
		t.Fatalf("tables %+v", s.Tables)
	}
	var got []string
	for _, r := range s.Tables[1].Rows {
		var texts []string
		for _, c := range r.Cells {
			texts = append(texts, c.Text())
		}
		got = append(got, strings.Join(texts, " | "))
	}
	want := []string{ // 2 of 8 s; 2 s in 10 s; 2 s by 800 requests
		"clinic | back | 25 % | 20 % | 2500.0 | 100 MiB | 20 | 5.00 s",
		"clinic | gateway | 75 % | 60 % | 7500.0 | 200 MiB | 30 | 7.00 s",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	idle := system(4)
	idle.Loads[0].Service.Parts[0].CPUNs = 0
	cells := sheetOf([]record.Record{idle}, Options{}).Tables[1].Rows
	if cells[0].Cells[2].Text() != "0 %" || cells[1].Cells[2].Text() != "100 %" {
		t.Errorf("beside an idle process: %+v", cells)
	}
	idle.Loads[0].Service.CPUNs = 0 // which its parts contradict
	cells = sheetOf([]record.Record{idle}, Options{}).Tables[1].Rows
	if cells[0].Cells[4].Text() != units.Absent || cells[1].Cells[4].Text() != units.Absent {
		t.Errorf("of a service without processor time: %+v", cells)
	}
	broken := system(3)
	broken.Loads[0].Service.Parts[0].CPUNs = -1 // it ended
	tab := sheetOf([]record.Record{broken}, Options{}).Tables[1]
	if got := tab.Rows[0].Cells[3].Text(); got != units.Absent {
		t.Errorf("CPU of a process that is gone: %s", got)
	}
}
