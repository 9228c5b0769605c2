// Package deploytest checks the folder deploy/ against docs/compose.md and the catalog: its tests
// read the files as Compose resolves them, and the configuration of the programs in them. They need
// Docker's Compose plugin, but no engine.
//
// Non-goals: it starts nothing, and contains only tests.
package deploytest
