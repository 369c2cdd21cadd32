# Every target works from a clean checkout; scripts/setup.sh installs what one needs and is missing.

PORT ?= 6379
DATA ?= data/$(PORT)
export CARGO_FLAGS ?=
export PYTEST_FLAGS ?=
BENCH_FLAGS ?=
CHECKER_FLAGS ?= --seconds 60
TORTURE_FLAGS ?= --seconds 600
LOSSES_FLAGS ?= --sends 1000000
export EFFECTS_FLAGS ?=
OUTBOX_FLAGS ?=
LOAD_FLAGS ?=
SOAK_SECONDS ?= 1800
SOAK_FLAGS ?=
export SIM_SECONDS ?= 60
EXPLORE_FLAGS ?=
ENGINES ?=
PARTS ?=
FRESH_FLAGS ?=
DRIVER_FLAGS ?=
SQS_FLAGS ?=
VERSIONS_FLAGS ?=

.DEFAULT_GOAL := help

# The redirection makes every make ask a shell, which knows `command`.
ifeq ($(shell command -v bash 2>/dev/null),)
$(error the scripts of dq need bash, which is not here: install it first (on Alpine: apk add bash))
endif

.PHONY: help setup setup-optional build build-pgo run cli install-cli test test-one test-fresh test-short test-engines test-php test-node test-go test-versions test-faults test-celery test-bullmq test-protocol test-asan miri lint audit fmt checker torture losses effects-calls effects-faults effects-peers effects-cost outbox-faults load load-tenants soak soak-digests simulate explore nightly rust-version fuzz bench bench-instructions bench-smoke bench-steps bench-web dist release bundle test-bundle test-reproducible test-packages test-container bench-costs bench-frameworks bench-bullmq bench-compress test-sqs test-sqs-clients test-sqs-faults bench-sqs test-takeover bench-takeover

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  make run PORT=7000                     on another port than 6379"
	@echo "  make test PYTEST_FLAGS='-k blocking'   only some of the server tests"
	@echo "  make checker CHECKER_FLAGS=--help      what it can be told; torture and bench likewise"

setup: ## install whatever building, running and testing need (nothing where all is there)
	@scripts/setup.sh build server tests lint

setup-optional: ## install what only some tests use: PHP, Node, Go, databases, tmux, Prometheus, git, openssl
	@scripts/setup.sh optional

build: ## build the module: target/release/libdq.so
	@scripts/build.sh

build-pgo: ## the same by profile-guided optimisation, a tenth faster or more: target/pgo/libdq.so; four minutes
	@scripts/build-pgo.sh

run: ## build, then start a Redis server with the module in the foreground
	@PORT=$(PORT) DATA=$(DATA) scripts/run.sh

cli: ## build the terminal program: target/cli/release/dq
	@scripts/cli.sh

install-cli: ## build and install it with its manual pages and completion, below PREFIX (/usr/local)
	@scripts/cli.sh install

test: ## set up and run every test: Rust, then pytest against a real server
	@scripts/test.sh

test-one: ## server tests with the checked module: T=tests/commands/test_send.py, T="tests/groups -k breaker"
	@BUILD=--checked scripts/python.sh pytest -q $(T)

test-fresh: ## what a newcomer does, on bare Debian 12 and 13: FRESH_FLAGS=--help; needs root and debootstrap
	@scripts/install-tests/sources.sh $(FRESH_FLAGS)

test-short: ## short forms of what takes long: checker, torture, losses, load and the benchmarks of frameworks
	@BUILD=--checked scripts/python.sh pytest -q -n 5 --dist loadfile $(PYTEST_FLAGS) tests/short

test-engines: ## the server tests on this and on other Redis and Valkey servers (ENGINES), got from Debian's archive
	@scripts/engines.sh test $(ENGINES)

test-php: ## clients/php with its drivers for Laravel and Symfony, and their own tests of such drivers
	@scripts/setup.sh build server tests optional && scripts/build.sh
	@.venv/bin/python -m pytest -q $(PYTEST_FLAGS) tests/tools/test_php_client.py

test-node: ## clients/node with ioredis and node-redis, on a server and a cluster, and its transporter for NestJS
	@scripts/setup.sh build server tests optional && scripts/build.sh
	@.venv/bin/python -m pytest -q $(PYTEST_FLAGS) tests/tools/test_node_client.py

test-bullmq: ## BullMQ's own tests, of two released versions, with dq as its backend; fetches them (BULLMQ_SOURCE)
	@scripts/setup.sh build server tests optional && scripts/build.sh
	@clients/node/suite/run.sh $(BULLMQ_VERSIONS)

test-go: ## clients/go with the race detector, go vet, and its examples
	@scripts/setup.sh build server tests optional && scripts/build.sh
	@.venv/bin/python -m pytest -q $(PYTEST_FLAGS) tests/tools/test_go_client.py

test-versions: ## the clients and drivers on the versions of their libraries that people have: VERSIONS_FLAGS=--help; PHP needs root and debootstrap
	@scripts/setup.sh optional && BUILD=--checked scripts/python.sh tests.versions $(VERSIONS_FLAGS)

