package pages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prony.example/internal/dev/tidy"
)

// page is a page of commands.
type page struct {
	name   string
	on     []tool   // programs that its commands need
	before []string // lines that give a reader's machine what the page assumes
	after  []string // lines that remove what is left; they may fail
	rules  []rule
}

// tool is a line that fails without a program or what it needs, and a line that prints a version.
type tool struct{ check, version string }

// Tools of the pages.
var (
	docker  = tool{"docker version", "docker version --format 'Docker {{.Server.Version}}'"}
	compose = tool{"docker compose version",
		"docker compose version --short | sed 's/^/Compose /'"}
	buildx  = tool{"docker buildx version", ""} // for images of services
	kubectl = tool{"kubectl version --request-timeout=5s",
		"kubectl version | sed -n 's/Server Version: v/Kubernetes /p'"}
	ctr  = tool{"ctr version", ""} // copies images to the node
	helm = tool{"helm version", ""}
)

// rule says how a command of a page is typed, if it is not as it stands.
type rule struct {
	command string        // its beginning
	skip    string        // why it is never typed
	needs   need          // skips it where something is missing
	before  string        // what a reader does before
	own     []string      // placeholders, each with a reader's own value
	exits   []int         // documented exit codes beside 0
	or      string        // a line that ends well if a failure is one of a busy machine
	stays   bool          // it runs until Ctrl-C
	bound   time.Duration // how long it may take, if it is not usual
}

// usual is how long a command may take.
const usual = 20 * time.Minute

// skips is the number of rules with skip. A command that needs a registry or a cloud may be
// skipped, and one that is no command; each other command of a page runs.
const skips = 13

// invalid are exit codes of measurements on a busy machine: some numbers are INVALID.
var invalid = []int{4}

// gated are the documented exit codes of a gate that judged.
var gated = []int{3, 4, 5}

// nextNight replaces the name of a run that is in the bucket since the night before.
var nextNight = []string{"TONIGHT", "2026-02-02"}

const (
	composed = "docker compose --project-directory deploy "
	hosts    = "TestThreeHosts of cmd/prony types these lines, for one machine"
	shortens = "a part of a command, in a sentence"
)

