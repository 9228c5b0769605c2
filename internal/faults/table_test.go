package faults

// A line is one command line of a verb. In its arguments BAD is the input that is put before it,
// RUN the folder of a sound run, ROOT a small checkout, OUT a file to write, URL a server that
// answers.
type line struct {
	args string // in words; a quoted word is one that may be empty or hold blanks
	at   string // where the bad input is put, from ROOT or RUN; empty: the argument BAD itself
	fine string // inputs that are none of its faults: it may end well with them
	open string // inputs that it does not bear yet, or that lead elsewhere; why is said beside it
	// With stated codes beside 1, the usual one of an input that cannot be read.
	codes []int
}

// goesOn are inputs that a reader of lines may end well with: it tells of what is no line, and goes
// on with the others.
const goesOn = "missing empty unwritten nul bom torn long deep aliases names"

// built are inputs with which a manifest is sound, and its service, which has no sources, is built.
const built = "bom torn"

// A verb is a row of the table: how it reads, how it writes, or why there is nothing to ask.
type verb struct {
	name   string
	reads  []line
	writes []line   // OUT is on a full disk
	prints []string // to a standard output that is full
	works  []work   // under way for long, when a signal ends them
	wrong  []string // command lines that make no sense: usage errors
	none   string   // why it has no line of any kind
	silent string   // why it prints nothing that is asked for
}

// A work is a line that is under way for long. In its arguments APP is what starts a service.
type work struct {
	args  string
	until string // it is under way when it has said this; empty: some time after its start
	code  int    // of its end by a signal
}

// notText are inputs that are sound where bytes are taken as they come.
const notText = "empty unwritten nul bom torn long deep aliases records names"

