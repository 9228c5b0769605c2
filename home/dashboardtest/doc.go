// Package dashboardtest holds the tests about the dashboards below deploy/: that each loads, that
// every query in it is one that its data source understands, and that it finds the names and labels
// that services, the lab and the collectors really send.
//
//	deploy/**/dashboards/*.json ─► panels ─► PromQL ─► Prometheus' parser and engine ◄─ testdata
//	                                └─► LogQL, TraceQL ─► Grafana's grammars (with Node)
//
// testdata/series.txt has the series, with where each comes from. A new metric goes there first.
//
// The table of dashboards in docs/dashboards.md is written by
//
//	go -C home test ./dashboardtest -update
//
// Not here: whether a panel is pleasant to look at, and whether the stack is up.
package dashboardtest
