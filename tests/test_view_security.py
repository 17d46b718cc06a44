"""The server refuses everyone but its user: requirements S1 to S11, S14 and S15.

All requests stay on this machine, bounded in number and time.
"""

import asyncio
import contextlib
import gc
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import time
import warnings

import httpx
import pytest
import samples
import scenes
import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import WebSocketRoute
from viewing import PAGE, Browser, run_in_loop, served
from websockets.asyncio.client import connect as connect_async
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

import marey
from marey.cli import end_as_by_ctrl_c
from marey.io.formats.html.page import parse_page
from marey.viewer import Limits
from marey.viewer.server import server, timed_http
from marey.viewer.server.auth import Authenticator
from marey.viewer.server.clients import PageConnections

ROUTES = [
    *[("GET", f"/{path}") for path in ("", "api/scene", "api/series", "api/state")],
    *[("GET", f"/{path}") for path in ("api/folder", "nowhere", "favicon.ico")],
    *[("POST", f"/api/{path}") for path in ("open", "upload", "try", "keep", "undo")],
    *[("POST", f"/api/{path}") for path in ("generate", "export")],
]


@pytest.fixture(scope="module")
def patch():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with one motion; a secret file is outside of it."""
    home = tmp_path_factory.mktemp("home")
    (home / "secret.bvh").write_text("secret")
    root = home / "root"
    root.mkdir()
    marey.write(samples.motion(6), root / "walk.bvh")
    (root / "out.bvh").symlink_to(home / "secret.bvh")
    (root / "device.bvh").symlink_to("/dev/zero")
    os.mkfifo(root / "fifo.bvh")
    (root / "inside").mkdir()
    return root


@pytest.fixture(scope="module")
def viewer(folder, patch):
    with served(folder, patch) as viewer:
        yield viewer


@pytest.fixture(scope="module")
def browser(viewer):
    with Browser(viewer) as browser:
        yield browser


def raw(viewer, text):
    """Status of the answer to raw bytes."""
    with socket.create_connection(("127.0.0.1", viewer.port), timeout=10) as line:
        line.sendall(text.encode("latin-1"))
        return int(line.recv(4096).split()[1])


def upgrade(viewer, browser, host, origins):
    lines = [f"Host: {host}"] + [f"Origin: {origin}" for origin in origins]
    return raw(
        viewer,
        "\r\n".join(
            [
                "GET /ws HTTP/1.1",
                *lines,
                f"Cookie: {browser.cookie}",
                *("Connection: Upgrade", "Upgrade: websocket"),
                *("Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: " + "A" * 22 + "=="),
                "\r\n",
            ]
        ),
    )


def test_it_listens_on_this_machine_only(viewer, folder, patch):
    """S1: 127.0.0.1 and no other address; anywhere else warns and needs the token."""
    assert viewer.url.startswith(f"http://127.0.0.1:{viewer.port}/")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", viewer.port), timeout=5).close()
    with contextlib.ExitStack() as stack:
        with pytest.warns(UserWarning, match="the address can view and edit"):
            open_to_all = stack.enter_context(served(folder, patch, host="127.0.0.2"))
        browser = stack.enter_context(Browser(open_to_all, "127.0.0.2"))
        address = f"http://127.0.0.2:{open_to_all.port}/"
        assert httpx.get(address).status_code == 401
        assert browser.get("/").status_code == 200
        by_name = {"host": f"evil.example:{open_to_all.port}"}
        assert httpx.get(address, headers=by_name).status_code == 403


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_the_host_must_be_the_server(viewer, browser, method, path):
    """S2: a name that leads here (DNS rebinding) is turned away on every route."""
    for name in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example"):
        for host in (f"{name}:{viewer.port}", name):
            headers = {"host": host, "origin": f"http://{host}"}
            answer = browser.client.request(method, path, headers=headers)
            assert answer.status_code == 403, host


@pytest.mark.parametrize("host", ["{}", "{}:1", "{}:{port}, x", "", "x@{}:{port}"])
def test_a_similar_host_is_refused(viewer, browser, host):
    """S2: other ports, none, several names; and no Host or two of them."""
    host = host.format("127.0.0.1", port=viewer.port)
    assert browser.get("/", headers={"host": host}).status_code in (400, 403)
    twice = f"Host: 127.0.0.1:{viewer.port}\r\n"
    assert raw(viewer, f"GET / HTTP/1.1\r\n{2 * twice}\r\n") in (400, 403)
    assert raw(viewer, "GET / HTTP/1.0\r\n\r\n") == 403


@pytest.mark.parametrize(
    ("listens", "port", "host", "allowed"),
    [
        ("127.0.0.1", 80, "127.0.0.1", True),
        ("127.0.0.1", 80, "127.0.0.1:80", True),
        ("::1", 80, "[::1]", True),
        ("::1", 80, "[::1]:80", True),
        ("127.0.0.1", 81, "127.0.0.1", False),
        ("127.0.0.1", 80, "127.0.0.1:", False),
        ("127.0.0.1", 80, "evil.example", False),
        ("127.0.0.1", 8000, "LocalHost:8000", True),
        ("Studio", 8000, "studio:8000", True),
        ("Studio", 8000, "studio.evil.example:8000", False),
    ],
)
def test_a_host_may_leave_out_port_80_and_be_written_small(
    listens, port, host, allowed
):
    """S2: as browsers write addresses; what is no address of ours stays out."""

    async def app(scope, receive, send):
        await PlainTextResponse("in")(scope, receive, send)

    authenticator = Authenticator(app, "token", port, "default-src 'self'", listens)
    headers = {
        "host": host,
        "origin": f"http://{host.lower()}",
        "cookie": f"marey-{port}=token",
        "content-type": "application/json",
    }

    async def answers():
        line = httpx.ASGITransport(authenticator)
        async with httpx.AsyncClient(transport=line, base_url="http://x") as client:
            return [
                (await client.request(method, "/api/undo", headers=headers)).status_code
                for method in ("GET", "POST")
            ]

    assert run_in_loop(answers) == [200 if allowed else 403] * 2


def test_a_websocket_from_elsewhere_is_refused(viewer, browser):
    """S2, S3: foreign, null, other port, look-alike and missing origins are 403."""
    ours = f"127.0.0.1:{viewer.port}"
    foreign = (
        *("http://evil.example", "null", "http://127.0.0.1:1", "http://127.0.0.1"),
        *(f"http://127.0.0.1.evil.example:{viewer.port}", f"https://{ours}"),
        *(f"http://localhost:{viewer.port}", f"http://{ours}.evil.example", ""),
    )
    for origin in foreign:
        assert upgrade(viewer, browser, ours, [origin]) == 403, origin
    assert upgrade(viewer, browser, ours, []) == 403
    assert upgrade(viewer, browser, ours, [f"http://{ours}", "null"]) == 400
    evil = f"evil.example:{viewer.port}"
    assert upgrade(viewer, browser, evil, [f"http://{evil}"]) == 403
    assert upgrade(viewer, browser, ours, [f"http://{ours}"]) == 101


@pytest.mark.parametrize("path", [path for method, path in ROUTES if method == "POST"])
def test_another_site_cannot_change_anything(viewer, browser, path):
    """S4: simple posts, with or without an origin, do nothing; nobody is let in."""
    before = browser.get("/api/state").json(), browser.get("/api/scene").content
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        headers = {"content-type": kind, "origin": browser.origin}
        answer = browser.client.post(path, content=b"{}", headers=headers)
        assert answer.status_code == 403, kind
    for origin in ({}, {"origin": "http://evil.example"}, {"origin": "null"}):
        answer = browser.client.post(path, json={"path": "walk.bvh"}, headers=origin)
        assert answer.status_code == 403, origin
    asked = {
        "origin": "http://evil.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type",
    }
    answer = browser.client.options(path, headers=asked)
    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]
    after = browser.get("/api/state").json(), browser.get("/api/scene").content
    assert after == before


def test_the_token_is_long_and_moves_to_a_cookie(viewer):
    """S5: 256 bits; HttpOnly, SameSite=Strict; the address loses it."""
    token = viewer.url.partition("token=")[2]
    assert len(token) * 6 >= 256
    answer = httpx.get(viewer.url)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "domain" not in cookie


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_nothing_comes_without_the_token(viewer, method, path):
    """S5: no cookie, a wrong one or a wrong token is 401 and says what to do."""
    origin = f"http://127.0.0.1:{viewer.port}"
    token = viewer.url.partition("token=")[2]
    wrong = [{}, {"cookie": f"marey-{viewer.port}={token[:-1]}"}]
    wrong += [{"cookie": f"marey-1={token}"}, {"cookie": ";;=\x7f"}]
    for cookie in wrong:
        headers = {"origin": origin, "content-type": "application/json", **cookie}
        answer = httpx.request(method, origin + path, headers=headers)
        assert answer.status_code == 401
        assert "open the address" in answer.text
    assert httpx.get(f"{origin}/?token={token[:-1]}é").status_code == 401


def test_a_websocket_needs_the_token_too(viewer):
    """S5: the right origin alone is not enough."""
    origin = f"http://127.0.0.1:{viewer.port}"
    with pytest.raises(InvalidStatus) as refused:  # noqa: SIM117
        with connect(f"ws://127.0.0.1:{viewer.port}/ws", origin=Origin(origin)):
            pass
    assert refused.value.response.status_code == 403


def test_the_token_is_in_no_log(folder, patch, caplog, capfd):
    """S5: whatever is logged or printed while pages come and go."""
    with caplog.at_level(logging.DEBUG), served(folder, patch) as viewer:
        token = viewer.url.partition("token=")[2]
        server = f"http://127.0.0.1:{viewer.port}"
        # Not by httpx, which logs the addresses it asks for itself.
        line = f"Host: 127.0.0.1:{viewer.port}\r\n\r\n"
        assert raw(viewer, f"GET /?token={token} HTTP/1.1\r\n{line}") == 303
        assert raw(viewer, f"GET /nowhere?token={token} HTTP/1.1\r\n{line}") == 401
        assert httpx.get(server).status_code == 401
    printed = capfd.readouterr()
    assert token not in caplog.text + printed.out + printed.err


def test_two_servers_have_two_tokens(viewer, folder, patch):
    """S5: one server's address does not open another."""
    with served(folder, patch) as other:
        token, other_token = (v.url.partition("token=")[2] for v in (viewer, other))
        assert token != other_token
        address = f"http://127.0.0.1:{other.port}/?token={token}"
        assert httpx.get(address).status_code == 401


