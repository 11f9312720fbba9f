PYTHON ?= python3
BIN := .venv/bin
# One BLAS thread each: the matrices are small, and the tests run side by side.
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1

.PHONY: demo paper test test-fast test-slow lint bench clean

# The environment is complete when its stamp is newer than what defines it.
.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: .venv/.installed
	$(BIN)/odinfer example lotka_volterra demo
	$(BIN)/odinfer fit demo/lotka_volterra.ode demo/lotka_volterra.csv -o demo --truth demo/truth.json

test: lint
	$(BIN)/python -m pytest -n 2

test-slow: .venv/.installed
	$(BIN)/python -m pytest -m slow -n 2

lint: .venv/.installed
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/mypy

# The paper in small: few draws, Lorenz '96 up to 50 states; the whole is `odinfer bench run paper --store runs --full`.
SETTINGS := lotka_volterra,fitzhugh_nagumo,protein_transduction
paper: .venv/.installed
	$(BIN)/odinfer bench run paper --store paper-report/runs --draws 3 \
	  --systems $(SETTINGS),lorenz96_10,lorenz96_20,lorenz96_50 \
	  --methods odin-paper,odin-paper-states,odin,gpr,gpr-quick,limit,rkg3,two-step,vgm
	$(BIN)/odinfer bench run paper --store paper-report/runs --draws 1 --systems $(SETTINGS) --methods fgpgm,agm
	$(BIN)/odinfer bench report --store paper-report/runs -o paper-report

bench: .venv/.installed
	$(BIN)/python benchmarks/speed.py

clean:
	rm -rf .venv demo paper-report .pytest_cache .mypy_cache .ruff_cache
