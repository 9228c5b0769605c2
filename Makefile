# Two commands matter: make bench and make test. Everything else is in the program itself.

.PHONY: bench test build setup bench-load

bench: build ## compare all services that can run here, about five minutes
	./bin/prony run

test: setup ## every test, the real services and a real browser included
	go vet ./...
	go test -p 1 -timeout 60m ./...

build:
	@command -v go >/dev/null || { echo "prony is written in Go: install Go 1.26 or newer" >&2; exit 1; }
	go build -o bin/prony ./cmd/prony

# The tests of the page need a browser. Where it cannot be installed, they are skipped with a line.
setup: build
	@command -v chromium >/dev/null || [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; }

bench-load: build ## our generator against every other that is installed, on two quiet cores
	go test ./bench -run '^$$' -bench '^BenchmarkLoad$$' -benchtime 1x -timeout 2h -v
