PYTHON ?= python3
BIN := .venv/bin
# One BLAS thread each: the matrices are small, and the tests run side by side.
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1

.PHONY: demo studio paper docs test test-browser test-fast test-slow lint bench clean

# The environment is complete when its stamp is newer than what defines it.
.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: .venv/.installed
	$(BIN)/odinfer example lotka_volterra demo
	$(BIN)/odinfer fit demo/lotka_volterra.ode demo/lotka_volterra.csv -o demo --truth demo/truth.json

# Opens an example in the browser; ends with Ctrl-C.
studio: .venv/.installed
	$(BIN)/odinfer example lotka_volterra demo
	$(BIN)/odinfer studio demo/lotka_volterra.ode demo/lotka_volterra.csv

# The site, for reading from the disk; what was built before is kept where nothing has changed.
docs: .venv/.installed
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

test: lint
	$(BIN)/python -m pytest -n 2
	@echo "The tests of the studio in a real browser were left out; make test-browser installs Chromium and runs them."

# Chromium from the system, Playwright from the registry, and axe-core, which is for this only and not in the package.
test-browser: .venv/.browser
	command -v chromium || (apt-get update && apt-get install -y chromium) || sudo apt-get install -y chromium
	$(BIN)/python -m pytest -m browser -p no:xdist tests/apps/studio tests/test_site.py tests/result/test_report.py

.venv/.browser: .venv/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt playwright
	cd .venv && npm pack --silent axe-core@4.14.0 && tar xzf axe-core-4.14.0.tgz package/axe.min.js || \
	  echo "axe-core could not be had; its test will be skipped"
	touch $@

test-slow: .venv/.installed
	$(BIN)/python -m pytest -m slow -n 2

CODE := src tests benchmarks examples docs/conf.py docs/_site
lint: .venv/.installed
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
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
	$(BIN)/python benchmarks/long.py
	$(BIN)/python benchmarks/each.py --series 200

clean:
	rm -rf .venv demo paper-report docs/_build .pytest_cache .mypy_cache .ruff_cache
