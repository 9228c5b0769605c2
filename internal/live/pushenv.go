package live

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"strings"

	common "go.opentelemetry.io/proto/otlp/common/v1"
)

// settings are what OpenTelemetry's variables say of pushes (its specification, "OpenTelemetry
// Protocol Exporter" and "Resource SDK"). Where to push and how often is the flag's and ours.
type settings struct {
	headers    map[string]string
	zip        bool
	tls        *tls.Config
	attributes []*common.KeyValue
}

func readSettings(env []string) (settings, error) {
	s := settings{headers: map[string]string{}, tls: &tls.Config{}}
	// A variable for metrics alone has precedence over that for all signals.
	of := func(name string) string {
		if v := getenv(env, "OTEL_EXPORTER_OTLP_METRICS_"+name); v != "" {
			return v
		}
		return getenv(env, "OTEL_EXPORTER_OTLP_"+name)
	}
	err := eachPair(of("HEADERS"), func(name, value string) { s.headers[name] = value })
	if err != nil {
		return s, fmt.Errorf("read OTEL_EXPORTER_OTLP_HEADERS: %w", err)
	}
	ours := map[string]bool{"service.name": true, "prony.target": true, "prony.model": true,
		"prony.engine": true}
	err = eachPair(getenv(env, "OTEL_RESOURCE_ATTRIBUTES"), func(name, value string) {
		if !ours[name] {
			s.attributes = append(s.attributes, attribute(name, value))
		}
	})
	if err != nil {
		return s, fmt.Errorf("read OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	s.zip = of("COMPRESSION") == "gzip"
	if file := of("CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file)
		s.tls.RootCAs = x509.NewCertPool()
		if err == nil && !s.tls.RootCAs.AppendCertsFromPEM(pem) {
			err = fmt.Errorf("no certificate in %s", file)
		}
		if err != nil {
			return s, fmt.Errorf("read OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
	}
	if file := of("CLIENT_CERTIFICATE"); file != "" {
		pair, err := tls.LoadX509KeyPair(file, of("CLIENT_KEY"))
		if err != nil {
			return s, fmt.Errorf("read OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: %w", err)
		}
		s.tls.Certificates = []tls.Certificate{pair}
	}
	return s, nil
}

// eachPair reads "name=value,name=value", percent-encoded.
func eachPair(text string, f func(name, value string)) error {
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || name == "" || err != nil {
			return fmt.Errorf("%q is not as in name=value,name=value", pair)
		}
		f(name, value)
	}
	return nil
}
