# Every target works from a clean checkout; scripts/setup.sh installs what one needs and is missing.

PORT ?= 6379
export CARGO_FLAGS ?=
export PYTEST_FLAGS ?=
BENCH_FLAGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup build run test lint fmt bench bench-smoke

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  make run PORT=7000                    on another port than 6379"
	@echo "  make test PYTEST_FLAGS='-k blocking'  only some of the server tests"
	@echo "  make bench BENCH_FLAGS='--rows ^life'  only some of the rows; benches/run.py --help tells more"

setup: ## install whatever building, running and testing need (nothing where all is there)
	@scripts/setup.sh build server tests lint

build: ## build the module: target/release/libdq.so
	@scripts/build.sh

run: ## build, then start a Redis server with the module in the foreground
	@PORT=$(PORT) scripts/run.sh

test: ## set up and run every test: Rust, then pytest against a real server
	@scripts/test.sh

lint: ## rustfmt, clippy and ruff; any warning is an error
	@scripts/lint.sh

fmt: ## format the Rust sources
	@scripts/setup.sh lint
	@cargo fmt --all

bench: ## measure the module against its peers on this machine: a quarter of an hour, one table
	@benches/run.sh $(BENCH_FLAGS)

bench-smoke: ## the same at a hundredth of the size, in seconds: shows that the benchmark works, not how fast it is
	@benches/run.sh --quick $(BENCH_FLAGS)
