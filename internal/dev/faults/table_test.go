package faults

// line is one command line of a verb. In its arguments BAD is the input that is put before it, RUN
// the folder of a sound run, ROOT a small checkout, OUT a file to write, URL a server that
// responds.
type line struct {
	args string // in words; a quoted word may be empty or contain blanks
	at   string // place of the bad input below ROOT or RUN; empty: the argument BAD itself
	fine string // inputs that may succeed
	open string // unhandled inputs, or ones that lead elsewhere, with the reason
	// Exit codes beside 1, the usual one of an unreadable input.
	codes []int
	index bool // it keeps an index beside the runs, also if it fails
}

// goesOn are inputs with which a reader of lines may succeed: it reports invalid lines and
// continues.
const goesOn = "missing empty unwritten nul bom torn long deep aliases names"

// built are inputs with which a manifest is sound, and its service, which has no sources, is built.
const built = "bom torn"

// verb is a row of the table: how it reads, how it writes, or why it has no tests.
type verb struct {
	name   string
	reads  []line
	writes []line   // OUT is on a full disk
	prints []string // command lines that succeed if standard output has room
	works  []work   // until a user ends them
	wrong  []string // invalid command lines: usage errors
	none   string   // why it reads and writes nothing, and has no invalid line
	silent string   // why it prints only its help here
}

// work is a line that lasts until a user ends it. It works once it has sent requests to the server
// ASKED, or has a process of its own, such as a service or a build step.
type work struct {
	args  string
	code  int    // documented, after a signal
	saved string // the folder of the run that remains, with a report
}

// notText are inputs that are valid as bytes; a pipe without a writer is empty.
const notText = "empty unwritten nul bom torn long deep aliases records names"