HOSTILE = (
    *("../secret.bvh", "inside/../../secret.bvh", "%2e%2e%2fsecret.bvh", "..", "."),
    *("..\\secret.bvh", "..%5csecret.bvh", "/etc/passwd", "C:\\secret.bvh", "C:/x"),
    *("out.bvh", "device.bvh", "fifo.bvh", "inside", "walk.bvh\0.c3d", "", "a" * 9999),
    *("//etc/passwd", "~/secret.bvh", "file:///etc/passwd", "walk.bvh/", "nobody.bvh"),
    *("inside/" * 300 + "walk.bvh", "walk.bvh/../walk.bvh/x", "inside/../walk.bvh"),
)


def test_no_path_leads_out_of_the_folder(viewer, browser, folder, patch):
    """S6: each is 404, and the worker is never asked to read any of them."""
    asked = []

    async def noted(source):
        asked.append(source.path)
        return 1

    with patch.context() as here:
        here.setattr(viewer.state, "open", noted)
        for path in (*HOSTILE, str(folder / "walk.bvh")):
            if path == "walk.bvh/":  # The same file as without the slash.
                continue
            answer = browser.post("/api/open", {"path": path})
            assert answer.status_code == 404, path
        for odd in (None, 7, ["walk.bvh"], {"path": "walk.bvh"}):
            assert browser.post("/api/open", {"path": odd}).status_code == 404
        assert asked == []
        assert browser.post("/api/open", {"path": "walk.bvh"}).status_code == 202
    assert [path.name for path in asked] == ["walk.bvh"]


