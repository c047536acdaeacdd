# Glassformer: everything a newcomer types. `make` alone lists it.
#
# Variables:
#   PYTHON  the interpreter to build the environment from  (make run PYTHON=python3.12)
#   VENV    where the environment lives; an existing one is used as it is  (make run VENV=~/venvs/torch)
#   TORCH   what pip is asked for when torch is not there yet  (make run TORCH='torch==2.13.0+cu126 --index-url ...')
#   ARGS    passed to Streamlit; after a second `--`, to the app  (make run ARGS="-- --checkpoints DIR")
#   SINCE   a commit: `make check` tests what has changed since then;  SECONDS  for how long
#   TESTS   passed to pytest  (make test TESTS="tests/transformer -x")

SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help venv install install-dev run check test test-deep lint lint-python lint-javascript collected format words transcripts site wheel space clean

VENV  ?= .venv
TORCH ?= torch==2.13.0
MKDOCS := mkdocs==1.6.1
ARGS  ?=
TESTS ?=
SINCE ?=
SECONDS ?= 60

# The first Python that is new enough; only looked for when an environment has to be made.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

PY  := $(VENV)/bin/python
# Python compiles what it imports; compiling all 11,000 files of the packages at once would double the time.
INSTALL := $(PY) -m pip --disable-pip-version-check install --no-compile
# A stamp newer than its list means that the list is installed: a second `make run` starts at once.
STAMP_APP := $(VENV)/.glassformer-app
STAMP_DEV := $(VENV)/.glassformer-dev

HAS_TORCH := -c 'import torch, sys; sys.exit(tuple(map(int, torch.__version__.split(".")[:2])) < (2, 8))'

# Where files are not to be compiled for good, as in some containers, each of hundreds of processes would compile torch.
check test test-deep collected: export PYTHONDONTWRITEBYTECODE :=

# Browsers are what takes long: two at once, and the tests without one beside them, in two more processes, whose report
# follows at the end. These stand back (`nice`): a browser that has to share two cores with them draws late, and a test
# then presses where something stood a moment ago. A file of tests stays in one process, as its tests share what they
# set up; the order of files is that of tests/conftest.py and tests/browser/conftest.py, longest first, and not that of
# how many tests a file has. No test gets a second chance: one that fails now and then found a fault, or has one.
define both_halves
others=$$(mktemp); \
nice -n 10 $(PY) -m pytest --ignore=tests/browser -n 2 --dist loadfile --no-loadscope-reorder --durations=30 > "$$others" 2>&1 & pid=$$!; \
trap 'kill $$pid; rm -f "$$others"; exit 130' INT TERM; \
$(PY) -m pytest tests/browser -n 2 --dist loadfile --no-loadscope-reorder \
  --durations=30; browser=$$?; \
wait $$pid; rest=$$?; cat "$$others"; rm -f "$$others"; \
test $$browser -eq 0 && test $$rest -eq 0
endef

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1|\2/p' Makefile | awk -F'|' '{ printf "  %-18s %s\n", $$1, $$2 }'

venv: $(PY) ## make the environment, empty

install: $(STAMP_APP) ## install what the app needs

install-dev: $(STAMP_DEV) ## install what the tests need as well

run: $(STAMP_APP) ## start the app (the address is printed)
	@$(PY) -m streamlit run app.py $(ARGS)

check: $(STAMP_DEV) ## before a commit: lint, types, and for a minute the tests nearest to what changed
	@$(PY) -m tools.check --since "$(SINCE)" --seconds $(SECONDS)

test: $(STAMP_DEV) ## lint, format check, types, then every test
	@$(PY) tools/browser.py --ensure
	@$(PY) -m tools.programs --ensure
	@$(MAKE) --no-print-directory -j3 lint-python lint-javascript collected
ifeq ($(strip $(TESTS)),)
	@$(both_halves)
else
	$(PY) -m pytest $(TESTS)
