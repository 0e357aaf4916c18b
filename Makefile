# Two commands for a fresh machine: `make demo` and `make test`. Each sets itself up in .venv, once.

PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --constraint constraints.txt
GPU_PYTHON ?= python3

.PHONY: demo test check format gpu gpu-speed peers clean

demo: $(VENV)/runtime.stamp
	$(BIN)/primexmc demo

test: check
	$(BIN)/python -m pytest

check: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/test.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# On a machine with a CUDA device, with the Python and the torch that are there: nothing is installed.
gpu:
	PYTHONPATH=src $(GPU_PYTHON) -m pytest -m gpu

# All speed measurements on a CUDA device in under nine minutes; what fails or takes too long does not stop the others.
GPU_RUN = PYTHONPATH=src timeout --kill-after=5
gpu-speed:
	-$(GPU_RUN) 90 $(GPU_PYTHON) -m pytest -q -m gpu tests/model/test_on_gpu.py tests/training/test_on_gpu.py
	-$(GPU_RUN) 30 $(GPU_PYTHON) benchmarks/attention_speed.py
	-$(GPU_RUN) 110 $(GPU_PYTHON) benchmarks/train_speed.py --encoder distilbert --set encoder.packed=on --profile
	-$(GPU_RUN) 50 $(GPU_PYTHON) benchmarks/train_speed.py --encoder minilm --set encoder.packed=on
	-$(GPU_RUN) 90 $(GPU_PYTHON) benchmarks/train_speed.py --encoder distilbert --labels 1300000 --epochs 1 \
		--set encoder.packed=on
	-$(GPU_RUN) 50 $(GPU_PYTHON) benchmarks/cluster_speed.py --dtype float16
	-$(GPU_RUN) 40 $(GPU_PYTHON) benchmarks/gpu_search_speed.py
	-$(GPU_RUN) 50 $(GPU_PYTHON) benchmarks/train_speed.py --encoder distilbert --positives 1 --batch 1600 \
		--queries 100000 --epochs 1 --cap-gib 16 --set encoder.packed=on
	-$(GPU_RUN) 50 $(GPU_PYTHON) benchmarks/train_speed.py --encoder distilbert --queries 100000 --epochs 1 \
		--set encoder.packed=off

# Other people's programs for `primexmc compare`, each with the versions that work, in an environment of its own.
PEERS := pecos omikuji bm25s
PEER_PYTHON ?= $(shell command -v python3.11 || command -v python3.10)

peers: $(PEERS:%=.peers/%/installed.stamp)

.peers/%/installed.stamp: benchmarks/peers/%.txt
	$(PEER_PYTHON) -m venv .peers/$*
	.peers/$*/bin/python -m pip install --quiet --no-deps --requirement $<
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache

# A stamp is older than these two files when what is installed may no longer be what they ask for.
$(VENV)/runtime.stamp: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable .
	touch $@

$(VENV)/test.stamp: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[test]'
	touch $(VENV)/runtime.stamp $@

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
