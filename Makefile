PYTHON ?= python3
BIN := .venv/bin
# One BLAS thread each: the matrices are small, and the tests run side by side.
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1

.PHONY: demo studio paper docs test test-browser test-fast test-slow test-oldest coverage release lint bench clean

# The environment is complete when its stamp is newer than what defines it.
.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

# What a fit needs, and nothing else.
.venv/.core: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

demo: .venv/.core
	$(BIN)/odinfer example lotka_volterra demo
	$(BIN)/odinfer fit demo/lotka_volterra.ode demo/lotka_volterra.csv -o demo --truth demo/truth.json
	@echo "The report: demo/report.html. Next, try:"
	@echo "  $(BIN)/odinfer forecast demo/lotka_volterra.ode demo/lotka_volterra.csv --fit demo/fit.json --times 0:4:41"
	@echo "  $(BIN)/odinfer example                       # models and data from epidemics, drugs, ecology, ..."
	@echo "  $(BIN)/odinfer check model.ode data.csv      # your own model and data; or without programming: make studio"

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
# A test is run once more where the driver lost an element that the page replaced at that moment, or Chromium crashed.
test-browser: .venv/.browser
	command -v chromium || (apt-get update && apt-get install -y chromium) || sudo apt-get install -y chromium
	$(BIN)/python -m pytest -m browser -p no:xdist --reruns 1 --only-rerun "not attached|detached|crashed" tests/apps/studio tests/test_site.py tests/result/test_report.py

.venv/.browser: .venv/.installed constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt playwright pytest-rerunfailures
	cd .venv && npm pack --silent axe-core@4.14.0 && tar xzf axe-core-4.14.0.tgz package/axe.min.js || \
	  echo "axe-core could not be had; its test will be skipped"
	touch $@

test-slow: .venv/.installed
	$(BIN)/python -m pytest -m slow -n 2

# The fast tests with a report of the lines that they execute: coverage/index.html.
coverage: .venv/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check pytest-cov
	$(BIN)/python -m pytest -n 2 --cov=odinfer --cov-report=term --cov-report=html:coverage

# The lower bounds of pyproject.toml, installed in an environment of their own, and the fast tests of what most depends on them.
test-oldest:
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python benchmarks/lower_bounds.py > .venv-oldest/bounds.txt
	echo "pyparsing==3.1.*" >> .venv-oldest/bounds.txt  # of the time of that matplotlib, which later ones warn of
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check -c .venv-oldest/bounds.txt -e '.[dev]'
	.venv-oldest/bin/python -m pytest -n 2 tests/data tests/problem tests/ode tests/result tests/apps/command

# Wheel and sdist; the wheel is installed in a clean environment and fits the first example there.
release: .venv/.installed
	rm -rf dist build .venv-release
	$(BIN)/python -m pip install --quiet --disable-pip-version-check build
	$(BIN)/python -m build
	$(PYTHON) -m venv .venv-release
	.venv-release/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	cd .venv-release && bin/odinfer example lotka_volterra demo --force
	cd .venv-release && bin/odinfer fit demo/lotka_volterra.ode demo/lotka_volterra.csv -o demo
	.venv-release/bin/python -X importtime -c "import odinfer" 2>&1 | tail -1

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
	rm -rf .venv .venv-oldest .venv-release dist build coverage demo paper-report docs/_build .pytest_cache .mypy_cache .ruff_cache