var verbs = []verb{
	{name: "", none: "alone it is run, or help",
		prints: []string{"--help", "--version"}},
	{name: "agents", reads: []line{
		{args: "--root ROOT agents", at: "ROOT/agents.yaml", fine: "missing empty bom torn"}},
		prints: []string{"--root ROOT agents"}},
	{name: "agents fetch", reads: []line{
		{args: "--root ROOT agents fetch x", at: "ROOT/agents.yaml", codes: []int{2}}},
		prints: []string{"--root ROOT agents fetch"}},
	{name: "audit", reads: []line{
		{args: "audit BAD", codes: []int{4}},
		{args: "audit RUN", at: "RUN/trials.ndjson", fine: goesOn, codes: []int{4}},
		{args: "audit RUN", at: "RUN/run.json", fine: "bom", codes: []int{4}}},
		wrong:  []string{"audit", "audit RUN --column x"},
		prints: []string{"audit RUN"}},
	{name: "build", works: []work{
		{"--root ROOT build sh-slow", 1, ""},
	},
		reads: []line{
			{args: "--root ROOT build go-one", at: "ROOT/services/go-one/service.yaml",
				open: built}},
		wrong:  []string{"build --jobs x"},
		prints: []string{"--root ROOT build go-two"}},
	{name: "capacity", works: []work{
		{"capacity ASKED --slo p99<1s --budget 1m", 1, ""},
	},
		reads: []line{
			{args: "capacity URL --slo p99<1s --budget 1s --window 100ms --body @BAD",
				fine:  notText,
				codes: []int{2, 3, 4, 5}},
			{args: "capacity URL --slo p99<1s --scenario BAD", codes: []int{2}}},
		wrong: []string{"capacity URL", "capacity URL --slo ''", "capacity URL --slo p99<1s -c 0",
			"capacity URL --concurrency x", "capacity URL --slo p99<1s --window 0s",
			"capacity URL --slo p99<1s --generators 0"},
		prints: []string{"capacity URL --slo p99<1s --budget 1s --window 100ms"}},
	{name: "compare", reads: []line{
		{args: "compare RUN --targets a/b,c/d", at: "RUN/trials.ndjson", fine: "bom torn long"},
		{args: "compare RUN RUN", at: "RUN/run.json", fine: "bom"}},
		writes: []line{{args: "compare RUN --targets a/b,c/d --allow-mismatch -o OUT.html"}},
		wrong:  []string{"compare RUN --targets ''", "compare RUN --targets a/b"},
		prints: []string{"compare RUN --targets a/b,c/d"}},
	{name: "completion", none: "cobra's", prints: []string{"completion"}},
	{name: "completion bash", none: "cobra's",
		prints: []string{"completion bash"}},
	{name: "completion fish", none: "cobra's",
		prints: []string{"completion fish"}},
	{name: "completion powershell", none: "cobra's",
		prints: []string{"completion powershell"}},
	{name: "completion zsh", none: "cobra's",
		prints: []string{"completion zsh"}},
	{name: "doctor", wrong: []string{"doctor --cpus 0", "doctor --cpus x"},
		prints: []string{"doctor"}},
	{name: "explain", reads: []line{
		{args: "explain RUN", at: "RUN/telemetry/spans.ndjson", fine: "bom"}},
		silent: "its run was not traced"},
	{name: "gate", reads: []line{
		{args: "gate RUN RUN", at: "RUN/trials.ndjson", fine: "bom torn long",
			codes: []int{2, 4, 5}}},
		wrong:  []string{"gate RUN --max-regression ''", "gate RUN --targets ''"},
		silent: "its run has no metric that a gate judges"},
	{name: "generate", none: "it does what a lab says",
		wrong: []string{"generate", "generate --of 127.0.0.1:9",
			"generate --of 127.0.0.1:9 --index 0"},
		silent: "it speaks to its lab alone"},
	{name: "import", reads: []line{{args: "import BAD"}}, wrong: []string{"import"},
		prints: []string{"import FOREIGN"}},
	{name: "init", reads: []line{
		{args: "init --from BAD --url http://127.0.0.1:9 --out OUT", codes: []int{1}}},
		writes: []line{{args: "init --url http://127.0.0.1:9 --out OUT"}},
		wrong: []string{"init", "init --url x://y", "init --from ''", "init --url URL --command x",
			"init --url URL --as x", "init --url http://127.0.0.1 -k"},
		prints: []string{"init --url http://127.0.0.1:9 --out OUT"}},
	{name: "load", works: []work{
		{"load ASKED -d 1m -c 4", 4, ""},
		{"load ASKED -r 500 -d 1m -c 4 --save=OUT", 4, ""},
	},
		reads: []line{
			{args: "load URL -n 10 -c 1 --body @BAD", fine: notText, codes: []int{2, 4}},
			{args: "load URL -n 10 -c 1 --scenario BAD", codes: []int{2}},
			{args: "load URL -d 100ms --trace BAD", codes: []int{2}}},
		writes: []line{{args: "load URL -r 1000 -d 100ms --save-trace OUT", codes: []int{4}},
			{args: "load URL -n 10 -c 1 --save=OUT", codes: []int{4}}},
		wrong: []string{"load URL -c 0", "load URL -n 010", "load URL -d 0s", "load URL -r 0",
			"load URL -r +Inf", "load URL --keys 9-1", "load URL -X 'G\nT'",
			"load URL -H 'a: b\nc'",
			"load URL -H a", "load URL --threshold ''", "load URL -r ''", "load URL --users ''",
			"load URL --trace ''", "load URL --scenario ''", "load URL#top", "load ''",
			"load ftp://x/", "load URL -n -1", "load URL --timeout 0s", "load URL --lead-in -1s",
			"load URL --status 0", "load URL --zipf NaN", "load URL --streams 0",
			"load URL -d 100ms --traces ''", "load URL --churn -1", "load URL --cores 99999",
			"load http://192.0.2.1/", "load http://192.0.2.1/ --remote 192.0.2.2",
			"load URL --name x", "load URL -o x.pdf", "load URL --warmup x",
			"load URL --generators 0", "load URL --listen :0", "load URL --key ''"},
		prints: []string{"load URL -n 10 -c 1", "load URL -n 10 -c 1 --json", "load --help"}},
	{name: "logs", reads: []line{
		{args: "logs RUN", at: "RUN/telemetry/logs.ndjson", fine: goesOn}},
		wrong:  []string{"logs RUN --grep (", "logs RUN --severity x", "logs RUN --limit -1"},
		prints: []string{"logs RUN"}},
	{name: "plan", reads: []line{
		{args: "--root ROOT plan BAD"},
		{args: "--root ROOT plan", at: "ROOT/suites/canonical.yaml", fine: "bom torn"},
		{args: "--root ROOT plan --agent x/y", at: "ROOT/agents.yaml", codes: []int{2}}},
		wrong: []string{"--root ROOT plan --targets ''",
			"--root ROOT plan --detect ''", "--root ROOT plan --against ''",
			"--root ROOT plan --against x=", "--root ROOT plan --against =ROOT"},
		prints: []string{"--root ROOT plan"}},
	{name: "profile", reads: []line{
		{args: "profile RUN", at: "RUN/profiles/one.cpu.pb.gz"}},
		writes: []line{{args: "profile RUN --target a/b -o OUT.html"}},
		wrong:  []string{"profile RUN --kind x", "profile RUN --top -1"},
		prints: []string{"profile RUN --target a/b"}},
	{name: "query", none: "the home's program answers it, with rows of its own",
		prints: []string{"query SERVED --list"}},
	{name: "rain", works: []work{
		{"rain ASKED -d 1m -c 4 --into OUT", 4, ""},
	},
		reads: []line{
			{args: "rain URL -n 10 -c 1 --into OUT --body @BAD", fine: notText,
				codes: []int{2, 4}}},
		wrong:  []string{"rain", "rain URL -c 0", "rain x", "rain http://192.0.2.1/"},
		prints: []string{"rain URL -n 10 -c 1 --into OUT"}},
	{name: "report", reads: []line{
		{args: "report RUN", at: "RUN/trials.ndjson", fine: goesOn},
		{args: "report RUN", at: "RUN/run.json", fine: "bom"},
		{args: "report RUN --update BAD --section x"}},
		writes: []line{{args: "report RUN -o OUT.html"}, {args: "report RUN -o OUT.csv"},
			{args: "report RUN -o OUT.json"}, {args: "report RUN -o OUT.parquet"},
			{args: "report RUN --section x --update OUT.md"}},
		wrong:  []string{"report", "report RUN --baseline x", "report RUN --format x"},
		prints: []string{"report RUN", "report RUN --format json"}},
	{name: "run", works: []work{
		{"--root ROOT run --targets sh-slow --out OUT", 1, ""},
		{"--root ROOT run --against old=OTHER --targets go-three --out OUT", 1, ""},
		{"--root ROOT run --targets go-two --blocks 1 --measure 1m --out OUT", 1, "OUT"},
	},
		reads: []line{
			{args: "--root ROOT run BAD"},
			{args: "--root ROOT run --against BAD", codes: []int{2}},
			{args: "--root ROOT run", at: "ROOT/suites/canonical.yaml", open: built}},
		wrong: []string{"--root ROOT run --targets ''", "--root ROOT run --blocks 0",
			"--root ROOT run --host x", "--root ROOT run --launcher ''",
			"--root ROOT run --against ''", "--root ROOT run --against x=",
			"--root ROOT run --wait=0s",
			"--root ROOT run --wait 10m", "--root ROOT run --generators 0",
			"--root ROOT run --generators 300", "--root ROOT run --invalid x"},
		prints: []string{"--root ROOT run --targets go-two --quick"}},
	{name: "selftest", wrong: []string{"selftest nosuchcase", "selftest --engine x"},
		silent: "on a busy machine it ends otherwise, and its help is asked"},
	{name: "serve", none: "internal/report/runs reads damaged runs",
		wrong: []string{"--root ROOT serve --listen x", "--root ROOT serve a b",
			"--root ROOT serve --listen localhost:0", "--root ROOT serve --listen ''"},
		silent: "it prints a line and serves until it is ended"},
	{name: "services", reads: []line{
		{args: "--root ROOT services", at: "ROOT/services/go-one/service.yaml", fine: "bom torn"}},
		prints: []string{"--root ROOT services"}},
	{name: "stack", none: "only its verbs do something", prints: []string{"stack"}},
	{name: "stack check", wrong: []string{"--root ROOT stack check --grafana http://127.0.0.1:1x",
		"--root ROOT stack check --otlp x"}, silent: "it asks an engine for containers"},
	{name: "stack down", none: "it takes no input", silent: "it asks an engine for containers"},
	{name: "stack status", none: "it takes no input", silent: "it asks an engine for containers"},
	{name: "stack up", none: "it takes no input", silent: "it asks an engine for containers"},
	{name: "start", none: "it reads manifests, as services does",
		wrong: []string{"--root ROOT start", "--root ROOT start nosuchtarget",
			"--root ROOT start go-two --cpus 0", "--root ROOT start go-two --memory 1KiB",
			"--root ROOT start go-two --launcher x"},
		prints: []string{"--root ROOT start go-two"}},
	{name: "store", none: "only its verbs do something", prints: []string{"store"}},
	{name: "store keep", wrong: []string{"store keep", "store keep x RUN -- plan", // no place
		"store keep s3://x RUN"}, silent: "it asks a bucket"},
	{name: "store pull", wrong: []string{"store pull", "store pull x OUT",
		"store pull s3://x OUT --newest x"}, silent: "it asks a bucket"},
	{name: "store push", wrong: []string{"store push RUN", "store push RUN x"},
		silent: "it asks a bucket"},
	{name: "telemetry", none: "only its verb does something",
		prints: []string{"telemetry"}},
	{name: "telemetry serve", wrong: []string{"telemetry serve", "telemetry serve --dir ''",
		"telemetry serve --dir OUT --memory x", "telemetry serve --dir OUT --grpc x"},
		prints: []string{"telemetry serve --until-stdin-ends --dir OUT --grpc 127.0.0.1:0 " +
			"--http 127.0.0.1:0 --query 127.0.0.1:0 --zipkin 127.0.0.1:0"}},
	{name: "traces", reads: []line{
		{args: "traces RUN", at: "RUN/telemetry/spans.ndjson", fine: goesOn}},
		wrong:  []string{"traces RUN --limit -1", "traces RUN --slowest -1"},
		prints: []string{"traces RUN"}},
	{name: "site", reads: []line{
		{args: "site RUN/.. -o OUT", at: "RUN/trials.ndjson", fine: goesOn, index: true}},
		wrong:  []string{"site --url nowhere", "site --out ''"},
		prints: []string{"site RUN/.. -o OUT"}},
	{name: "trend", reads: []line{
		{args: "trend RUN/..", at: "RUN/trials.ndjson", fine: goesOn, index: true}},
		wrong:  []string{"trend --alpha 2", "trend --targets ''"},
		prints: []string{"trend RUN/.."}},
	{name: "truth", none: "its kinds are asked",
		prints: []string{"truth", "truth fixed --duration 100ms"}},
	{name: "verify", works: []work{
		{"--root ROOT verify sh-slow", 1, ""},
		{"--root ROOT verify sh-mute", 1, ""},
	},
		reads: []line{
			{args: "--root ROOT verify go-one", at: "ROOT/services/go-one/service.yaml",
				open: built}},
		prints: []string{"--root ROOT verify go-two", "--root ROOT verify --table go-two"}},
	{name: "versus", works: []work{
		{"versus SERVICE --get /hello --measure 1m --blocks 1 --out OUT", 1, "OUT"},
		{"versus --git HEAD --build 'sleep 1000 & wait' --run ./app --get / --out OUT", 1, ""},
	},
		wrong: []string{"versus", "versus app", "versus ./none --get /",
			"versus app --get x", "versus --git HEAD --get /", "versus app --get / --blocks 0",
			"versus app --get / -c 0", "versus app --get / -n 'a b'", "versus app --get / -H a",
			"versus --url ftp://127.0.0.1 --get /", "versus --url http://192.0.2.1 --get /",
			"versus app --get / --memory x", "versus app --get / --generators 99"},
		prints: []string{"versus --url URL --url URL --get / --plan"}},
}