def test_no_address_leads_to_a_file(viewer, browser):
    """S6: there are no file routes at all."""
    for path in HOSTILE:
        text = path.replace("\0", "%00").replace(" ", "%20")[:2000]
        head = f"GET /{text} HTTP/1.1\r\nHost: 127.0.0.1:{viewer.port}\r\n"
        cookie = f"Cookie: {browser.cookie}\r\n\r\n"
        status = raw(viewer, head + cookie)
        assert status == (200 if path == "" else 404), path


def test_the_folder_lists_what_can_be_opened_and_no_more(browser):
    """S6: links out, devices and pipes are not even listed."""
    found = browser.get("/api/folder").json()
    assert found["root"] == "root"
    assert [file["path"] for file in found["files"]] == ["walk.bvh"]


def test_an_upload_is_stopped_while_it_comes(folder, patch):
    """S7: 413 after the limit, whatever was declared, and nothing is left of it."""
    limits = Limits(upload=200_000)
    with (
        served(folder, patch, limits=limits) as viewer,
        Browser(viewer) as browser,
    ):
        head = "\r\n".join(
            [
                "POST /api/upload?name=../../big.c3d HTTP/1.1",
                f"Host: 127.0.0.1:{viewer.port}",
                f"Origin: {browser.origin}",
                f"Cookie: {browser.cookie}",
                "Content-Type: application/octet-stream\r\n",
            ]
        )
        assert raw(viewer, head + "Content-Length: 200001\r\n\r\n") == 413
        chunk = "10000\r\n" + "x" * 0x10000 + "\r\n"
        chunks = head + "Transfer-Encoding: chunked\r\n\r\n" + 4 * chunk
        assert raw(viewer, chunks) == 413
        sent = []

        def endless():
            for _ in range(10_000):
                sent.append(1)
                yield bytes(10_000)

        headers = {
            "origin": browser.origin,
            "content-type": "application/octet-stream",
        }
        path = "/api/upload?name=../../walk.bvh"
        # The server hangs up on a sender that goes on.
        with contextlib.suppress(httpx.TransportError):
            answer = browser.client.post(path, content=endless(), headers=headers)
            assert answer.status_code == 413
        assert len(sent) < 2_000
        assert [p for p in viewer.scratch.rglob("*") if p.is_file()] == []
        small = (folder / "walk.bvh").read_bytes()
        answer = browser.client.post(path, content=small, headers=headers)
        assert answer.status_code == 202
        (stored,) = (p for p in viewer.scratch.rglob("*") if p.is_file())
        assert stored.name == "walk.bvh"
        assert browser.wait()["title"] == "walk.bvh"
        with contextlib.suppress(httpx.TransportError):
            answer = browser.post("/api/try", {"pad": "x" * 2**20})
            assert answer.status_code == 413