test-faults: ## workers of every driver under every fault, at each moment of their work: a quarter of an hour
	@scripts/setup.sh optional && BUILD=--checked scripts/python.sh pytest -q -n 4 tests/drivers/faults clients/python/tests/faults

test-celery: ## the suites of kombu, Celery and Dramatiq with dq:// and redis://, an hour; what fails with dq:// only is listed
	@scripts/setup.sh build server tests optional && scripts/python.sh tests.drivers $(DRIVER_FLAGS)

test-sqs: ## two foreign suites of tests of SQS on dq sqs, ten minutes; fetches them; SQS_FLAGS=--help
	@scripts/setup.sh build server tests git && BUILD=--checked scripts/python.sh tests.sqs.suites $(SQS_FLAGS)

test-sqs-clients: ## boto3, the SDKs for Node, PHP and Go, sqs-consumer, Celery and taskiq on dq sqs; gets them
	@scripts/setup.sh build server tests optional && scripts/sqs-clients.sh
	@BUILD=--checked scripts/python.sh pytest -q tests/sqs/test_clients.py

test-protocol: ## the server tests over RESP2; make test runs those of what a queue does over RESP3
	@DQ_RESP=2 BUILD=--checked scripts/python.sh pytest -q -n 4 --dist loadfile tests/commands tests/groups tests/blocking tests/hostile

test-asan: ## the server tests with module and server under AddressSanitizer; needs nightly Rust
	@scripts/asan.sh

miri: ## the Rust tests of the core under Miri, minutes; needs nightly Rust
	@scripts/miri.sh

lint: ## subjects of commits, layers, rustfmt, clippy, dependencies, ruff; any warning is an error
	@scripts/lint.sh

audit: ## known holes in the dependencies; gets the list of them from GitHub
	@scripts/setup.sh lint && scripts/deny.sh advisories

fmt: ## format the Rust sources
	@scripts/setup.sh lint
	@bash -ec '. scripts/lib/common.sh; for crate in . "$${PROGRAMS[@]}"; do cargo fmt --all --manifest-path "$$crate/Cargo.toml"; done'

checker: ## groups, then jobs (children, signals, limits, DEADTO), under concurrent traffic, half a minute each, its history checked
	@scripts/python.sh tests.checker $(CHECKER_FLAGS)

torture: ## the same under crashes, power loss, failovers and other faults, ten minutes in all
	@scripts/python.sh tests.torture $(TORTURE_FLAGS)

losses: ## what each setting loses of what it has confirmed, and durable clients nothing: 500 faults and a million sends a row, hours
	@scripts/python.sh tests.torture.losses $(LOSSES_FLAGS)

effects-calls: ## a million random calls with APPLY, against a model and the plain commands of a second server: ten minutes; EFFECTS_FLAGS
	@BUILD=--checked scripts/python.sh tests.effects.calls $(EFFECTS_FLAGS)

effects-faults: ## counters that acks have changed, after logs torn at each byte and after failovers: half an hour; ENGINES as for test-engines
	@scripts/effects-faults.sh $(ENGINES)

effects-peers: ## the same counter on dq, streams, BullMQ and Celery, with workers that are stopped past their lease: minutes
	@scripts/setup.sh optional && BUILD=--checked scripts/python.sh tests.effects.peers $(EFFECTS_FLAGS)

effects-cost: ## the processor time of an ACK with one INCRBY, beside the two commands: EFFECTS_FLAGS=--help
	@scripts/python.sh tests.effects.cost $(EFFECTS_FLAGS)

outbox-faults: ## outboxes of Django, SQLAlchemy, Laravel and Symfony on three databases, while all that takes part is killed, 300 times; OUTBOX_FLAGS=--help
	@scripts/setup.sh optional && BUILD=--checked scripts/python.sh tests.outbox.faults $(OUTBOX_FLAGS)

load: ## how long others wait while millions of messages fall due, expire or go, and how late messages are
	@scripts/python.sh tests.load $(LOAD_FLAGS)

load-tenants: ## what one of 10,000 tenants that floods a queue costs the others under named limits: half a minute; LOAD_FLAGS=--help
	@scripts/python.sh tests.load.tenants $(LOAD_FLAGS)

soak: ## mixed traffic for SOAK_SECONDS (1800): whether memory stays flat and MEMORY USAGE true
	@scripts/python.sh tests.soak --seconds $(SOAK_SECONDS) $(SOAK_FLAGS)

soak-digests: ## random commands of all verbs for SOAK_SECONDS (1800): whether a reload, the log and a replica have the same after each
	@scripts/python.sh tests.soak.digests --seconds $(SOAK_SECONDS) $(SOAK_FLAGS)

simulate: ## the core for SIM_SECONDS (60) under random operations, crashes, failovers and broken bytes; SEED repeats a run
	@scripts/simulate.sh

explore: ## all states of small queues, for a night on two cores; goes on where it was stopped; EXPLORE_SECONDS, EXPLORE_STATES a list
	@scripts/explore.sh $(EXPLORE_FLAGS)

