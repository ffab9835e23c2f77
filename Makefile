# Night school. `make` alone lists the targets; each does its own set-up (see .ci/setup).

PYTHON ?= python3
ACCELERATOR ?=
ARGS ?=
export PYTHON ACCELERATOR
# where a shell forbids bytecode, each of a night's processes would compile its libraries anew: 10 s and more
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help night teach services test test-ci test-full lint format lock setup

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | while IFS='|' read -r name what; do printf '%-14s %s\n' "$$name" "$$what"; done
	@printf '\n  ACCELERATOR=cpu|gpu  the build of vLLM (default: gpu where nvidia-smi -L lists one)\n'
	@printf '  PYTHON=python3.12    the interpreter of a new .venv (3.11 to 3.14)\n'
	@printf '  ARGS="..."           passed on to nightschool night, teach or services, pytest, or uv pip compile\n'

teach: setup ## teach the model that serves by day: ask, pick the best of five answers, see it learn
	@.venv/bin/nightschool teach $(ARGS)

night: setup ## tonight's night; in a new home the starter night: a small model studies arithmetic and sits its exam
	@.venv/bin/nightschool night $(ARGS)

services: setup ## every night at 01:00 by itself, and the pages to watch it: until Ctrl-C (docs/how-to/every-night.md)
	@.venv/bin/nightschool services $(ARGS)

# Four at a time, because most wait for processes that start; the tests of a file share what takes long to start. One
# thread each: on two cores, OpenMP teams of two would wait for each other.
PYTEST = OMP_NUM_THREADS=1 .venv/bin/pytest -n 4 --dist loadfile --no-loadscope-reorder

# The type checker leaves a core idle. Meanwhile, in a new .venv, one process imports all libraries: otherwise each of
# the workers would compile them.
COMPILED = .venv/.compiled
COMPILE = [ $(COMPILED) -nt .venv/.setup-stamp ] || { .venv/bin/pytest --collect-only --quiet >/dev/null 2>&1; touch $(COMPILED); }
LINT = { $(COMPILE); } & $(MAKE) --no-print-directory lint && wait

test: setup ## lint, then the quick tests (ARGS go to pytest)
	@$(LINT)
	@$(PYTEST) $(ARGS)

test-ci: setup ## lint, then the quick and the slow tests: whole nights, vLLM and a browser too
	@$(LINT)
	@$(PYTEST) -m "not full" $(ARGS)

test-full: setup ## lint, then all tests
	@$(LINT)
	@$(PYTEST) -m "full or not full" --hypothesis-profile=thorough $(ARGS)

lint: setup ## style, types, and which package may import which
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/pyrefly check --no-progress-bar --summary=none
	@.venv/bin/lint-imports

format: setup ## rewrite the code in the house's format
	@.venv/bin/ruff check --fix-only .
	@.venv/bin/ruff format .

lock: ## compile both requirements-*.lock anew (ARGS=--upgrade: with the newest versions)
	@.ci/setup lock $(ARGS)

setup: ## .venv and what the system needs; nothing is done where all is there
	@.ci/setup install
