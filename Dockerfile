# offsetd as an image: docker build -t offsetd .
# docker run -p 9092:9092 -p 9192:9192 -v offsetd:/var/lib/offsetd offsetd

FROM python:3.12-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
# Dependencies first: they change less often than the source, so this layer is kept.
COPY requirements/run.txt requirements/build.txt requirements/
RUN python -m pip wheel --require-hashes --only-binary :all: --wheel-dir /wheels -r requirements/run.txt \
    && python -m pip install --require-hashes --only-binary :all: -r requirements/build.txt
COPY pyproject.toml README.md ./
COPY offsetd offsetd
COPY protocol protocol
RUN python -m pip wheel --no-deps --no-build-isolation --wheel-dir /dist .
# Hashes are checked again here, so that what is installed is what was locked.
RUN python -m venv /opt/offsetd \
    && /opt/offsetd/bin/python -m pip install --no-index --find-links /wheels --require-hashes -r requirements/run.txt \
    && /opt/offsetd/bin/python -m pip install --no-index --no-deps /dist/*.whl \
    && /opt/offsetd/bin/python -m compileall -q /opt/offsetd/lib \
    && /opt/offsetd/bin/offsetd version

FROM python:3.12-slim
LABEL org.opencontainers.image.title="offsetd" \
      org.opencontainers.image.description="Kafka's consumer-offset service as a daemon of its own" \
      org.opencontainers.image.licenses="Apache-2.0"
# A fixed id, so that the owner of a volume stays the same from one image to the next.
RUN groupadd --system --gid 10001 offsetd \
    && useradd --system --uid 10001 --gid 10001 --home-dir /var/lib/offsetd --shell /usr/sbin/nologin offsetd \
    && install -d -o 10001 -g 10001 -m 0750 /var/lib/offsetd
COPY --from=build /opt/offsetd /opt/offsetd
# Clients are sent to the advertised address: localhost suits a published port on this machine; state
# OFFSETD_ADVERTISED_LISTENERS=HOST:PORT as soon as clients come from anywhere else.
ENV PATH=/opt/offsetd/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    OFFSETD_DATA_DIR=/var/lib/offsetd \
    OFFSETD_LISTENERS=0.0.0.0:9092 \
    OFFSETD_ADVERTISED_LISTENERS=localhost:9092 \
    OFFSETD_HTTP_LISTENERS=0.0.0.0:9192
USER 10001:10001
WORKDIR /var/lib/offsetd
VOLUME /var/lib/offsetd
EXPOSE 9092 9192
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 CMD ["offsetd", "healthcheck"]
ENTRYPOINT ["offsetd"]
CMD ["serve"]
