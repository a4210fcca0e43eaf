"""The library's services as a Dagster resource: opened by the first use, closed when the execution ends."""

from collections.abc import Iterator
from contextlib import contextmanager

from dagster import ConfigurableResource, InitResourceContext
from pydantic import PrivateAttr

from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import load_settings


class Memory(ConfigurableResource["Memory"]):
    """Archive, index and embedder of this process, as its environment names them (`MEMORY_*`)."""

    _runtime: Runtime | None = PrivateAttr(default=None)

    @property
    def runtime(self) -> Runtime:
        """The services. Nothing is connected or loaded before it is used.

        Raises:
            InvalidSettings: the environment does not name usable ones.
        """
        if self._runtime is None:
            self._runtime = Runtime(load_settings())
        return self._runtime

    @contextmanager
    def yield_for_execution(self, context: InitResourceContext) -> Iterator["Memory"]:
        """Hand out the resource, and close what was opened."""
        del context
        try:
            yield self
        finally:
            runtime, self._runtime = self._runtime, None
            if runtime is not None:
                runtime.close()
