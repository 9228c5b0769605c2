// Package deploytest holds the folder deploy/ to what docs/compose.md and the catalog say: its
// tests ask Compose itself what it made of the files, and look into the configuration of what it
// starts. They need Docker's Compose plugin, but no engine.
//
// Non-goals: it starts nothing, and has no code but tests.
package deploytest
