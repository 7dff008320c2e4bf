# Everything a developer, an operator trying it out, or CI calls. `make help` lists the targets.
# The module needs Go 1.27 (generic methods); an older local go fetches that toolchain by itself.
export GOTOOLCHAIN := go1.27.3

GO      ?= go
FILES   ?=
N       ?= 100
KIND    ?= kill-eos
unit     = $(shell $(GO) list ./... | grep -v -e /integration -e /examples -e /cmd/)

.DEFAULT_GOAL := help
.PHONY: help build run test check fmt vet race test-kafka demo chaos bench bench-kafka fuzz clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

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

clean: ## remove what builds and runs leave behind
	rm -rf bin .kafka
