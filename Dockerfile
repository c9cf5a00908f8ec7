# `gpmi serve` in a container: docker build -t gpmi . && docker run -p 127.0.0.1:8470:8470 -v gpmi:/data gpmi
# With PostgreSQL: compose.yaml. The page docs/howto/server.md explains both.
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.13-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(ls /wheels/*.whl)[cli,postgres,serve]" && rm -r /wheels \
    && useradd --uid 10001 --create-home gpmi \
    && install --directory --owner=gpmi /data
COPY deploy/start.sh /usr/local/bin/gpmi-start
USER 10001
# Databases, and values that wait for a database that is unreachable.
WORKDIR /data
VOLUME /data
EXPOSE 8470
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8470/static/lab.css', timeout=4)"]
ENTRYPOINT ["gpmi-start"]
