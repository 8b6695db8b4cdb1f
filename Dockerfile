# lakeload with Java and Spark, as a user without privileges.
#   docker build --tag lakeload .
#   docker run --rm --init --env-file .env --volume "$PWD:/work:ro" lakeload sync pipeline.yml
# The files below /work have to be readable for user 10001.
FROM python:3.13-slim-trixie AS build

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1
RUN python -m venv /opt/lakeload
COPY requirements.lock /src/
RUN /opt/lakeload/bin/pip install --require-hashes --requirement /src/requirements.lock
COPY pyproject.toml README.md LICENSE /src/
COPY cli /src/cli
COPY sparkjobs /src/sparkjobs
RUN /opt/lakeload/bin/pip install --no-deps /src \
 && /opt/lakeload/bin/python -m compileall -q /opt/lakeload/lib

FROM python:3.13-slim-trixie

# The version of Java is that of the distribution, which has the fixes.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends openjdk-21-jre-headless procps \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 10001 --create-home --home-dir /home/lakeload lakeload \
 && install --directory --owner lakeload /work /var/lib/lakeload /var/cache/lakeload

COPY --from=build /opt/lakeload /opt/lakeload

# The cache is part of the image: jars, and the AppCDS archive with which Spark starts faster. For
# loads with Iceberg's jars or of sources in S3 add `lakeload jars fetch --for iceberg` or `--for s3`,
# each with an archive of its own. The logs of runs go to the volume.
ENV PATH=/opt/lakeload/bin:$PATH \
    XDG_CACHE_HOME=/var/cache/lakeload \
    XDG_STATE_HOME=/var/lib/lakeload/state \
    PYTHONUNBUFFERED=1
WORKDIR /work
USER 10001
RUN lakeload jars fetch
VOLUME /var/lib/lakeload
ENTRYPOINT ["lakeload"]
CMD ["--help"]