def test_a_worker_that_is_killed_takes_nothing_with_it(folder, patch):
    """S8: the server is up, the scene is there, and the next request is answered."""
    with served(folder / "walk.bvh", patch) as viewer, Browser(viewer) as browser:
        browser.wait()
        scene = browser.get("/api/scene").content
        series = browser.get("/api/series?take=0&subject=0&joint=2").content
        with browser.listening() as heard:
            heard()
            os.kill(viewer.state.supervisor.pid, signal.SIGKILL)
            assert browser.get("/api/scene").content == scene
            again = browser.get("/api/series?take=0&subject=0&joint=2")
            assert again.content == series


def test_work_that_takes_too_long_is_stopped(folder, patch):
    """S8: with the reason and what to do; the server goes on."""
    with (
        served(folder, patch, limits=Limits(seconds=0.05)) as viewer,
        Browser(viewer) as browser,
    ):
        with browser.listening() as heard:
            browser.post("/api/open", {"path": "walk.bvh"})
            messages = [heard()]
            while messages[-1]["type"] != "error":
                messages.append(heard())
        assert "more than 0.05 s" in messages[-1]["message"]
        assert "try again" in messages[-1]["message"]
        header, _ = scenes.unpacked(browser.get("/api/scene").content)
        assert "more than 0.05 s" in header["unsolved"]
        assert viewer.state.supervisor.pid == 0


