"""A running viewer with a small page, and an HTTP client that acts as a browser."""

import asyncio
import contextlib
import json
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
from websockets.sync.client import connect
from websockets.typing import Origin

import marey
from marey.io.formats.html.page import parse_page
from marey.viewer.server import server

PAGE = """<!doctype html>
<html>
  <head>
    <title>marey</title>
    <style>body { margin: 0 }</style>
    <script type="module">document.title = "marey";</script>
  </head>
  <body>
    <script type="application/octet-stream" id="scene"></script>
  </body>
</html>
"""


@contextlib.contextmanager
def served(thing, monkeypatch, **options):
    """Yield a viewer with a small page instead of the built one."""
    monkeypatch.setattr(server, "read_page", lambda: parse_page(PAGE))
    with marey.view(thing, browser=False, block=False, **options) as viewer:
        yield viewer


class Browser:
    """A browser that has opened the viewer's address."""

    def __init__(self, viewer, host="127.0.0.1"):
        self.origin = f"http://{host}:{viewer.port}"
        self.client = httpx.Client(base_url=self.origin, timeout=60.0)
        assert self.client.get(viewer.url).status_code == 303

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.close()

    @property
    def cookie(self):
        return "; ".join(f"{k}={v}" for k, v in self.client.cookies.items())

    def get(self, path, **options):
        return self.client.get(path, **options)

    def post(self, path, content=None, **headers):
        headers = {"origin": self.origin, **headers}
        return self.client.post(path, json=content or {}, headers=headers)

    def drop(self, name, content):
        """Drop a file on the page."""
        kind = "application/octet-stream"
        headers = {"origin": self.origin, "content-type": kind}
        answer = self.client.post(
            "/api/upload", params={"name": name}, content=content, headers=headers
        )
        assert answer.status_code == 202

    @contextlib.contextmanager
    def listening(self):
        address = self.origin.replace("http", "ws", 1) + "/ws"
        with connect(
            address,
            additional_headers={"Cookie": self.cookie},
            origin=Origin(self.origin),
        ) as socket:
            yield lambda: json.loads(socket.recv(timeout=60))

    def wait(self, seconds=60.0):
        """Wait until no job runs; return the page state."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            state = self.get("/api/state").json()
            if not state["busy"]:
                return state
            time.sleep(0.05)
        raise AssertionError(f"still busy: {state}")


def run_in_loop(work):
    """Return the result of a coroutine function, run in a new thread.

    A thread that drives a real browser already has an event loop.
    """
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(lambda: asyncio.run(work())).result(60)
