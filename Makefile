# Two commands matter: make bench and make test. Everything else is in the program itself.

# As prony itself is built by both (internal/first says why), so that it is compiled once.
FLAGS = -trimpath -tags=netgo,osusergo,grpcnotrace '-ldflags=-s -w'

.PHONY: go bench test test-all build setup release bench-load bench-cost

bench: go ## compare the services of the canonical suite, about five minutes
	@go run $(FLAGS) ./internal/first

test: setup ## what a change is tried with, minutes
	go run ./internal/tests/run

test-all: test ## and every service, agent, profiler, image and system, once for the same bytes
	go run ./internal/tests/run -all

build: go ## prony; the home of telemetry is built when it is first needed
	go build $(FLAGS) -o bin/prony ./cmd/prony

release: build ## dist/: static programs for linux on two processors, manual, completion, checksums
	rm -rf dist && mkdir -p dist/share/man/man1
	for arch in amd64 arm64; do \
	  for program in prony prony-home; do \
	    CGO_ENABLED=0 GOOS=linux GOARCH=$$arch go build $(FLAGS) -o dist/$$program-linux-$$arch ./cmd/$$program && \
	    go version -m dist/$$program-linux-$$arch > dist/$$program-linux-$$arch.modules || exit 1; \
	  done; \
	done
	bin/prony man dist/share/man/man1
	for shell in bash fish zsh; do bin/prony completion $$shell > dist/share/prony.$$shell || exit 1; done
	cd dist && sha256sum prony* share/prony.* share/man/man1/* > SHA256SUMS

go:
	@command -v go >/dev/null || { echo "prony is written in Go: install Go 1.26 or newer" >&2; exit 1; }

# The tests of the page need a browser. Where it cannot be installed, they are skipped with a line.
setup:
	@command -v chromium >/dev/null || [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; }

bench-load: build ## our generator against every other that is installed, on two quiet cores
	go test ./bench -run '^$$' -bench '^BenchmarkLoad$$' -benchtime 1x -timeout 2h -v

bench-cost: ## what a request costs our generator, as a line more of its history; a minute, two quiet cores
	go test ./bench -run '^$$' -bench '^BenchmarkCost$$' -benchtime 1x -v
