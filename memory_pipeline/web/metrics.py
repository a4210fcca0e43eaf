"""The figures of one process, as Prometheus reads them. No workspace, card or principal is named in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from memory_pipeline.recall import Recall, RecallResult

if TYPE_CHECKING:
    from memory_pipeline.runtime import Runtime
    from memory_pipeline.web.standing import Standing

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The figures of the requests that one process answers, and of what stands behind it.

    Attributes:
        requests: how many were answered, by method, route and status.
        durations: how many seconds they took, by method and route.
        in_progress: how many are being answered.
        recalls: how many seconds recall took.
    """

    def __init__(self, standing: Standing) -> None:
        self._registry = own = CollectorRegistry()
        labels = ("method", "route")
        self.requests = Counter("memory_http_requests", "requests answered", (*labels, "status"), registry=own)
        self.durations = Histogram(
            "memory_http_request_seconds", "what a request took", labels, buckets=_SECONDS, registry=own
        )
        self.in_progress = Gauge("memory_http_requests_in_progress", "requests being answered", registry=own)
        self.recalls = Histogram("memory_recall_seconds", "what a recall took", buckets=_SECONDS, registry=own)
        ProcessCollector(registry=own)
        own.register(_Behind(standing))

    def exposition(self) -> bytes:
        """All figures in Prometheus's text format."""
        return generate_latest(self._registry)


class TimedRecall(Recall):
    """Recall that notes how long each search takes, be it in vain."""

    def __init__(self, runtime: Runtime, metrics: Metrics) -> None:
        super().__init__(runtime)
        self._metrics = metrics

    def search(self, *args: Any, **kwargs: Any) -> RecallResult:
        """See `Recall.search`."""
        with self._metrics.recalls.time():
            return super().search(*args, **kwargs)


class _Behind(Collector):
    """What stands behind the process, looked at when somebody asks: nothing is said of what cannot be seen."""

    def __init__(self, standing: Standing) -> None:
        self._standing = standing

    def collect(self) -> Iterator[Metric]:
        """The figures now, or of some seconds ago."""
        faults, backlog = self._standing.figures()
        up = GaugeMetricFamily("memory_up", "whether what the process needs answers", labels=["service"])
        for service, fault in faults.items():
            up.add_metric([service], float(fault is None))
        yield up
        if backlog is not None:
            yield GaugeMetricFamily("memory_cards", "cards of all workspaces", backlog.cards)
            yield GaugeMetricFamily("memory_pending_points", "points that the index does not hold yet", backlog.pending)
            yield GaugeMetricFamily(
                "memory_oldest_pending_seconds", "for how long the oldest of them waits", backlog.oldest_seconds
            )

    def describe(self) -> Iterator[Metric]:
        """Nothing: or registering would look already."""
        yield from ()
