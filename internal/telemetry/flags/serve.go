package flags

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/base/strictyaml"
)

const telemetryAbout = `Telemetry is the data that a service sends about itself: traces, metrics,
logs. "prony run --telemetry" starts a collector beside the run. "prony telemetry serve" runs that
collector alone, for all programs that send OpenTelemetry's protocol.`

const serveAbout = `Serve receives OTLP over gRPC and HTTP and Zipkin's v2 spans, stores them below
a folder, and answers queries about them:

  metrics  in Prometheus' database, tsdb/; Prometheus' own query API is on the query port, so that
           Grafana (a Prometheus data source) and promtool can read it while it comes in
  traces   all are counted and become metrics; whole ones are kept of errors, of the slowest, of
           those that a load asked for, and a uniform sample: spans.ndjson
  logs     warnings and errors, those of kept traces, and a uniform sample: logs.ndjson
  counts   stats.json, and GET /prony/stats: received, refused, dropped and kept, by service

Point an SDK or an agent at it with OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318, or at
http://127.0.0.1:4317 for gRPC. All data from start to end is one trial with the name served-TIME.
After the end, pass the folder to prony traces, logs or query like the folder of a run.

Serve uses no more than --memory. Serve refuses data that comes too fast, too large or too slowly,
with a status that makes exporters try again, and counts it. Serve rejects data that cannot be
right, for example a span that ends before it starts, and its answer has the reason.

Ctrl-C or SIGTERM ends it, and it stores all data. If it was killed, start it again on the same
folder: all data that it had answered with success is stored. A failure of the machine loses up to
a second of traces and logs.

With --forward, serve also sends everything to another OTLP endpoint, with --forward-only to that
one only. The first line of output, in JSON, has the addresses it listens on.

The ports have neither passwords nor encryption, so they are open to this machine only; --expose
allows other addresses. Serve accepts requests to an address or to localhost. List other names, such
as Compose's or this machine's, in PRONY_HOSTS, with commas between them. Serve rejects all other
names, because a web page could point such a name at this machine (DNS rebinding). --listen opens
the ports for telemetry on one other address of this machine, for example a bridge of containers.
The port for queries stays on 127.0.0.1, because it also takes commands of the run.`

const serveExamples = `  prony telemetry serve --dir here
  prony telemetry serve --dir here --grpc 127.0.0.1:0 --http 127.0.0.1:0   # any free ports
  prony telemetry serve --dir here --forward http://127.0.0.1:14318
  curl 'http://127.0.0.1:9090/api/v1/query?query=up'`

// DefaultMemory is several times what the collector's stores need with their default bounds.
const DefaultMemory = 512 << 20

// Serve holds the flags of telemetry serve. Addresses are "host:port"; port 0 means any free port.
type Serve struct {
	Dir                       string // folder of stored data
	GRPC, HTTP, Zipkin, Query string
	Forward                   string // another OTLP endpoint; empty: none
	ForwardOnly               bool   // store only counts here
	Memory                    strictyaml.Size
	Expose                    bool // allow addresses that other machines can reach
	UntilEnd                  bool // end with standard input, as a child of a run
}