var all = []page{
	{name: "docker", on: []tool{docker, buildx}, rules: []rule{
		{command: "prony run --launcher", needs: images(goBases), exits: invalid},
		{command: "prony verify --launcher", needs: images(goBases)},
		{command: "prony versus --image", skip: shortens},
		{command: "prony build --images", needs: cores(8), bound: 2 * time.Hour},
		{command: "go run ./internal/dev/pinimages", needs: registry},
	}, after: []string{"git checkout --quiet ."}},
	{name: "compose", on: []tool{docker, compose, buildx}, before: []string{standIns},
		after: []string{composed + `--profile "*" down --volumes --timeout 5`,
			"docker image rm --force " + standIn},
		rules: []rule{
			{command: "prony run --telemetry=lgtm", exits: invalid},
			{command: "prony stack check", needs: realStack},
			{command: "prony stack status", before: "prony stack up"},
			{command: composed + "cp SERVICE", needs: images(javaBases), bound: time.Hour,
				before: composed + "--profile=java-spring-virtual up --build -d",
				own:    []string{"SERVICE", "java-spring-virtual"}},
			{command: composed + "--profile=OBS --profile=SERVICES up", bound: time.Hour,
				needs: images(append(javaBases, goBases...))},
			{command: composed + "--profile=OBS --profile=SERVICES --profile=RAIN_FIRE up",
				bound: time.Hour, needs: images(append(javaBases, goBases...))},
			{command: composed + "--profile RAIN_FIRE up", needs: images(goBases)},
			{command: composed + "logs -f rain-fire", needs: images(goBases),
				bound: 40 * time.Minute},
			{command: composed + "port java-spring-virtual", needs: images(javaBases),
				before: composed + "--profile=java-spring-virtual up -d"},
			{command: "RATE=5000 DURATION=3m", needs: images(goBases), bound: 40 * time.Minute},
			{command: composed + "--profile=CONTROL", exits: invalid,
				needs: images(append(goBases, "docker:29.8.1-cli"))},
			{command: "SPAN_METRICS_URL=", needs: cores(8), bound: 2 * time.Hour},
			{command: composed + "cp jmeter:", needs: cores(8), bound: 30 * time.Minute,
				before: composed + "wait jmeter"},
			{command: "SERVICE_AT=172.20.2.138:8080", needs: images(javaBases), bound: time.Hour,
				own: []string{"172.20.2.138", "127.0.0.1"}},
			{command: "SERVICE_AT=172.20.2.212:8080", needs: images(javaBases), bound: time.Hour,
				before: composed + `--profile "*" down`,
				own:    []string{"172.20.2.212", "127.0.0.1"}},
			{command: ". examples/three-hosts.env", skip: hosts},
			{command: `prony versus --url "http://$BASELINE`, skip: hosts},
			{command: "prony compare three-hosts", skip: hosts},
			{command: `prony load "http://$AGENT`, skip: hosts},
			{command: `prony generate --of "$MEET" --index 0`, skip: hosts},
			{command: `prony generate --of "$MEET" --index 1`, skip: hosts},
		}},
	{name: "dashboards", rules: []rule{
		{command: "prony load --otlp", skip: shortens},
	}},
	{name: "kubernetes", on: []tool{docker, buildx, kubectl, ctr}, before: []string{nodeImages},
		after: []string{"kubectl delete namespace prony",
			"kubectl delete clusterrolebinding,clusterrole prony-nodes"},
		rules: []rule{
			{command: "prony run --launcher", needs: images(goBases), exits: invalid},
			{command: "kind load", skip: "it needs a cluster of kind"},
			{command: "minikube image load", skip: "it needs a cluster of minikube"},
			{command: `docker save "$1"`,
				skip: "PRONY_KUBERNETES_LOAD names a script of it, which prony run calls"},
		}},
	{name: "cluster", on: []tool{docker, kubectl, ctr, helm}, before: []string{shop, volumes},
		after: []string{"helm uninstall shop -n prony", "kubectl delete namespace prony shop",
			"kubectl delete storageclass,pv -l prony-test=pages"},
		rules: []rule{
			{command: "docker load", before: "go run ./internal/dev/release -for linux/amd64",
				bound: 40 * time.Minute},
			{command: "helm install shop deploy/helm/prony -n prony --set",
				before: "docker save prony/prony:amd64 | ctr -n k8s.io images import -"},
			{command: "kubectl logs -n prony -f", exits: invalid,
				before: "kubectl wait -n prony --for=condition=Ready --timeout=2m pod --selector " +
					"app.kubernetes.io/component=lab"},
			{command: "helm test", or: "kubectl logs -n prony --tail=-1 --selector " +
				"app.kubernetes.io/component=test | grep INVALID"},
			{command: "helm install shop deploy/helm/prony -n prony -f nightly.yaml",
				before: "helm uninstall shop -n prony --wait"},
			{command: "kubectl port-forward -n", stays: true,
				before: "kubectl wait -n prony --for=condition=Available --timeout=2m " +
					"deployment/shop-prony-serve"},
			{command: "kubectl logs job/NAME", skip: "an earlier command prints a job's log"},
			{command: "kubectl describe pod", skip: shortens},
			{command: "kubectl create secret generic bucket",
				before: "printf a >AWS_ACCESS_KEY_ID; printf b >AWS_SECRET_ACCESS_KEY"},
			{command: "helm template", own: []string{"VALUES", "nightly.yaml"}},
		}},
	{name: "ci", before: []string{revisions}, rules: []rule{
		{command: "prony run --root head", exits: invalid, bound: 30 * time.Minute,
			own: []string{"NAME", "go-nethttp"}},
		{command: "prony gate run:", exits: gated, own: []string{"NAME", "go-nethttp"}},
		{command: "prony run --aa", before: project, exits: invalid, bound: 30 * time.Minute},
		{command: "prony run --out", exits: invalid, bound: 30 * time.Minute},
		{command: "prony gate results", exits: gated},
		{command: "prony store keep s3://bench/nightly results -- run", exits: invalid,
			before: "rm -rf results", bound: 30 * time.Minute, own: nextNight},
		{command: "prony store keep s3://bench/nightly results -- gate", exits: gated,
			own: nextNight},
	}},
}

// Each rule is about a command of its page, and no more commands are skipped than skips.
func TestRules(t *testing.T) {
	root, err := tidy.Root()
	if err != nil {
		t.Fatal(err)
	}
	skipped := 0
	for _, p := range all {
		text, err := os.ReadFile(filepath.Join(root, "docs", p.name+".md"))
		if err != nil {
			t.Fatal(err)
		}
		commands, _ := read(string(text))
		if len(commands) == 0 {
			t.Errorf("%s has no commands", p.name)
		}
		used := map[string]bool{}
		for _, c := range commands {
			used[p.rule(c).command] = true
		}
		for _, r := range p.rules {
			if !used[r.command] {
				t.Errorf("%s: no command begins with %s", p.name, r.command)
			}
			if r.skip != "" {
				skipped++
			}
		}
	}
	if skipped != skips {
		t.Errorf("%d rules skip a command, want %d", skipped, skips)
	}
}

// rule returns the rule of a command: the one with the longest beginning.
func (p page) rule(c command) (found rule) {
	for _, r := range p.rules {
		if strings.HasPrefix(c.text, r.command) && len(r.command) > len(found.command) {
			found = r
		}
	}
	return found
}