var verbs = []verb{
	{name: "", prints: []string{"--help", "--version"}},
	{name: "agents", prints: []string{"--root ROOT agents"}, reads: []line{
		{args: "--root ROOT agents", at: "ROOT/agents.yaml", fine: "missing empty bom torn"}}},
	{name: "agents fetch", silent: "what it fetches is a file; it tells of it beside",
		reads: []line{
			{args: "--root ROOT agents fetch x", at: "ROOT/agents.yaml", codes: []int{2}}}},
	{name: "audit", prints: []string{"audit RUN"}, reads: []line{
		{args: "audit BAD", codes: []int{4}},
		{args: "audit RUN", at: "RUN/trials.ndjson", fine: goesOn, codes: []int{4}},
		{args: "audit RUN", at: "RUN/run.json", fine: "bom", codes: []int{4}}},
		wrong: []string{"audit", "audit RUN --column x"}},
	{name: "build", works: []work{{"--root ROOT build go-one", "sleep 60", 1}},
		silent: "it tells how it gets on, and nothing else", reads: []line{
			{args: "--root ROOT build go-one",
				at: "ROOT/services/go-one/service.yaml", open: built}},
		wrong: []string{"build --jobs x"}},
	{name: "capacity", works: []work{{"capacity URL --slo p99<1s --budget 1m", "warm-up", 1}},
		prints: []string{"capacity URL --concurrency 1,2 --window 100ms"}, reads: []line{
			{args: "capacity URL --slo p99<1s --budget 1s --window 100ms --body @BAD",
				fine:  notText,
				codes: []int{2, 3, 4, 5}},
			{args: "capacity URL --slo p99<1s --scenario BAD", codes: []int{2}}},
		wrong: []string{"capacity URL", "capacity URL --slo ''", "capacity URL --slo p99<1s -c 0",
			"capacity URL --concurrency x", "capacity URL --slo p99<1s --window 0s"}},
	{name: "compare", prints: []string{"compare RUN --targets a/b,c/d"}, reads: []line{
		{args: "compare RUN --targets a/b,c/d", at: "RUN/trials.ndjson", fine: "bom torn long"},
		{args: "compare RUN RUN", at: "RUN/run.json", fine: "bom"}},
		writes: []line{{args: "compare RUN --targets a/b,c/d --unlike -o OUT.html"}},
		wrong:  []string{"compare RUN --targets ''", "compare RUN --targets a/b"}},
	{name: "completion", none: "cobra's"},
	{name: "completion bash", prints: []string{"completion bash"}},
	{name: "completion fish", none: "cobra's"},
	{name: "completion powershell", none: "cobra's"},
	{name: "completion zsh", none: "cobra's"},
	{name: "doctor", prints: []string{"doctor"},
		wrong: []string{"doctor --cpus 0", "doctor --cpus x"}},
	{name: "explain", prints: []string{"explain RUN"}, reads: []line{
		{args: "explain RUN", at: "RUN/telemetry/spans.ndjson", fine: "bom"}}},
	{name: "fairness", silent: "its table comes when services were built; TestFairness has it",
		reads: []line{
			{args: "--root ROOT fairness go-one", at: "ROOT/services/go-one/service.yaml",
				open: built}}},
	{name: "gate", silent: "it prints as compare does, of runs with more in them", reads: []line{
		{args: "gate RUN RUN", at: "RUN/trials.ndjson", fine: "bom torn long",
			codes: []int{2, 4, 5}}},
		wrong: []string{"gate RUN --max-regression ''", "gate RUN --targets ''"}},
	{name: "hey", prints: []string{"hey -n 10 -c 1 URL"}, reads: []line{
		{args: "hey -n 10 -c 1 -D BAD URL", fine: notText, codes: []int{2, 4}}},
		wrong: []string{"hey", "hey -n x URL"}},
	{name: "import", prints: []string{"import WRK"},
		reads: []line{{args: "import BAD"}}, wrong: []string{"import"}},
	{name: "init", prints: []string{"init --url http://127.0.0.1:9 --out OUT"}, reads: []line{
		{args: "init --from BAD --url http://127.0.0.1:9 --out OUT", codes: []int{1}}},
		writes: []line{{args: "init --url http://127.0.0.1:9 --out OUT"}},
		wrong: []string{"init", "init --url x://y", "init --from ''", "init --url URL --command x",
			"init --url URL --as x", "init --url https://127.0.0.1"}},
	{name: "load", works: []work{{"load URL -d 1m -c 2", "in flight", 4}},
		prints: []string{"load URL -n 10 -c 1", "load --help"}, reads: []line{
			{args: "load URL -n 10 -c 1 --body @BAD", fine: notText, codes: []int{2, 4}},
			{args: "load URL -n 10 -c 1 --scenario BAD", codes: []int{2}},
			{args: "load URL -d 100ms --trace BAD", codes: []int{2}}},
		writes: []line{{args: "load URL -r 1000 -d 100ms --save-trace OUT", codes: []int{4}},
			{args: "load URL -n 10 -c 1 --save=OUT", codes: []int{4}}},
		wrong: []string{"load URL -c 0", "load URL -d 0s", "load URL -r 0", "load URL -r +Inf",
			"load URL --keys 9-1", "load URL -X 'G\nT'", "load URL -H 'a: b\nc'",
			"load URL -H a", "load URL --threshold ''", "load URL -r ''", "load URL --users ''",
			"load URL --trace ''", "load URL --scenario ''", "load URL#top", "load ''",
			"load ftp://x/", "load URL -n -1", "load URL --timeout 0s", "load URL --lead -1s",
			"load URL --status 0", "load URL --zipf NaN", "load URL --streams 0",
			"load URL -d 100ms --traces ''", "load URL --churn -1", "load URL --cores 99999",
			"load http://192.0.2.1/", "load http://192.0.2.1/ --remote 192.0.2.2",
			"load URL --name x", "load URL -o x.pdf", "load URL --warmup x"}},
	{name: "logs", prints: []string{"logs RUN"}, reads: []line{
		{args: "logs RUN", at: "RUN/telemetry/logs.ndjson", fine: goesOn}},
		wrong: []string{"logs RUN --grep (", "logs RUN --severity x", "logs RUN --limit -1"}},
	{name: "man", prints: []string{"man"},
		writes: []line{{args: "man OUT"}}},
	{name: "new", none: "only its verbs do something"},
	{name: "new service", silent: "it makes a folder, and tells of it beside", reads: []line{
		{args: "--root ROOT new service go-two", at: "ROOT/services/go-one/service.yaml"}},
		wrong: []string{"new service", "new service X"}},
	{name: "oha", prints: []string{"oha -n 10 -c 1 --no-tui URL"}, reads: []line{
		{args: "oha -n 10 -c 1 --no-tui -D BAD URL", fine: notText, codes: []int{2, 4}}},
		wrong: []string{"oha", "oha -n x URL"}},
	{name: "plan", prints: []string{"--root ROOT plan"}, reads: []line{
		{args: "--root ROOT plan BAD"},
		{args: "--root ROOT plan", at: "ROOT/suites/canonical.yaml", fine: "bom torn"},
		{args: "--root ROOT plan --agent x/y", at: "ROOT/agents.yaml", codes: []int{2}}},
		wrong: []string{"--root ROOT plan --targets ''",
			"--root ROOT plan --detect ''", "--root ROOT plan --against ''",
			"--root ROOT plan --against x=", "--root ROOT plan --against =ROOT",
			"--root ROOT plan --duet=", "--root ROOT plan --duet=x"}},
	{name: "profile", prints: []string{"profile RUN --target a/b"}, reads: []line{
		{args: "profile RUN", at: "RUN/profiles/one.cpu.pb.gz"}},
		writes: []line{{args: "profile RUN --target a/b -o OUT.html"}},
		wrong:  []string{"profile RUN --kind x", "profile RUN --top -1"}},
	{name: "query", none: "the home's program answers it, with rows of its own"},
	{name: "rain", works: []work{{"rain URL -d 1m -c 2 --into OUT", "", 4}},
		prints: []string{"rain URL -n 10 -c 1 --into OUT"}, reads: []line{
			{args: "rain URL -n 10 -c 1 --into OUT --body @BAD",
				fine: notText, codes: []int{2, 4}}},
		wrong: []string{"rain", "rain URL -c 0", "rain x", "rain http://192.0.2.1/"}},
	{name: "report", prints: []string{"report RUN", "report RUN --format json"}, reads: []line{
		{args: "report RUN", at: "RUN/trials.ndjson", fine: goesOn},
		{args: "report RUN", at: "RUN/run.json", fine: "bom"},
		{args: "report RUN --update BAD --section x"}},
		writes: []line{{args: "report RUN -o OUT.html"}, {args: "report RUN -o OUT.csv"},
			{args: "report RUN -o OUT.json"}, {args: "report RUN -o OUT.parquet"},
			{args: "report RUN --section x --update OUT.md"}},
		wrong: []string{"report", "report RUN --baseline x", "report RUN --format x"}},
	{name: "run", works: []work{{"run", "b1-01", 1}},
		silent: "it keeps what it prints, and report prints the same", reads: []line{
			{args: "--root ROOT run BAD"},
			{args: "--root ROOT run --against BAD", codes: []int{2}},
			{args: "--root ROOT run", at: "ROOT/suites/canonical.yaml", open: built}},
		wrong: []string{"--root ROOT run --targets ''", "--root ROOT run --blocks 0",
			"--root ROOT run --host x", "--root ROOT run --launcher ''",
			"--root ROOT run --against ''", "--root ROOT run --against x=",
			"--root ROOT run --duet=", "--root ROOT run --wait=0s",
			"--root ROOT run --wait 10m"}},
	{name: "selftest", prints: []string{"selftest --help"},
		wrong: []string{"selftest nosuchcase", "selftest --engine x"}},
	{name: "services", prints: []string{"--root ROOT services"}, reads: []line{
		{args: "--root ROOT services", at: "ROOT/services/go-one/service.yaml", fine: "bom torn"}}},
	{name: "stack", none: "only its verbs do something"},
	{name: "stack down", none: "it takes no input"},
	{name: "stack status", none: "it takes no input"},
	{name: "stack up", none: "it takes no input"},
	{name: "telemetry", prints: []string{"telemetry"}},
	{name: "telemetry serve", silent: "the home's program prints, with rows of its own",
		wrong: []string{"telemetry serve", "telemetry serve --dir ''",
			"telemetry serve --dir OUT --memory x", "telemetry serve --dir OUT --grpc x"}},
	{name: "traces", prints: []string{"traces RUN"}, reads: []line{
		{args: "traces RUN", at: "RUN/telemetry/spans.ndjson", fine: goesOn}},
		wrong: []string{"traces RUN --limit -1", "traces RUN --slowest -1"}},
	{name: "trend", prints: []string{"trend RUN/.."}, reads: []line{
		{args: "trend RUN/..", at: "RUN/trials.ndjson", fine: goesOn}},
		wrong: []string{"trend --alpha 2", "trend --targets ''"}},
	{name: "truth", prints: []string{"truth"}},
	{name: "verify", works: []work{{"--root ROOT verify go-two", "go-two", 1}},
		silent: "it tells how it gets on, and nothing else", reads: []line{
			{args: "--root ROOT verify go-one",
				at: "ROOT/services/go-one/service.yaml", open: built}}},
	{name: "versus", works: []work{{"versus 'APP' 'APP --service 1ms' --get /", "b1-01", 1}},
		silent: "it keeps what it prints, and report prints the same",
		wrong: []string{"versus", "versus app", "versus ./none --get /",
			"versus app --get x", "versus --git HEAD --get /", "versus app --get / --blocks 0",
			"versus app --get / -c 0", "versus app --get / -n 'a b'", "versus app --get / -H a",
			"versus --url https://127.0.0.1 --get /", "versus --url http://192.0.2.1 --get /",
			"versus app --get / --memory x"}},
	{name: "wrk", prints: []string{"wrk -d1 -c1 -t1 URL"}, reads: []line{
		{args: "wrk -d1 -c1 -t1 -s BAD URL", codes: []int{2}}},
		wrong: []string{"wrk", "wrk -c0 URL"}},
	{name: "wrk2", prints: []string{"wrk2 -d1 -c1 -t1 -R10 URL"}, reads: []line{
		{args: "wrk2 -d1 -c1 -t1 -R10 -s BAD URL", codes: []int{2}}},
		wrong: []string{"wrk2", "wrk2 -c0 URL"}},
}
