# The service and its command line: docker build -t flux-resourceset .

# The Node that tools/node pins. For a mirror, or a digest: --build-arg NODE_IMAGE=…
ARG NODE_IMAGE=docker.io/library/node:26.10.0-trixie-slim

FROM ${NODE_IMAGE} AS dependencies
ARG NPM_CONFIG_REGISTRY
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Not the workspace, which is the Node of a checkout. No package needs a script of its own to be installed.
RUN npm ci --omit=dev --workspaces=false --ignore-scripts

FROM ${NODE_IMAGE} AS build
ARG NPM_CONFIG_REGISTRY
WORKDIR /source
COPY package.json package-lock.json .npmrc ./
RUN npm ci --workspaces=false --ignore-scripts
COPY . .
# The files that package.json names, built, and the fleet of the demo.
RUN npm pack && mkdir packed && tar -xzf flux-resourceset-*.tgz -C packed --strip-components=1 \
 && install -D -m 644 data/seed.json packed/data/seed.json

FROM ${NODE_IMAGE}
# Nothing is installed in a running container, so it has no npm.
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx \
 && ln -s /app/bin/flux-resourceset.js /usr/local/bin/flux-resourceset \
 && ln -s /app/bin/flux-resourceset-cli.cjs /usr/local/bin/flux-resourceset-cli \
 && ln -s /app/bin/flux-resourceset-cli.cjs /usr/local/bin/frs \
 && install -d -o 65532 -g 65532 /var/lib/flux-resourceset
COPY --from=dependencies /app/node_modules /app/node_modules
COPY --from=build /source/packed /app
ENV DATABASE_URL=sqlite:///var/lib/flux-resourceset/fleet.db
# The only folder that is written to; SQLite may want /tmp for what does not fit into memory.
VOLUME /var/lib/flux-resourceset
WORKDIR /var/lib/flux-resourceset
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["flux-resourceset"]
CMD []
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="flux-resourceset" \
      org.opencontainers.image.description="The desired state of a whole fleet of Kubernetes clusters, served to each cluster's Flux Operator" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
