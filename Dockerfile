# One image for web, worker and scheduler. Built with: docker build -t nexus .
FROM python:3.12-slim-bookworm AS packages

WORKDIR /srv/nexus
COPY requirements.txt ./
# Every package is checked against the hashes of the lock file.
RUN python -m venv .venv \
    && .venv/bin/pip install --no-cache-dir --require-hashes -r requirements.txt

FROM python:3.12-slim-bookworm

# git: repositories of the organisations. bubblewrap: the walls around programs of agents.
RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap git util-linux \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home --home-dir /var/lib/nexus nexus \
    && install --directory --owner=nexus --group=nexus --mode=700 /var/lib/nexus-ledger \
    && install --directory --owner=nexus --group=nexus --mode=700 /var/backups/nexus

WORKDIR /srv/nexus
COPY --from=packages /srv/nexus/.venv .venv
COPY . .
# A container cannot write there: without this each start compiles all of it, for 4 s.
RUN .venv/bin/python -m compileall -q -x '/\.venv/' .

ENV NEXUS_ENV=production \
    NEXUS_VAR=/var/lib/nexus \
    STATIC_ROOT=/srv/nexus/static \
    HOST=0.0.0.0 \
    PORT=8000 \
    PYTHONUNBUFFERED=1

# The settings need these to be read; nothing of them stays in the image.
RUN SECRET_KEY="$(python -c 'import secrets; print(secrets.token_urlsafe(64))')" \
    ALLOWED_HOSTS=build DATABASE_URL=postgresql://build@build/build \
    .venv/bin/python manage.py collectstatic --noinput --verbosity 0 \
    && chown nexus:nexus /var/lib/nexus

USER 10001
VOLUME /var/lib/nexus /var/lib/nexus-ledger /var/backups/nexus
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD [".venv/bin/python", "deploy/healthcheck.py"]
ENTRYPOINT [".venv/bin/python", "-m", "nexus_site.run", "up"]
