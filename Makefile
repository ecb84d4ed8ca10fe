# Every target builds its own .venv from constraints.txt where there is none.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install -q --disable-pip-version-check --use-pep517 --no-compile -c constraints.txt
# Byte code of what was installed, on all cores where pip compiles on one; what does not compile is nobody's import.
CODE   := $(BIN)/python -W ignore -m compileall -qq -j 0 -x '/tests?/' $(VENV)/lib || true
EXTRAS := ray,dask,polars,duckdb,transformers,models,fluent,excel,languages,letters,serve

JOBS   ?= 2
CLEAN  := env -u PYTHONDONTWRITEBYTECODE -u PYTHONPATH   # nothing of the shell decides whether the suite is green
.PHONY: demo test docs export lab serve readme types site clean core networks portable soak night release bench field field-quick

# What everybody needs

demo: $(VENV)/.base      ## explain a few rows of the embedded data
	$(BIN)/gradual-cf demo

test: export OMP_NUM_THREADS = 1  # workers side by side: one thread each
test: $(VENV)/.dev core  ## every promise once, and the chapters; FILES="tests/test_boxes.py -k region" for a part, without workers; PAGES=all for every page, CASES=all for every case of a test, and those marked `night`
	$(CLEAN) $(BIN)/python -m pytest -q $(or $(FILES),-n $(JOBS) --ignore=tests/test_site.py) --pages=$(or $(PAGES),changed) --cases=$(or $(CASES),day)

docs: $(VENV)/.docs node_modules/.done   ## the documentation site, in _docs/
	$(BIN)/python docs/build.py

export: $(VENV)/.dev     ## notebooks -> package, and clean the notebooks
	$(BIN)/python docs/export.py && $(BIN)/nbdev_clean

# What else authors need

lab: $(VENV)/.dev        ## read the notebooks in JupyterLab
	$(BIN)/jupyter lab nbs

serve: docs              ## the site at http://localhost:8000
	$(BIN)/python -m http.server -d _docs 8000 --bind 127.0.0.1

readme: $(VENV)/.docs    ## README.md from the index notebook
	$(BIN)/python docs/build.py --readme

types: $(VENV)/.dev node_modules/.done   ## pyright over the package and the code of the tutorials
	$(BIN)/python docs/tutorials.py
	node_modules/.bin/pyright --project .ci/pyrightconfig.json --pythonpath $(BIN)/python

site: docs               ## the site, then every page of it in a browser (Debian's chromium)
	$(BIN)/python -m pytest -q tests/test_site.py

networks: export OMP_NUM_THREADS = 1
networks: $(VENV)/.extras   ## make those of tests/networks/ again that are missing, damaged or new
	$(BIN)/python tests/networks/make.py

# The compiled engine, built again where its source changed; without a compiler one line says that there is none.
core: $(VENV)/.base
	@[ gradual_cf/search/core.so -nt gradual_cf/search/core.c ] || $(BIN)/python setup.py -q build_ext --inplace

clean:                   ## remove what was built, the environment too
	rm -rf $(VENV) node_modules _docs _proc_site build dist *.egg-info

# What nobody waits for

portable: $(VENV)/.dev $(VENV)/oldest/.done   ## the whole suite as other processors run it, with one thread and two, TIMES over
	$(BIN)/python .ci/portable.py --times $(or $(TIMES),1) $(CELLS)

soak: export OMP_NUM_THREADS = 1
soak: export SOAK_SIZE := $(or $(SIZE),100000)
soak: $(VENV)/.extras    ## SIZE made cases and broken files for every reader, beside `make test`
	$(CLEAN) $(BIN)/python -m pytest -q -n $(JOBS) --timeout=0 tests/soak

night: soak              ## what nobody waits for: the soak, every page, another order, other processors, each extra alone
	$(MAKE) test PAGES=all CASES=all
	$(MAKE) test FILES="--ignore=tests/test_site.py --shuffle=$$(date +%j)"
	$(MAKE) portable
	.ci/extras --run

release:                 ## sdist and wheel in dist/, checked and installed in empty environments
	.ci/release

bench: export OMP_NUM_THREADS = 1
bench: $(VENV)/.dev      ## measure speed, as ratios within one run
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/batch.py
	$(BIN)/python benchmarks/wide.py
	-$(BIN)/python benchmarks/one_row.py

field: export OMP_NUM_THREADS = 1
field: $(VENV)/.dev   ## this package against others: hours, part by part; what is there is not done again
	$(BIN)/python -m benchmarks.field

field-quick: export OMP_NUM_THREADS = 1
field-quick: $(VENV)/.dev   ## two tables and two models of it, in minutes
	$(BIN)/python -m benchmarks.field --quick

$(VENV)/.base: constraints.txt settings.ini setup.py
	$(PYTHON) -m venv $(VENV)
	$(PIP) pip  # older ones take minutes to resolve what docs and tests need
	$(PIP) -e .
	$(CODE)
	touch $@

$(VENV)/.dev: $(VENV)/.base
	$(PIP) -e ".[dev]"
	$(CODE)
	touch $@

$(VENV)/.extras: $(VENV)/.dev   # Ray, Dask, Polars, transformers and more makes of models: without them their tests skip
	$(PIP) -e ".[$(EXTRAS)]"
	$(CODE)
	touch $@

# The oldest PyTorch that settings.ini allows, before everything else of the environment
$(VENV)/oldest/.done: $(VENV)/.dev
	$(PYTHON) -m venv $(VENV)/oldest
	$(VENV)/oldest/bin/python -m pip install -q --disable-pip-version-check --no-compile "torch==$$(sed -n 's/^requirements.*torch>=\([0-9.]*\).*/\1/p' settings.ini).*" "$$(grep '^numpy==' constraints.txt)"
	echo "import site; site.addsitedir('$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')')" > $$($(VENV)/oldest/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/rest.pth
	touch $@

$(VENV)/.docs: $(VENV)/.dev
	$(PIP) -e ".[docs]"
	$(CODE)
	touch $@

$(VENV)/.all: constraints.txt settings.ini setup.py   # all of these at once, as CI wants it: versions are looked for once
	$(PYTHON) -m venv $(VENV)
	$(PIP) pip
	$(PIP) -e ".[dev,docs,$(EXTRAS)]"
	$(CODE)
	touch $(VENV)/.base $(VENV)/.dev $(VENV)/.docs $(VENV)/.extras $@

# Node looks for packages at the root, and their list stands beside the builder of the site
node_modules/.done: docs/package.json docs/package-lock.json
	mkdir -p _proc_site/node && cp docs/package.json docs/package-lock.json _proc_site/node
	npm ci --prefix _proc_site/node --ignore-scripts --no-audit --no-fund --silent
	rm -rf node_modules && mv _proc_site/node/node_modules .
	touch $@
