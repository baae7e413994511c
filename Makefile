# What one can do with this repository. `make` alone prints the list.
SHELL := /bin/bash
export PATH := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH)

# The Python for the independent clients of the network tests. Without it, these tests are skipped.
test: export RONDEL_TEST_PYTHON := $(CURDIR)/.venv/bin/python3
# Without mosquitto, which setup installs, the tests of MQTT fail instead of being skipped.
test: export RONDEL_TEST_REQUIRE_BROKER := 1
test: export PATH := $(CURDIR)/.venv/bin:$(PATH)

# Where `make bench` leaves its results, and what else it tells `rondel bench all`, such as --length 100000.
BENCH_OUT ?= out/bench
BENCH_ARGUMENTS ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-long bench bench-containers image test-containers test-bridge test-fresh fuzz deny clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what building takes (system packages, Rust), where it is missing
	@scripts/setup

demo: setup ## build Rondel and watch it check a small system
	cargo build --release --locked --package rondel
	@target/release/rondel demo

test: setup .venv/ready ## check format and lints, run all tests
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo test --workspace --locked

test-long: setup ## compare the engine with the definitions on very many random cases (RONDEL_CASES=200 times as many as `make test`)
	RONDEL_CASES=$(or $(RONDEL_CASES),200) cargo test --release --locked --package rondel-engine

bench: setup ## the Timescales benchmark on this machine (file, Zenoh, DDS)
	cargo build --release --locked --package rondel
	@$(MAKE) --no-print-directory .venv/plots
	target/release/rondel bench all --out $(BENCH_OUT) $(BENCH_ARGUMENTS)
	.venv/bin/python3 bench/plot.py $(BENCH_OUT)

bench-containers: image ## the same through container networks
	scripts/bench-containers

image: ## build the container image `rondel`
	@scripts/docker-engine
	@scripts/base-images rust:1-bookworm
	docker build --tag rondel .

test-containers: ## build the image, run the deployments in containers, count the verdicts (needs root)
	scripts/test-containers

test-bridge: ## the deployments with and without Eclipse's bridge between DDS and Zenoh: the same verdicts (needs root)
	scripts/test-bridge

test-fresh: ## run `make demo` and `make test` in a container of plain Debian (needs root)
	scripts/test-fresh

fuzz: setup ## feed every parser with what nobody would write, 10 s each (FUZZ_SECONDS=60 for a minute)
	scripts/fuzz $(or $(FUZZ_SECONDS),10)

deny: setup ## check licences, sources and bans of all dependencies
	@cargo deny --version >/dev/null 2>&1 || { echo "==> installing cargo-deny" && cargo install --locked cargo-deny; }
	cargo deny check licenses bans sources
	cargo deny --manifest-path deploy/bridge/program/Cargo.toml --config deny.toml check licenses bans sources

clean: ## remove everything that was built
	rm -rf target deploy/bridge/program/target .venv out

.venv/ready: scripts/test-requirements.txt
	@echo "==> installing the independent Zenoh and DDS clients for the tests into .venv"
	python3 -m venv .venv
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

.venv/plots: bench/requirements.txt
	@echo "==> installing what draws the plots into .venv"
	python3 -m venv .venv
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@
