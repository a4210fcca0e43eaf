"""The edge that browsers and other programs talk to: pages, and the HTTP interface, over the library's services."""

from memory_pipeline.web.app import create_app

__all__ = ["create_app"]
