"""A real browser before a real server, over a real archive, a real index and the real model."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import uvicorn
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect, sync_playwright

from memory_pipeline.curation import Curation
from memory_pipeline.errors import IndexUnavailable
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import Settings
from memory_pipeline.web import create_app
from memory_pipeline.web.identity import LocalToken
from memory_pipeline.web.services import Services
from tests.curating import CLINIC, Gone, a_workspace

TOKEN = "the token of this home"  # noqa: S105  # of a test
_PATIENCE = 60_000  # milliseconds: a busy machine is slow, and that is no fault of a page
_NAMES = ("chromium", "chromium-browser", "google-chrome")


def _browser() -> str:
    found = os.environ.get("MEMORY_TEST_BROWSER") or next(filter(None, map(shutil.which, _NAMES)), None)
    if not found:
        pytest.fail("no browser: install Debian's package chromium, or name one with MEMORY_TEST_BROWSER")
    return found


# For as long as it runs, its event loop runs in this thread, where no other could be run by another test.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # Its own sandbox needs what containers do not give to root; it meets nothing here but this server's pages.
        browser = playwright.chromium.launch(executable_path=_browser(), args=["--no-sandbox"])
        yield browser
        browser.close()


@dataclass
class Site:
    """A running server, and what stands behind it."""

    address: str
    runtime: Runtime

    @property
    def curation(self) -> Curation:
        return Curation(self.runtime)

    def without_index(self) -> Callable[[], None]:
        """Take the index away; what brings it back."""
        index, self.runtime.index = self.runtime.index, Gone(IndexUnavailable("the index is away"))

        def back() -> None:
            self.runtime.index = index

        return back


@pytest.fixture
def site(settings: Settings) -> Iterator[Site]:
    with Runtime(settings, warm=True) as runtime:
        a_workspace(runtime)
        app = create_app(Services.of(runtime, LocalToken(TOKEN, settings.acting_principal)))
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="off"))
        thread = threading.Thread(target=server.run)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield Site(f"http://127.0.0.1:{port}", runtime)
        server.should_exit = True
        thread.join()


@pytest.fixture
def context(chromium: Browser, site: Site) -> Iterator[BrowserContext]:
    """A fresh browser profile. Whatever it refuses to run, or fails to, is an error of the test."""
    context = chromium.new_context(base_url=site.address, viewport={"width": 1280, "height": 900})
    context.set_default_timeout(_PATIENCE)
    expect.set_options(timeout=_PATIENCE)
    said: list[str] = []
    context.on("weberror", lambda error: said.append(str(error.error)))
    context.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    context.on("request", lambda asked: None if asked.url.startswith(site.address) else said.append(asked.url))
    yield context
    context.close()
    expected = [each for each in said if "status of 4" not in each and "status of 5" not in each]
    assert not expected


@pytest.fixture
def visitor(context: BrowserContext) -> Page:
    """A window in which nobody has signed in."""
    return context.new_page()


@pytest.fixture
def window(visitor: Page) -> Page:
    """A window in which the administrator has signed in, on the list of cards."""
    sign_in(visitor)
    visitor.goto(f"/w/{CLINIC}/cards")
    return visitor


def go(control: Locator) -> None:
    """Press a link or button, and wait for the page that it leads to, as a person does before they go on."""
    with control.page.expect_navigation():
        control.click()


def sign_in(page: Page) -> None:
    page.goto("/sign-in")
    page.get_by_label("Token").fill(TOKEN)
    go(page.get_by_role("button", name="Sign in"))


def violations(page: Page) -> list[str]:
    """What axe finds on a page that is more than minor, each with where."""
    found = Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {node['target']}: {node['failureSummary']}"
        for each in found
        if each["impact"] in {"serious", "critical", "moderate"}
        for node in each["nodes"]
    ]


def picture(page: Page, name: str) -> None:
    """Keep what a page looks like in a directory that MEMORY_TEST_PICTURES names; the README shows some of them."""
    if directory := os.environ.get("MEMORY_TEST_PICTURES"):
        page.screenshot(path=Path(directory) / f"{name}.png", scale="css")
