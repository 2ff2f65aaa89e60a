# The README's two commands, on an empty machine:
#   docker build --tag cluster-sweep . && docker run --rm cluster-sweep make sweep
#   docker run --rm cluster-sweep make test
FROM python:3.11-slim-bookworm

SHELL ["/bin/bash", "-o", "pipefail", "-c"]

# tests of pages need a browser, tests of clusters network namespaces; they are skipped without
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends chromium git iproute2 make \
    && rm -rf /var/lib/apt/lists/*

RUN useradd --create-home --uid 1000 sweep
USER 1000
WORKDIR /home/sweep/cluster-sweep

# packages first: a change of the code installs nothing anew
COPY --chown=sweep:sweep Makefile pyproject.toml requirements.lock README.md LICENSE ./
COPY --chown=sweep:sweep sim/__init__.py sim/__init__.py
RUN make .venv/.ready

COPY --chown=sweep:sweep . .
RUN touch .venv/.ready

CMD ["make", "sweep"]
