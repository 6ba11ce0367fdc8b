# The commands of a contributor. CONTRIBUTING.md explains them; .ci/run is what must pass before a change lands.

.PHONY: help test full race stress lint fuzz bench faults models generate docs count ci
.DEFAULT_GOAL := help

# go.work is for editors and the linters of CI. Here each module is built as its users build it.
export GOWORK = off

# in_modules runs a command in the folder of each module, two at a time, because most tests wait. It goes on to the end, and fails
# if one of them has failed.
in_modules = git ls-files go.mod '*/go.mod' | xargs -n1 dirname | \
	xargs -P 2 -I MODULE sh -c '(cd MODULE && $(1)) || { echo "failed: MODULE"; exit 1; }'

help: ## print this list
	@sed -nE 's/^([a-z]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

test: ## the fast tests of all modules: those that need redis-server are skipped where it is missing
	@$(call in_modules,go test -count=1 ./...)
	@echo 'The long tests were skipped: make full runs them. With -v, go test prints their number for each package.'

full: ## all tests of all modules, the long ones too
	@$(call in_modules,REQLOCK_FULL=1 go test -count=1 -timeout 20m ./...)

race: ## the fast tests with the race detector, in random order
	go test -race -shuffle=on ./...

# Variables of make stress. Repeated on one core and on two, 20 runs of all packages take hours.
PACKAGES = ./...
COUNT = 20

stress: ## the fast tests COUNT times each, while something else keeps a core busy: make stress PACKAGES=./core COUNT=5
	while :; do :; done & trap "kill $$!" EXIT; trap exit INT TERM; \
	go test -race -shuffle=on -cpu 1,2 -count=$(COUNT) -timeout 3h $(PACKAGES)

lint: ## the linters, which are installed where they are missing
	.ci/run lint tidy

fuzz: ## each fuzzer for 20 s, guided by coverage
	@for file in $$(git grep -lE '^func Fuzz' '*_test.go'); do \
	  for target in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]+).*/\1/p' $$file); do \
	    go test -run '^$$' -fuzz "^$$target\$$" -fuzztime 20s ./$$(dirname $$file) || exit 1; \
	  done; \
	done

bench: ## what a lock and a middleware cost
	go test -run '^$$' -bench . ./core ./nethttplock ./ginlock ./echolock ./grpclock ./protolock
	cd connectlock && go test -run '^$$' -bench . .
	cd echov5lock && go test -run '^$$' -bench . .
	cd fiberlock && go test -run '^$$' -bench . .

faults: ## the short fault campaign: some minutes
	cd tests/faults && go run . -short

models: ## all searches of the models, the large ones too: an hour
	internal/redis/script/model/check.sh -all

generate: ## write the generated texts again: the exported API
	go generate ./tests/api

docs: ## check the links, the tables and the Go code of the pages, and the generated texts
	go test -count=1 ./tests/layout ./tests/api ./tests/docs
	cd tests/bench && go test -count=1 ./internal/migrating
	cd otellock && go test -count=1 -run Docs .
	cd connectlock && go test -count=1 -run Pages .
	cd echov5lock && go test -count=1 -run Pages .
	cd fiberlock && go test -count=1 -run Pages .
	cd tests/otel && go test -count=1 -run ThePage .

# Tests, test tools and examples are all that users do not compile.
count: ## the Go lines of tests, test tools and examples, those of the product, and the words of the pages
	@git ls-files -z '*.go' | xargs -0 wc -l | awk '$$2 == "total" { next } \
		$$2 ~ /_test\.go$$|\.pb\.go$$|^tests\/|^examples\/|testkit\/|^core\/locktest\// { rest += $$1; next } { product += $$1 } \
		END { printf "%d lines of tests, test tools and examples, %d of product: %.2f\n", rest, product, rest / product }'
	@echo "$$(git ls-files '*.go' | wc -l) files"
	@awk '/^ *```/ { code = !code; next } !code { for (i = 1; i <= NF; i++) if ($$i ~ /[A-Za-z0-9]/) n++ } END { print n " words in README.md and docs/*.md, without code blocks" }' \
		README.md docs/*.md

ci: ## everything that must hold before a change lands; .ci/run -h lists its steps
	.ci/run
