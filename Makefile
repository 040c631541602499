PYTHON ?= $(shell command -v python3.12 >/dev/null 2>&1 && python3.12 -c '' 2>/dev/null && echo python3.12 || echo python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup run test lint types format bench bench-peers bench-pipeline crash crash-pipeline fuzz conformance peers storm docker docs lock clean

setup: $(STAMP)

$(STAMP): requirements/dev.txt requirements/spark.txt pyproject.toml deploy/setup.sh
	bash deploy/setup.sh "$(PYTHON)" $(VENV) requirements/dev.txt requirements/spark.txt && touch $@

run: setup
	$(BIN)/offsetd serve $(ARGS)

test: setup
	$(BIN)/python -X dev -m pytest -n 2 --dist worksteal $(ARGS)

lint: setup
	$(BIN)/ruff format --check . && $(BIN)/ruff check . && $(BIN)/lint-imports && $(BIN)/mypy

format: setup
	$(BIN)/ruff format . && $(BIN)/ruff check --fix .

types: setup
	$(BIN)/mypy

bench: setup
	$(BIN)/offsetd bench $(ARGS)

bench-peers: setup
	$(BIN)/offsetd bench --peers $(ARGS)

bench-pipeline: setup
	$(BIN)/python -m offsetd.bench.pipeline $(ARGS)

crash: setup
	OFFSETD_CRASH_CYCLES=$(or $(CYCLES),1000) OFFSETD_CRASH_SEED=$(or $(SEED),fresh) $(BIN)/python -m pytest tests/crash -n 2 -rP $(ARGS)

crash-pipeline: setup
	OFFSETD_PIPELINE_CRASH_CYCLES=$(or $(CYCLES),20) OFFSETD_PIPELINE_CRASH_SEED=$(or $(SEED),fresh) $(BIN)/python -m pytest tests/pipeline/crash -rP $(ARGS)

fuzz: setup
	OFFSETD_FUZZ_SECONDS=$(or $(SECONDS),300) OFFSETD_FUZZ_SEED=$(or $(SEED),fresh) $(BIN)/python -m pytest tests/fuzz -rP $(ARGS)

conformance: setup
	OFFSETD_CONFORMANCE=1 $(BIN)/python -X dev -m pytest tests/conformance tests/client/test_client_kafka.py -rs $(ARGS)

peers: setup
	OFFSETD_PEERS=1 $(BIN)/python -m pytest tests/members -rs $(ARGS)

storm: setup
	OFFSETD_STORM_MEMBERS=$(or $(MEMBERS),200) OFFSETD_STORM_SECONDS=$(or $(SECONDS),60) OFFSETD_STORM_SEED=$(or $(SEED),fresh) $(BIN)/python -m pytest tests/members/test_members_storm.py -rP $(ARGS)

docker:
	docker build -t offsetd .

docs: setup
	$(BIN)/offsetd config docs > docs/settings.md && $(BIN)/python -m offsetd.http > docs/metrics.md

lock: setup
	bash deploy/lock.sh $(BIN)/python

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .peers
