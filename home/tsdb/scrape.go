package tsdb

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/scrape"

	"prony.example/internal/telemetry"
)

// Limits of a scrape.
const (
	maxPageBytes  = 16 << 20 // uncompressed
	maxPageLabels = 64       // of one series
	everyDefault  = 5 * time.Second
	everyLeast    = 100 * time.Millisecond // a shorter interval would be a load of its own
	timeoutMost   = 10 * time.Second
)

// pages is the scraping under way: one manager for each trial, because the trial is in its labels.
type pages struct {
	mu  sync.Mutex
	end func() // nil: nothing is scraped
}

// Scrape starts to read the trial's pages, each at its own interval, until StopScrape. Formats are
// those of Prometheus and OpenMetrics; a page without a type is read as Prometheus' text 0.0.4. A
// page that cannot be read gives up 0 and no error. Scrape stops earlier scraping.
func (s *Store) Scrape(t telemetry.Trial) error {
	s.StopScrape()
	if len(t.Scrape) == 0 {
		return nil
	}
	cfg, err := config.Load("", silent)
	if err != nil {
		return fmt.Errorf("scrape trial %s: %w", t.ID, err)
	}
	groups := map[string][]*targetgroup.Group{}
	for i, page := range t.Scrape {
		one, group, err := scrapeConfig(cfg, t, page, fmt.Sprintf("%s-%d", t.ID, i))
		if err != nil {
			return fmt.Errorf("scrape %s for trial %s: %w", page.URL, t.ID, err)
		}
		cfg.ScrapeConfigs = append(cfg.ScrapeConfigs, one)
		groups[one.JobName] = []*targetgroup.Group{group}
	}
	counts := prometheus.NewRegistry()
	m, err := scrape.NewManager(&scrape.Options{
		AppendMetadata: true, DiscoveryReloadOnStartup: true, ScrapeOnShutdown: true,
	}, silent, nil, nil, appendable{s}, counts)
	if err == nil {
		err = m.ApplyConfig(cfg)
	}
	if err != nil {
		return fmt.Errorf("scrape trial %s: %w", t.ID, err)
	}
	feed := make(chan map[string][]*targetgroup.Group, 1)
	feed <- groups
	ended := make(chan error, 1)
	go func() { ended <- m.Run(feed) }()
	s.pages.mu.Lock()
	defer s.pages.mu.Unlock()
	s.pages.end = func() {
		m.Stop()
		<-ended
		s.count(map[string]int64{DropFuture: outOfBounds(counts)})
	}
	return nil
}

// StopScrape reads each page once more and ends scraping. It takes at most a page's timeout.
func (s *Store) StopScrape() {
	s.pages.mu.Lock()
	defer s.pages.mu.Unlock()
	if s.pages.end != nil {
		s.pages.end()
		s.pages.end = nil
	}
}

// outOfBounds returns the number of samples that the scraper itself refused before the gate: their
// times are more than Prometheus' limit of ten minutes in the future.
func outOfBounds(counts prometheus.Gatherer) (n int64) {
	all, err := counts.Gather()
	if err != nil {
		return 0 // only a count of lost samples is missing
	}
	for _, f := range all {
		if f.GetName() == "prometheus_target_scrapes_sample_out_of_bounds_total" {
			for _, m := range f.GetMetric() {
				n += int64(m.GetCounter().GetValue())
			}
		}
	}
	return n
}

// near returns an error unless an address may belong to a process or container of a trial: an
// address of this machine, or in a network of one of its interfaces, such as a container bridge.
// Names are refused, because they can resolve to anything.
func near(host string) error {
	ip := net.ParseIP(host)
	networks, err := net.InterfaceAddrs()
	if err != nil {
		return fmt.Errorf("read the networks of this machine: %w", err)
	}
	for _, n := range networks {
		if within, ok := n.(*net.IPNet); ok && ip != nil && within.Contains(ip) {
			return nil
		}
	}
	return fmt.Errorf("%s is not an address of a process that a trial started", host)
}

func scrapeConfig(cfg *config.Config, t telemetry.Trial, page telemetry.ScrapeTarget,
	name string) (*config.ScrapeConfig, *targetgroup.Group, error) {
	at, err := url.Parse(page.URL)
	if err != nil {
		return nil, nil, err
	}
	if (at.Scheme != "http" && at.Scheme != "https") || at.Host == "" {
		return nil, nil, errors.New("the address of a page must begin with http:// or https:// " +
			"and a host")
	}
	if err := near(at.Hostname()); err != nil {
		return nil, nil, err
	}
	every := page.Every
	if every <= 0 {
		every = everyDefault
	}
	every = max(every, everyLeast)
	one := config.DefaultScrapeConfig
	one.JobName, one.Scheme, one.MetricsPath, one.Params = name, at.Scheme, at.Path, at.Query()
	one.ScrapeInterval = model.Duration(every)
	one.ScrapeTimeout = model.Duration(min(every, timeoutMost))
	one.HTTPClientConfig.FollowRedirects = false // a service must not redirect the collector
	one.BodySizeLimit = maxPageBytes
	one.LabelLimit, one.LabelValueLengthLimit = maxPageLabels, maxLabelBytes
	one.ScrapeFallbackProtocol = config.PrometheusText0_0_4
	// Dots of names become underscores, as with OTLP, so that one query reads both.
	one.MetricNameValidationScheme = model.LegacyValidation
	one.MetricNameEscapingScheme = model.EscapeUnderscores
	if err := one.Validate(cfg.GlobalConfig); err != nil {
		return nil, nil, err
	}
	lbls := model.LabelSet{LabelTrial: model.LabelValue(t.ID)}
	for name, v := range map[model.LabelName]string{
		"service_name": page.Service, model.JobLabel: page.Service,
		"prony_target": t.Target, "prony_variant": t.Variant,
	} {
		if v != "" {
			lbls[name] = model.LabelValue(v)
		}
	}
	return &one, &targetgroup.Group{
		Source: name, Labels: lbls,
		Targets: []model.LabelSet{{model.AddressLabel: model.LabelValue(at.Host)}},
	}, nil
}