BIG = """
from marey.workers.limits import limit_memory
limit_memory(2**30)
try:
    bytearray(2**31)
except MemoryError:
    raise SystemExit(7)
"""


def test_a_worker_cannot_take_all_memory():
    """S8: an allocation beyond the limit fails in the worker and nowhere else."""
    done = subprocess.run([sys.executable, "-c", BIG], timeout=60, check=False)
    assert done.returncode == 7


def test_a_damaged_file_is_reported_and_the_scene_stays(folder, patch, tmp_path):
    """S8: what cannot be read changes nothing."""
    marey.write(samples.motion(6), tmp_path / "good.bvh")
    (tmp_path / "bad.bvh").write_text("HIERARCHY\nROOT <script>\n{ OFFSET")
    with served(tmp_path / "good.bvh", patch) as viewer, Browser(viewer) as browser:
        browser.wait()
        scene = browser.get("/api/scene").content
        with browser.listening() as heard:
            browser.post("/api/open", {"path": "bad.bvh"})
            while (message := heard())["type"] != "error":
                pass
        assert "bad.bvh" in message["message"]
        assert browser.wait()["title"] == "good.bvh"
        assert browser.get("/api/scene").content == scene


def test_a_long_websocket_message_ends_the_connection(viewer, browser):
    """S9: one byte more than 1 MiB closes it; the server goes on."""
    address = f"ws://127.0.0.1:{viewer.port}/ws"
    cookie = {"Cookie": browser.cookie}
    with connect(address, additional_headers=cookie, origin=browser.origin) as line:
        line.recv(timeout=10)
        line.send("x" * 2**20)
        line.ping().wait(10)
        line.send("x" * (2**20 + 1))
        with pytest.raises(ConnectionClosed) as closed:
            line.recv(timeout=10)
    assert closed.value.rcvd.code == 1009
    assert browser.get("/api/state").status_code == 200


def test_bytes_that_are_no_text_end_the_connection(viewer, browser, caplog, capfd):
    """They close it with 1007 and leave no traceback."""
    address = f"ws://127.0.0.1:{viewer.port}/ws"
    cookie = {"Cookie": browser.cookie}
    with connect(address, additional_headers=cookie, origin=browser.origin) as line:
        line.recv(timeout=10)
        line.send(b"\xff\xfe", text=True)
        with pytest.raises(ConnectionClosed) as closed:
            line.recv(timeout=10)
    assert closed.value.rcvd.code == 1007
    assert browser.get("/api/state").status_code == 200
    assert "Traceback" not in caplog.text + capfd.readouterr().err


def test_a_page_that_never_reads_holds_up_nobody():
    """S10: its queue stays within 8; the others get every message, in order."""
    run_in_loop(_slow_and_quick)


