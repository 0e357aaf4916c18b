"""What Prometheus is told: requests, batches, the queue and the model. Never anything of a text."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """One registry a server, so that several can live in one process."""

    def __init__(self, waiting: Callable[[], int], num_labels: Callable[[], int]) -> None:
        self.registry = CollectorRegistry()
        names = ("method", "path", "status")
        self._requests = Counter("primexmc_requests", "Requests answered.", names, registry=self.registry)
        self._seconds = Histogram(
            "primexmc_request_seconds", "Seconds to an answer.", ("path",), buckets=SECONDS, registry=self.registry
        )
        self._batches = Histogram(
            "primexmc_batch_texts", "Texts that the model saw at once.", buckets=SIZES, registry=self.registry
        )
        self._reloads = Counter(
            "primexmc_reloads", "Models swapped in, by outcome.", ("outcome",), registry=self.registry
        )
        Gauge("primexmc_waiting_requests", "Requests in the queue.", registry=self.registry).set_function(waiting)
        Gauge("primexmc_labels", "Labels of the model.", registry=self.registry).set_function(num_labels)

    def request(self, method: str, path: str, status: int, seconds: float) -> None:
        self._requests.labels(method, path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def batch(self, size: int) -> None:
        self._batches.observe(size)

    def reload(self, outcome: str) -> None:
        self._reloads.labels(outcome).inc()

    def text(self) -> bytes:
        return generate_latest(self.registry)