endif

# A property tries ten times the examples that it has in `make test`; see tests/conftest.py.
test-deep: $(STAMP_DEV) ## what `make test` leaves out: whole products, stress, and ten times the examples
	@$(PY) tools/browser.py --ensure
	@$(PY) -m tools.programs --ensure
	nice -n 10 $(PY) -m pytest -m deep --hypothesis-profile deep -n 2 --dist loadfile $(TESTS)

lint: $(STAMP_DEV) ## ruff, mypy, and eslint and tsc for JavaScript, changing nothing
	@$(MAKE) --no-print-directory -j2 lint-python lint-javascript

lint-python: $(STAMP_DEV)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

lint-javascript: $(STAMP_DEV)
	$(PY) tools/check_javascript.py

# While mypy has one core: pytest keeps the assertions that it rewrote, else each of four processes would rewrite all.
collected: $(STAMP_DEV)
	@said=$$($(PY) -m pytest --collect-only -qqq 2>&1) || { echo "$$said"; exit 1; }

format: $(STAMP_DEV) ## format the code and mend what ruff can mend
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

words: $(STAMP_DEV) ## collect the sentences for translators, and compile what they wrote
	@$(PY) tools/catalogues.py

transcripts: $(STAMP_DEV) ## write again what pages tell their readers (tests/**/transcripts); read the diff
	@GLASSFORMER_DRAFT=none OMP_NUM_THREADS=1 $(PY) -m tests.pages.transcript

# mkdocs has an environment of its own: neither the app nor a test needs it.
site: $(STAMP_DEV) ## the documentation as a site with search and saved runs, in build/docs
	@test -x build/mkdocs/bin/mkdocs || { $(PY) -m venv build/mkdocs && \
		build/mkdocs/bin/python -m pip --disable-pip-version-check install $(MKDOCS); }
	build/mkdocs/bin/mkdocs build --strict
	$(PY) -m tools.gallery build/docs/gallery

wheel: $(STAMP_DEV) ## the package that pip installs, in dist
	$(PY) -m hatchling build -t wheel

space: $(STAMP_DEV) ## the files of a Hugging Face Space, in dist/space
	rm -rf dist/space && mkdir -p dist/space
	cp deploy/huggingface-space/* constraints.txt dist/space
	$(PY) -m hatchling build -t wheel -d dist/space

clean: ## remove caches and results (and .venv, never another VENV)
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist results \
		tools/javascript/node_modules
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

# A system interpreter that already has torch lends it to the environment (often a CUDA build that took care).
# Nothing is ever installed outside the environment: distributions forbid that (PEP 668), and rightly.
$(PY):
	@if [ -z "$(PYTHON)" ]; then \
		echo "Glassformer needs Python 3.11 or newer; on Debian or Ubuntu: sudo apt-get install python3 python3-venv" >&2; \
		exit 1; fi
	@site=; if $(PYTHON) $(HAS_TORCH) 2>/dev/null; then site=--system-site-packages; fi; \
	was_there=; if [ -e "$(VENV)" ]; then was_there=yes; fi; \
	if ! $(PYTHON) -m venv $$site "$(VENV)"; then \
		[ -n "$$was_there" ] || rm -rf "$(VENV)"; \
		echo "This Python cannot make virtual environments; on Debian or Ubuntu: sudo apt-get install python3-venv" >&2; \
		exit 1; fi

# `|` : the interpreter only has to exist; that it is newer than a stamp means nothing.
$(STAMP_APP): requirements.txt constraints.txt | $(PY)
	@$(PY) $(HAS_TORCH) 2>/dev/null || $(INSTALL) $(TORCH)
	$(INSTALL) -c constraints.txt -r requirements.txt
	@touch $@

$(STAMP_DEV): requirements-dev.txt $(STAMP_APP)
	$(INSTALL) -c constraints.txt -r requirements-dev.txt
	@touch $@