async def _slow_and_quick():
    clients = PageConnections()

    async def listen(socket):
        await clients.serve(socket, {"n": -1})

    app = Starlette(routes=[WebSocketRoute("/ws", listen)])
    config = uvicorn.Config(app, log_config=None, lifespan="off", ws_ping_interval=None)
    server = uvicorn.Server(config)
    line = socket.socket()
    line.bind(("127.0.0.1", 0))
    port = line.getsockname()[1]
    serving = asyncio.create_task(server.serve(sockets=[line]))
    while not server.started:
        await asyncio.sleep(0.01)
    pad = "x" * 60_000
    slow = socket.create_connection(("127.0.0.1", port))
    slow.sendall(
        b"GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + b"A" * 22 + b"==\r\n\r\n"
    )
    got = []
    async with connect_async(f"ws://127.0.0.1:{port}/ws") as quick:
        got.append(json.loads(await quick.recv())["n"])
        while len(clients.connections) < 2:
            await asyncio.sleep(0.01)
        for n in range(300):
            clients.broadcast({"n": n, "pad": pad})
            async with asyncio.timeout(5):
                got.append(json.loads(await quick.recv())["n"])
            assert all(len(client.queue) <= 8 for client in clients.connections)
    queues = [list(client.queue) for client in clients.connections]
    assert got == list(range(-1, 300))
    assert [json.loads(text)["n"] for text in queues[0]] == list(range(292, 300))
    slow.close()
    server.should_exit = True
    await serving


def test_many_idle_and_slow_connections_leave_room_for_a_new_one(viewer, browser):
    """S11: beside 200 that say nothing and 20 that dawdle, which all stay open."""
    lines = []
    with contextlib.ExitStack() as stack:
        for number in range(220):
            line = socket.create_connection(("127.0.0.1", viewer.port), timeout=10)
            stack.enter_context(line)
            if number < 20:
                line.sendall(b"POST /api/upload HTTP/1.1\r\nHost: 127")
            line.setblocking(False)
            lines.append(line)
        with Browser(viewer) as new:
            assert new.get("/").status_code == 200
        for line in lines:
            with pytest.raises(BlockingIOError):  # neither answered nor closed
                line.recv(1)


SLOW = {
    "silent": b"",
    "header": b"POST /api/upload HTTP/1.1\r\nHost: 127",
    "body": b"POST /api/upload HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
    b"Content-Length: 9\r\n\r\nab",
}


@pytest.mark.parametrize("request_part", SLOW)
def test_slow_connections_are_closed(viewer, browser, request_part, monkeypatch):
    monkeypatch.setattr(timed_http, "MAX_WAIT_S", 0.3)
    address = f"ws://127.0.0.1:{viewer.port}/ws"
    cookie = {"Cookie": browser.cookie}
    with connect(address, additional_headers=cookie, origin=browser.origin) as page:
        with socket.create_connection(("127.0.0.1", viewer.port), timeout=10) as line:
            line.sendall(SLOW[request_part].replace(b"{port}", b"%d" % viewer.port))
            while line.recv(4096):
                pass  # an answer may come before the end
        page.ping().wait(10)  # a WebSocket waits as long as it likes


def test_a_client_that_never_reads_leaves_no_socket_behind(folder, patch):
    with warnings.catch_warnings(record=True) as caught, socket.socket() as line:
        warnings.simplefilter("always")
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        page = parse_page(PAGE.replace("<body>", "<body>" + "long " * 2**20))
        patch.setattr(server, "read_page", lambda: page)
        with (
            marey.view(folder, browser=False, block=False) as viewer,
            Browser(viewer) as browser,
        ):
            line.connect(("127.0.0.1", viewer.port))
            request = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{viewer.port}\r\n"
            line.sendall(f"{request}Cookie: {browser.cookie}\r\n\r\n".encode())
            time.sleep(0.5)
        gc.collect()
    assert [str(w.message) for w in caught if w.category is ResourceWarning] == []


