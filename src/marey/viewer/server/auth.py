"""Authentication: only the user's browser, from the viewer's own page, with the token.

Every web page that the user visits can send requests to a server on 127.0.0.1
(cross-site request forgery), and a host name that resolves to 127.0.0.1 makes such a
page look like the viewer's own (DNS rebinding). Therefore every request and every
WebSocket must have this server as its Host and, if it has an Origin, as its Origin, and
must have a cookie with the token. A request that changes something must have an Origin,
and a content type that a page of another site cannot send without a CORS preflight.
"""

import ipaddress
import secrets
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]")
ALLOWED_CONTENT_TYPES = ("application/json", "application/octet-stream")
"""Content types that a page of another site cannot send without a CORS preflight."""

SECURITY_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def new_token() -> str:
    """Return a random token of 256 bits."""
    return secrets.token_urlsafe(32)


@dataclass(frozen=True, slots=True)
class Authenticator:
    """ASGI middleware that checks requests and adds security headers to all answers."""

    app: ASGIApp
    token: str
    port: int
    policy: str
    """Content security policy of every answer."""

    host: str = "127.0.0.1"
    """Address that the server listens on."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass an allowed request to the app; answer any other with an error."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        answer = self._refusal(scope)
        if answer is None:
            # In some browsers, 'self' does not include WebSockets of this address.
            host = Headers(scope=scope)["host"]
            websocket_policy = f"; connect-src 'self' ws://{host}"
            await self.app(scope, receive, self._with_headers(send, websocket_policy))
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        else:
            await answer(scope, receive, self._with_headers(send))

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the error answer to a request; None if the request is allowed."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._is_own_host(hosts[0]):
            return _refuse(403, "this host name is not the address of marey")
        if not self._origin_allowed(scope, headers, hosts[0]):
            return _refuse(403, "requests from pages of another site are refused")
        if scope["type"] == "http" and scope["path"] == "/":
            token = parse_qs(scope["query_string"].decode("latin-1")).get("token")
            if token:
                return self._set_token_cookie(token[0])
        if not self._is_token(self._cookie(headers)):
            return _refuse(401, "open the address that marey printed, with its token")
        return None

    def _is_own_host(self, host: str) -> bool:
        # Browsers omit port 80 and write host names in lower case.
        has_port = ":" in host.rpartition("]")[2]
        name, _, port = host.rpartition(":") if has_port else (host, "", "80")
        if port != str(self.port):
            return False
        if name.lower() in (*LOCAL_HOSTS, self.host.lower()):
            return True
        # On a network, only IP addresses are allowed: any name can resolve to them.
        return self.host.lower() not in LOCAL_HOSTS and _is_ip_address(name)

    def _origin_allowed(self, scope: Scope, headers: Headers, host: str) -> bool:
        origins = [origin.lower() for origin in headers.getlist("origin")]
        own_origin = f"http://{host.lower()}"
        if scope["type"] == "http" and scope["method"] in ("GET", "HEAD"):
            return all(origin == own_origin for origin in origins)
        if origins != [own_origin]:
            return False
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        return scope["type"] == "websocket" or kind in ALLOWED_CONTENT_TYPES

    def _set_token_cookie(self, token: str) -> Response:
        """Return a redirect that moves the token from the address to a cookie."""
        if not self._is_token(token):
            return _refuse(401, "this is not the token of the running marey server")
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(
            self._cookie_name, self.token, httponly=True, samesite="strict", path="/"
        )
        return answer

    @property
    def _cookie_name(self) -> str:
        # Cookies do not depend on the port: two servers must not share one.
        return f"marey-{self.port}"

    def _cookie(self, headers: Headers) -> str:
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self._cookie_name)
        except CookieError:
            return ""
        return cookie.value if cookie else ""

    def _is_token(self, token: str) -> bool:
        return secrets.compare_digest(token.encode(), self.token.encode())

    def _with_headers(self, send: Send, extra_policy: str = "") -> Send:
        headers = {
            **SECURITY_HEADERS,
            "Content-Security-Policy": self.policy + extra_policy,
        }
        encoded = [(k.lower().encode(), v.encode()) for k, v in headers.items()]

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *encoded]
            await send(message)

        return send_with_headers


def _is_ip_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _refuse(status: int, reason: str) -> Response:
    return PlainTextResponse(reason, status_code=status)
