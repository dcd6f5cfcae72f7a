# Two commands for a newcomer: `make build`, `make test`. Everything they install lies in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
SPEC := specs/gemma4.spec
SPECS := $(wildcard specs/*.spec)
TESTS ?= tests
OLDEST_TRITON := 3.6.0
NVCC := nvidia-cuda-nvcc nvidia-cuda-crt nvidia-nvvm nvidia-cuda-runtime nvidia-cuda-cccl

.PHONY: build test test-slow lint check-generated gpu-cases clean

build: $(VENV)/.base
	$(BIN)/specc build $(SPEC)

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 -q $(TESTS)

test-slow: $(VENV)/.dev $(VENV)/oldest-triton $(VENV)/nvcc
	SPECC_OLDEST_TRITON=$(VENV)/oldest-triton SPECC_NVCC=$(VENV)/nvcc $(BIN)/python -m pytest -n 2 -q -m slow $(TESTS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check-generated: $(VENV)/.base
	$(BIN)/specc build $(SPECS) --check

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "specc needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.base: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install -c constraints.txt -e .
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install -c constraints.txt -e '.[dev]'
	touch $@ $(VENV)/.base

# What bench/gpu_check.py takes along to a machine with a GPU.
gpu-cases: $(VENV)/.dev
	$(BIN)/python bench/make_gpu_cases.py $(SPECS) --out bench/gpu_cases.npz

$(VENV)/oldest-triton: | $(BIN)/python
	$(PIP) install --no-deps --target $@ triton==$(OLDEST_TRITON)

$(VENV)/nvcc: | $(BIN)/python
	$(PIP) install --no-deps -c constraints.txt --target $@ $(NVCC)

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