def test_every_answer_says_what_a_page_may_do(browser):
    """S14: only the page's own script and style; nothing from elsewhere, no frames."""
    page = parse_page(PAGE)
    for path in ("/", "/api/scene", "/api/state", "/nowhere"):
        headers = browser.get(path).headers
        rules = dict(
            rule.split(maxsplit=1)
            for rule in headers["content-security-policy"].split("; ")
        )
        assert rules["default-src"] == "'self'"
        assert rules["script-src"].startswith("'sha256-")
        assert rules["script-src"] in page.policy("'self'")
        assert rules["frame-ancestors"] == "'none'"
        ours = browser.origin.replace("http", "ws")
        assert rules["connect-src"] == f"'self' {ours}"
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in headers
    assert browser.get("/").text == PAGE


START = """
from marey.cli import main
from marey.io.formats.html.page import parse_page
from marey.viewer.server import server as server
server.read_page = lambda: parse_page({page!r})
main([*{command!r}, "--no-browser"])
"""


def started(*command, **environment):
    code = START.format(page=PAGE, command=tuple(map(str, command)))
    pipe, environment = subprocess.PIPE, os.environ | environment
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=pipe,
        stderr=pipe,
        text=True,
        env=environment,
    )


ENDINGS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture
def terminal():
    """Programs that are started hear of a lost terminal, also if the tests do not."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("signal_number", ENDINGS)
def test_an_end_frees_the_port_and_leaves_nothing(folder, signal_number, tmp_path):
    """S15: Ctrl-C, being asked to end or losing the terminal, with a page open."""
    process = started("view", folder / "walk.bvh", TMPDIR=str(tmp_path))
    said = [process.stdout.readline() for _ in range(2)]
    port = int(re.search(r":(\d+)/\?token=", said[1])[1])
    origin = f"http://127.0.0.1:{port}"
    with httpx.Client(base_url=origin) as client:
        client.get(said[1].strip())
        while client.get("/api/state").json()["busy"]:
            time.sleep(0.05)
        cookie = "; ".join(f"{k}={v}" for k, v in client.cookies.items())
        with connect(
            f"ws://127.0.0.1:{port}/ws",
            additional_headers={"Cookie": cookie},
            origin=Origin(origin),
        ):
            workers = children(process.pid)
            assert len(workers) == 1
            process.send_signal(signal_number)
            code = process.wait(timeout=60)
    assert code == 0
    assert process.stderr.read() == "ended\n"
    assert os.listdir(tmp_path) == []
    with socket.socket() as free:
        # As any server does, beside connections that are just ending.
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", port))
    assert not any(os.path.exists(f"/proc/{worker}") for worker in workers)
    process.stdout.close()
    process.stderr.close()


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("signal_number", ENDINGS[1:])
def test_an_end_of_a_live_page_leaves_nothing(folder, signal_number, tmp_path):
    marey.write(marey.read(folder / "walk.bvh"), tmp_path / "walk.c3d")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    source = f"file:{tmp_path / 'walk.c3d'}?loop"
    process = started("live", source, "--to", "page", TMPDIR=str(scratch))
    assert "token" in process.stdout.readline()
    process.send_signal(signal_number)
    shown, trouble = process.communicate(timeout=30)
    assert process.returncode == 0, trouble
    assert "received" in shown
    assert list(scratch.iterdir()) == []


def test_a_lost_terminal_is_ignored_below_nohup():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with end_as_by_ctrl_c():
            os.kill(os.getpid(), signal.SIGHUP)
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)


def children(pid):
    found = subprocess.run(
        ["ps", "--ppid", str(pid), "-o", "pid="], capture_output=True, text=True
    )
    return [int(line) for line in found.stdout.split()]


def test_a_port_in_use_is_reported(viewer, folder, patch):
    """S15: in words, with what to do."""
    with pytest.raises(marey.OptionError, match=f"port: found {viewer.port}, need a"):
        marey.view(folder, port=viewer.port, browser=False, block=False)
    with pytest.raises(marey.OptionError, match="an address of this machine"):
        marey.view(folder, host="::2", browser=False, block=False)
