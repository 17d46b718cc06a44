"""Who may come in: the user's own browser, from the page's own address, with the token.

A server on 127.0.0.1 is open to every web page the user visits: pages may send
requests to it, and a name that resolves to 127.0.0.1 makes them look like its own. So
on every request and every WebSocket, the Host must be ours, an Origin must be ours, and
a cookie must hold the token; a request that changes something must carry an Origin and
a content type that no other site may send.
"""

import ipaddress
import secrets
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOCAL = ("127.0.0.1", "localhost", "[::1]")
TYPES = ("application/json", "application/octet-stream")
"""Content types that a page of another site cannot send without being asked for."""

HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def new_token() -> str:
    """Return 256 random bits for an address."""
    return secrets.token_urlsafe(32)


@dataclass(frozen=True, slots=True)
class Guard:
    """Lets through what may come in, and puts the same headers on every answer."""

    app: ASGIApp
    token: str
    port: int
    policy: str
    """Content security policy of every answer."""

    host: str = "127.0.0.1"
    """Where the server listens."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or let the app do it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        answer = self._turned_away(scope)
        if answer is None:
            # Not every browser takes the page's own address to be its WebSocket's.
            host = Headers(scope=scope)["host"]
            more = f"; connect-src 'self' ws://{host}"
            await self.app(scope, receive, self._with_headers(send, more))
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        else:
            await answer(scope, receive, self._with_headers(send))

    def _turned_away(self, scope: Scope) -> Response | None:
        """Return the answer to what may not come in, None to what may."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._ours(hosts[0]):
            return _no(403, "this address is not marey's")
        if not self._origin_allowed(scope, headers, hosts[0]):
            return _no(403, "a page of another site may not do this")
        if scope["type"] == "http" and scope["path"] == "/":
            ticket = parse_qs(scope["query_string"].decode("latin-1")).get("token")
            if ticket:
                return self._welcome(ticket[0])
        if not self._same(self._cookie(headers)):
            return _no(401, "open the address that marey printed, with its token")
        return None

    def _ours(self, host: str) -> bool:
        # A browser leaves out the port of the web, and writes names small.
        numbered = ":" in host.rpartition("]")[2]
        name, _, port = host.rpartition(":") if numbered else (host, "", "80")
        if port != str(self.port):
            return False
        if name.lower() in (*LOCAL, self.host.lower()):
            return True
        # Open to the network: by number only, since any name may lead anywhere.
        return self.host.lower() not in LOCAL and _is_number(name)

    def _origin_allowed(self, scope: Scope, headers: Headers, host: str) -> bool:
        origins = [origin.lower() for origin in headers.getlist("origin")]
        ours = f"http://{host.lower()}"
        if scope["type"] == "http" and scope["method"] in ("GET", "HEAD"):
            return all(origin == ours for origin in origins)
        if origins != [ours]:
            return False
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        return scope["type"] == "websocket" or kind in TYPES

    def _welcome(self, ticket: str) -> Response:
        """Return the way in: the token moves from the address to a cookie."""
        if not self._same(ticket):
            return _no(401, "this is not the token of the marey that runs here")
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(
            self._name, self.token, httponly=True, samesite="strict", path="/"
        )
        return answer

    @property
    def _name(self) -> str:
        # Cookies know no ports: two servers must not share one.
        return f"marey-{self.port}"

    def _cookie(self, headers: Headers) -> str:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self._name)
        except CookieError:
            return ""
        return found.value if found else ""

    def _same(self, token: str) -> bool:
        return secrets.compare_digest(token.encode(), self.token.encode())

    def _with_headers(self, send: Send, more: str = "") -> Send:
        added = {**HEADERS, "Content-Security-Policy": self.policy + more}
        lines = [(k.lower().encode(), v.encode()) for k, v in added.items()]

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *lines]
            await send(message)

        return send_with_headers


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _no(status: int, why: str) -> Response:
    return PlainTextResponse(why, status_code=status)
