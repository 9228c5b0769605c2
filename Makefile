# Two commands matter: make bench and make test. Everything else is in the program itself.

# As tests and prony itself build programs, so that each package is compiled once;
# internal/base/buildflags says why these.
FLAGS = -trimpath -tags=netgo,osusergo,grpcnotrace -gcflags=all=-dwarf=false -gcflags=std= '-ldflags=-s -w'

TESTS = GOGC=400 go build $(FLAGS) -o bin/tests ./internal/dev/testsets/run && bin/tests

.PHONY: go bench test test-all test-long build setup compiled release bench-load bench-cost bench-protocols bench-tls bench-h2 bench-grpc bench-watching

bench: go ## compare the services of the canonical suite
	@echo "Compare the services of suites/canonical.yaml: 4 minutes, and some more the first time," \
	  "when prony and they are built; later runs take all that as it is." >&2
	@began=$$(date +%s); GOGC=400 go build $(FLAGS) -o bin/ready ./internal/dev/ready || exit 1; \
	bin/ready suites/canonical.yaml || exit 1; \
	left=$$((285 - $$(date +%s) + began)); \
	if [ $$left -lt 200 ]; then \
	  left=$$((left > 60 ? left : 60)); \
	  echo "Builds were slow: the run plans $$left s, with shorter slices and warm-ups." >&2; \
	  lengths="--slices 1s --warmup 6s"; \
	  [ $$left -ge 165 ] || lengths="--slices 700ms --warmup 4s"; \
	  short="--for $${left}s $$lengths --measure 500ms"; \
	fi; \
	bin/prony run $$short || [ $$? = 4 ] # 4: there is a table, and some of its numbers are INVALID

test: go ## the first set of tests, minutes
	@$(MAKE) --no-print-directory -j2 setup compiled
	$(TESTS)

test-all: go ## the first and the second set: one case of each service, agent, image and system
	@$(MAKE) --no-print-directory -j2 SET=-all setup compiled
	$(TESTS) -all

test-long: go ## the third set: all other cases; hours, and resumable
	@$(MAKE) --no-print-directory -j2 SET=-all setup compiled
	$(TESTS) -long

build: go ## prony; the home of telemetry is built when it is first needed
	go build $(FLAGS) -o bin/prony ./cmd/prony

release: go ## dist/: static programs, what is in them, Debian packages, images, manual, checksums
	go run ./internal/dev/release

go:
	@command -v go >/dev/null || { echo "prony is written in Go: install Go 1.26 or newer" >&2; exit 1; }

# Compile what the tests need while a browser is fetched.
compiled: go
	$(TESTS) $(SET) -compile

# The tests of the page need a browser. Where it cannot be installed, they are skipped with a line.
setup:
	@command -v chromium >/dev/null || [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; }

bench-load: build ## our generator against every other that is installed, on two quiet cores
	go test ./bench -run '^$$' -bench '^BenchmarkLoad$$' -benchtime 1x -timeout 2h -v

bench-cost: ## what a request costs our generator, as a line more of its history; a minute, two quiet cores
	go test ./bench -run '^$$' -bench '^BenchmarkCost$$' -benchtime 1x -v

bench-protocols: ## what a request costs our generator in each protocol; a minute or two, two quiet cores
	go test ./bench -run '^$$' -bench '^BenchmarkProtocols$$' -benchtime 1x -v

bench-tls: ## what a request over TLS costs our engines, wrk and oha, by turns; two minutes, two quiet cores
	go test ./bench -run '^$$' -bench '^BenchmarkTLS$$' -benchtime 1x -v

bench-h2: ## what a request over HTTP/2 costs our engines, h2load and oha, by turns; three minutes, two quiet cores
	go test ./bench -run '^$$' -bench '^BenchmarkH2$$' -benchtime 1x -v

bench-grpc: ## what a call of gRPC costs our engines and ghz, by turns; three minutes, two quiet cores
	go test ./bench -run '^$$' -bench '^BenchmarkGRPC$$' -benchtime 1x -v

bench-watching: ## what it costs a run that somebody watches it in a browser; eight minutes, two quiet cores
	go test ./bench -run '^$$' -bench '^BenchmarkWatching$$' -benchtime 1x -timeout 1h -v
