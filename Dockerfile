# primexmc serve in a container; the model is mounted, never copied in.
#
#   docker build -t primexmc .
#   docker run --rm -p 127.0.0.1:8000:8000 -v "$PWD/my-model:/model:ro" primexmc
#
# With an NVIDIA GPU:
#
#   docker build --build-arg DEVICE=gpu -t primexmc:gpu .
#   docker run --rm --gpus all -p 127.0.0.1:8000:8000 -v "$PWD/my-model:/model:ro" primexmc:gpu

FROM python:3.11-slim AS build
ARG DEVICE=cpu
WORKDIR /build
RUN python -m venv /opt/primexmc
COPY pyproject.toml constraints.txt README.md LICENSE NOTICE ./
COPY src ./src
# PyPI's torch for Linux carries CUDA, several GB of it; the CPU's comes from PyTorch's own index.
RUN if [ "$DEVICE" = gpu ]; then index=""; else index="--extra-index-url https://download.pytorch.org/whl/cpu"; fi \
    && /opt/primexmc/bin/pip install --no-cache-dir --constraint constraints.txt $index ".[serve]"

FROM python:3.11-slim
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin primexmc
COPY --from=build /opt/primexmc /opt/primexmc
ENV PATH=/opt/primexmc/bin:$PATH PYTHONUNBUFFERED=1 PRIMEXMC_CACHE=/tmp/primexmc
USER 10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/ready', timeout=4)"]
# The exec form: SIGTERM reaches the server itself, which lets running requests finish.
ENTRYPOINT ["primexmc", "serve"]
CMD ["/model", "--host", "0.0.0.0", "--port", "8000"]