// Telemetry returns the command telemetry with its subcommand serve. It calls do with valid
// arguments.
func Telemetry(do func(context.Context, Serve) error) *cobra.Command {
	c := &cobra.Command{
		Use: "telemetry", Short: "Run the collector of traces, metrics and logs",
		Long: telemetryAbout, Args: cli.Arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(serve(do))
	return c
}

func serve(do func(context.Context, Serve) error) *cobra.Command {
	s := Serve{Memory: DefaultMemory}
	var listen string
	c := &cobra.Command{
		Use: "serve --dir DIR", Short: "Collect OTLP and Zipkin, and answer Prometheus queries",
		Long: serveAbout, Example: serveExamples, Args: cli.Arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := listenOn(s, listen, c.Flags().Changed)
			if err == nil {
				err = s.check()
			}
			if err != nil {
				return cli.Usage(err)
			}
			return do(c.Context(), s)
		},
	}
	f := c.Flags()
	f.StringVar(&s.Dir, "dir", "", "folder for all data; created if missing")
	f.StringVar(&s.GRPC, "grpc", "127.0.0.1:4317", "address for OTLP over gRPC")
	f.StringVar(&s.HTTP, "http", "127.0.0.1:4318", "address for OTLP over HTTP")
	f.StringVar(&s.Zipkin, "zipkin", "127.0.0.1:9411", "address for Zipkin's v2 spans")
	f.StringVar(&s.Query, "query", "127.0.0.1:9090", "address for queries")
	f.StringVar(&listen, "listen", "", "address of this machine for gRPC, HTTP and Zipkin, unless "+
		"their flags are set; one that others can reach also needs --expose")
	f.StringVar(&s.Forward, "forward", "", "also send everything to this OTLP endpoint: "+
		"http://HOST:4318, https://HOST, grpc://HOST:4317 or grpcs://HOST")
	f.BoolVar(&s.ForwardOnly, "forward-only", false, "forward all data, and store only counts on "+
		"this machine")
	f.TextVar(&s.Memory, "memory", s.Memory, "memory limit")
	f.BoolVar(&s.Expose, "expose", false, "allow addresses that others can reach")
	f.BoolVar(&s.UntilEnd, "until-stdin-ends", false,
		"end when standard input ends; used for the collector of a run")
	return c
}

// Args returns the arguments with which prony-home serves the same.
func (s Serve) Args() []string {
	return []string{"telemetry", "serve", "--dir=" + s.Dir, "--grpc=" + s.GRPC, "--http=" + s.HTTP,
		"--zipkin=" + s.Zipkin, "--query=" + s.Query, "--forward=" + s.Forward,
		"--forward-only=" + strconv.FormatBool(s.ForwardOnly), "--memory=" + s.Memory.String(),
		"--expose=" + strconv.FormatBool(s.Expose),
		"--until-stdin-ends=" + strconv.FormatBool(s.UntilEnd)}
}

// listenOn sets the host of all addresses that have default values, and keeps their ports. It needs
// a specific address, because senders use it as their target.
func listenOn(s Serve, host string, isSet func(flag string) bool) (Serve, error) {
	if host == "" {
		return s, nil
	}
	ip := net.ParseIP(host)
	if ip == nil || ip.IsUnspecified() {
		return s, fmt.Errorf("serve telemetry: --listen %s must be an address of this machine, "+
			"because senders use it as their target; the command ip address lists all addresses",
			host)
	}
	for _, place := range []struct {
		flag    string
		address *string
	}{{"grpc", &s.GRPC}, {"http", &s.HTTP}, {"zipkin", &s.Zipkin}} {
		_, port, err := net.SplitHostPort(*place.address)
		if err == nil && !isSet(place.flag) {
			*place.address = net.JoinHostPort(host, port)
		}
	}
	return s, nil
}

func (s Serve) check() error {
	const least = strictyaml.Size(128 << 20)
	switch {
	case s.Dir == "":
		return fmt.Errorf("serve telemetry: set a folder for the data with --dir")
	case s.Memory < least:
		return fmt.Errorf("serve telemetry: --memory %v is too small, use at least %v",
			s.Memory, least)
	case s.ForwardOnly && s.Forward == "":
		return fmt.Errorf("serve telemetry: --forward-only requires --forward")
	}
	for _, place := range []struct{ flag, address string }{
		{"--grpc", s.GRPC}, {"--http", s.HTTP}, {"--zipkin", s.Zipkin},
		{"--query", s.Query},
	} {
		host, port, err := net.SplitHostPort(place.address)
		if err != nil {
			return fmt.Errorf("serve telemetry: %s %q: use HOST:PORT, such as 127.0.0.1:4318",
				place.flag, place.address)
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil {
			return fmt.Errorf("serve telemetry: %s %q: port %q is not a number from 0 to 65535",
				place.flag, place.address, port)
		} else if !s.Expose && !loopback(host) {
			return fmt.Errorf("serve telemetry: %s %s: other machines could reach this address "+
				"and send or read all data; use 127.0.0.1:%d, or add --expose",
				place.flag, place.address, n)
		}
	}
	return nil
}

// loopback reports whether only this machine can reach a host's address.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