nightly: ## what takes too long for a change, in one run with one table: AddressSanitizer, Miri, engines, explore, torture and more; PARTS
	@scripts/nightly.sh $(PARTS)

rust-version: ## everything compiles with the oldest Rust that the manifests name
	@scripts/rust-version.sh --build

hostile: ## 2,000,000 dumps, 1,000,000 commands and 200,000 log entries with wrong bytes on a server: half an hour; HOSTILE_FLAGS
	@BUILD=--checked scripts/python.sh tests.hostile.long $(HOSTILE_FLAGS)

fuzz: ## hostile bytes for the parts that read them, a minute each (FUZZ_SECONDS); needs nightly Rust
	@scripts/fuzz.sh

bench: ## measure the module against its peers on this machine: a quarter of an hour, one table
	@benches/run.sh $(BENCH_FLAGS)

bench-compress: ## what COMPRESS saves and costs, with payloads as frameworks send them: BENCH_FLAGS="--messages N"
	@scripts/setup.sh build server tests optional && scripts/build.sh
	@PATH="$$PWD/target/bin:$$PATH" DQ_MODULE=target/release/libdq.so .venv/bin/python -m benches.compress $(BENCH_FLAGS)

bench-bullmq: ## BullMQ on dq beside BullMQ on its Redis backend, in one run
	@scripts/setup.sh build server tests optional && scripts/build.sh
	@clients/node/bench/run.sh $(BENCH_FLAGS)

bench-costs: ## how the cost of each command grows with what clients choose, against what docs/commands.md says; minutes
	@scripts/python.sh tests.load.costs $(BENCH_FLAGS)

test-sqs-faults: ## dq sqs and its server are killed 1,000 times under a FIFO queue: nothing lost, twice or out of order; half an hour
	@BUILD=--checked scripts/python.sh tests.sqs.faults $(SQS_FLAGS)

bench-sqs: ## dq sqs: messages a second, memory, long polls; BENCH_FLAGS=--help
	@scripts/cli.sh
	@DQ_CLI=$(or $(CARGO_TARGET_DIR),target)/cli/release/dq scripts/python.sh tests.sqs.figures $(BENCH_FLAGS)

test-takeover: ## dq import and dq export with each version of each peer that docs/takeover.md names; make test tries the newest
	@scripts/engines.sh path redis-5 >/dev/null
	@TAKEOVER_VERSIONS=all BUILD=--checked scripts/python.sh pytest -q -n 4 --dist loadfile $(PYTEST_FLAGS) tests/takeover

bench-takeover: ## dq import: jobs a second, memory, lateness under --follow, 300 kills; BENCH_FLAGS=--help
	@scripts/cli.sh
	@DQ_CLI=$(or $(CARGO_TARGET_DIR),target)/cli/release/dq scripts/python.sh tests.takeover.figures $(BENCH_FLAGS)

bench-web: ## what the pages and actions of dq web cost a server with 10,000 queues and 10,000,000 messages: BENCH_FLAGS=--help
	@scripts/cli.sh
	@DQ_CLI=$(or $(CARGO_TARGET_DIR),target)/cli/release/dq scripts/python.sh tests.load.pages $(BENCH_FLAGS)

bench-frameworks: ## Celery, Dramatiq and Laravel on dq beside their own transports, an hour: BENCH_FLAGS=--help
	@benches/frameworks/run.sh $(BENCH_FLAGS)

bench-steps: ## the instructions of SEND, FETCH and ACK over 1 to a million groups; needs valgrind
	@scripts/instructions.sh

bench-instructions: ## the instructions of commands and their peers in the whole server: the same on a busy machine; needs valgrind
	@BENCH=instructions.py benches/run.sh $(BENCH_FLAGS)

bench-smoke: ## make bench at a hundredth of the size, on the module of the tests: a smoke test of the benchmark, not a measurement
	@benches/run.sh --quick $(BENCH_FLAGS)

dist: ## pack what is given to others, who need no compiler, in dist/: a Debian package, tar.gz, wheels, npm packages, the clients; ARCHES, LIBCS, SIGN_KEY, PROFILE
	@BUNDLE=yes scripts/dist.sh

release: ## build all of make dist and the images, and set the tags of a release, without publishing anything; FLAGS=--check only looks
	@scripts/release.sh $(FLAGS)

bundle: ## only the bundles of `dq server`: tar.gz, wheels and npm packages with Valkey, the module and dq; ARCHES, LIBCS
	@scripts/bundle.sh

test-reproducible: ## build what make dist builds twice, in different folders, and compare the bytes: an hour or two
	@scripts/install-tests/reproducible.sh

test-packages: ## install what make dist has made on bare Debian 12 and 13 systems and try it; needs root and debootstrap
	@scripts/install-tests/packages.sh

test-bundle: ## from nothing to a message with pip, npm and tar.gz, on bare systems and as an ordinary user; needs root and debootstrap
	@scripts/install-tests/bundles.sh && scripts/install-tests/bundles-musl.sh

test-container: ## run the steps of packaging/container/Containerfile on bare Debian systems and try the images; needs root and debootstrap
	@scripts/install-tests/container.py
