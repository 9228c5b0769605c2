package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"prony.example/internal/base/format"
)

// topicRow is a line of a help topic: a name or a code, and its meaning.
type topicRow struct{ name, meaning string }

// exitCodes are the exit codes of all commands. Scripts rely on them.
var exitCodes = []topicRow{
	{"0", "The command did its work. Results are VALID or SUSPECT, and all checks passed."},
	{"1", "The command failed. For selftest: a case is wrong."},
	{"2", "The command line is wrong."},
	{"3", "A threshold was missed, a gate failed, or a metric in trend became worse."},
	{"4", "A trial, a load or the machine is INVALID or unfit, a trial failed, responses differ " +
		"from the contract, published results contradict each other, or a gate lacks valid data."},
	{"5", "A gate is inconclusive: its limit is inside the interval. For selftest: the machine " +
		"disturbed some cases."},
}

// variables are the environment variables that users set.
var variables = []topicRow{
	{"AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, AWS_ENDPOINT_URL",
		"Credentials, region and address of the object store of prony store."},
	{"DOCKER_HOST", "Socket of the container engine."},
	{"GRAFANA_PASSWORD", "Password of Grafana's user for prony stack check (default a)."},
	{"JAVA_HOME", "JDK that builds and runs Java services."},
	{"KUBECONFIG", "Cluster of kubectl, which starts pods."},
	{"NO_COLOR", "If set, tables have no colors."},
	{"OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_CERTIFICATE, OTEL_RESOURCE_ATTRIBUTES",
		"Headers, certificate and attributes of what --otlp sends; other variables of the " +
			"OpenTelemetry exporter also work."},
	{"PRONY_BESIDE", "If 1, measure although another user measures on this machine; verdicts " +
		"consider the CPU time of the other measurement."},
	{"PRONY_CACHE", "Directory of clones and builds of versus (default ~/.cache/prony)."},
	{"PRONY_HOSTS", "Host names that serve and the telemetry collector accept, in addition to " +
		"their addresses."},
	{"PRONY_KEY", "Key of a worker of prony load --generators, which its coordinator writes."},
	{"PRONY_KUBERNETES_CONTEXT, PRONY_KUBERNETES_NAMESPACE, PRONY_KUBERNETES_NODES",
		"Context, namespace and node labels of pods."},
	{"PRONY_KUBERNETES_LIFETIME", "Longest life of a pod, for example 90m (default 2h)."},
	{"PRONY_KUBERNETES_LOAD", "Command that brings an image to the nodes."},
	{"PRONY_KUBERNETES_READER, PRONY_KUBERNETES_READER_IMAGE",
		"With the value pod, a reader pod on the node reads CPU and memory of the service's pod; " +
			"the other variable is its image."},
	{"PRONY_ROOT", "Folder with services/ and suites/, like --root."},
	{"PRONY_TOKEN", "Token that clients of serve must send, if other machines have access."},
	{"XDG_CACHE_HOME", "Directory of caches (default ~/.cache)."},
}

// topicCmds returns help texts without a command, as in prony help exit-codes.
func topicCmds() []*cobra.Command {
	return []*cobra.Command{
		{Use: "exit-codes", Short: "Exit codes of all commands", Long: topicText(exitCodes)},
		{Use: "environment", Short: "Environment variables of all commands",
			Long: topicText(variables)},
	}
}

// topicWidth is the width of a help topic in columns.
const topicWidth = 76

// topicText prints names above their meanings.
func topicText(rows []topicRow) string {
	const indent = "    "
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "%s\n%s\n", format.Wrap("", r.name, topicWidth, 0),
			format.Wrap(indent, r.meaning, topicWidth, len(indent)))
	}
	return strings.TrimRight(b.String(), "\n")
}
