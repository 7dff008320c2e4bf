# Everything a developer, an operator trying it out, or CI calls. `make help` lists the targets.
# The module needs Go 1.27 (generic methods); an older local go fetches that toolchain by itself.
export GOTOOLCHAIN := go1.27.3

GO      ?= go
FILES   ?=
EOS     ?=
ONCE    ?=
KIND    ?= kill-eos
N       ?= 100
SIDE    ?= both
SCALE   ?= 1
REPS    ?= 1
WORKLOADS ?=
GUARANTEE ?= at_least_once
COMMIT_MS ?= 1000
OUT     ?= bench.jsonl
PORT    ?= 19092
kafka    = $(GO) run ./integration/kafka/cmd/kafka
unit     = $(shell GOTOOLCHAIN=$(GOTOOLCHAIN) $(GO) list ./... | grep -v -e /integration -e /examples -e /cmd/)

.DEFAULT_GOAL := help
.PHONY: help build run test check fmt vet race test-kafka test-clients model mutants diff-kafka demo chaos bench bench-kafka clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## compile everything, and the CLI into bin/
	$(GO) build ./...
	$(GO) build -o bin/ ./cmd/millrace

run: ## the word count on the embedded cluster (FILES="a.txt b.txt", ONCE=1 ends it when the input is counted)
	$(GO) run ./examples/wordcount $(if $(ONCE),-once) $(FILES)

test: ## all tests, without Java
	$(GO) test ./...

check: fmt vet ## format, vet, architecture and unit tests (under 3 minutes)
	$(GO) test -short $(unit)

fmt: ## fail when a file is not formatted
	@bad=$$($$($(GO) env GOROOT)/bin/gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	if [ -n "$$bad" ]; then echo "not formatted, run go fmt:"; echo "$$bad"; exit 1; fi

vet: ## go vet
	$(GO) vet ./...

race: ## all tests under the race detector, short forms
	$(GO) test -race -short ./...

test-kafka: ## the integration tests against a real Apache Kafka (JDK 17 and Maven)
	@$(kafka) start -name tests -port $(PORT) -fresh >/dev/null
	@echo "Apache Kafka at 127.0.0.1:$(PORT)"
	@KAFKA_BOOTSTRAP=127.0.0.1:$(PORT) $(GO) test -count=1 ./integration/... ./membership/classic ./cmd/millrace ./streams; \
	status=$$?; $(kafka) stop -name tests; exit $$status

test-clients: ## other people's clients against both profiles of millrace dev (JDK, Maven, Node.js, Python); BROKER=apache: a real Kafka
	MILLRACE_CLIENTS=$(if $(BROKER),$(BROKER),kafka,kip345) $(GO) test -count=1 -v -timeout 60m -parallel 4 -run TestClients ./integration/clients

model: ## random histories of the coordinator, N=100000 seeds; a failing one prints a script
	MODEL_SEEDS=$(if $(filter command%,$(origin N)),$(N),100000) $(GO) test -count=1 -v -timeout 0 -run Model ./membership/coordinator

mutants: ## break single rules of the coordinator; each must be noticed
	COORDINATOR_MUTANTS=1 $(GO) test -count=1 -v -timeout 60m -run TestMutants ./membership/coordinator

diff-kafka: ## the coordinator beside a real Kafka, N=2000 random request sequences
	@$(kafka) start -name diff -port $(PORT) -fresh >/dev/null
	@KAFKA_BOOTSTRAP=127.0.0.1:$(PORT) GROUPDIFF_N=$(if $(filter command%,$(origin N)),$(N),2000) \
		$(GO) test -count=1 -v -timeout 0 ./integration/groupdiff; \
	status=$$?; $(kafka) stop -name diff; exit $$status

demo: ## a word count is killed with SIGKILL and finds its tasks and its state again (EOS=1: exactly-once)
	$(GO) run ./integration/demo $(if $(EOS),-eos)

chaos: ## kill -9 at random and at chosen points, N=100 times, then compare with a replay (KIND=kill-eos, kill-cluster, kill-cluster-alos)
	$(GO) run ./integration/chaos -kind $(KIND) -n $(N)

bench: ## the benchmarks beside the code, with allocations
	$(GO) test -run '^$$' -bench . -benchmem ./statestore/... ./streams/... ./thread/... ./membership/... ./integration/cluster

bench-kafka: ## Kafka Streams and Millrace in turn on fresh pinned brokers (SIDE=both|go|peer SCALE REPS GUARANTEE COMMIT_MS WORKLOADS)
	$(GO) run ./integration/bench/suite -side $(SIDE) -scale $(SCALE) -reps $(REPS) -guarantee $(GUARANTEE) \
		-commit-ms $(COMMIT_MS) -o $(OUT) $(if $(APP),-app $(APP)) $(WORKLOADS)
	$(GO) run ./integration/bench/suite -table $(OUT)

clean: ## remove what builds and runs leave behind
	rm -rf bin .kafka
