"""The server of the page, reachable only from this machine and with a token."""

from __future__ import annotations

import contextlib
import json
import logging
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from pyengine._support import checks
from pyengine._support.extras import needed
from pyengine._version import __version__
from pyengine.workbench.explore.answerer import Answerer, BusyError, SupersededError
from pyengine.workbench.explore.page import page, style

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ["HOST", "application", "explore"]

HOST = "127.0.0.1"
LONGEST = 10_000  # largest size of a question in bytes
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
REFUSED = (
    "This page is for whoever started pyengine explore: open the address that it printed. What "
    "follows # in a link that you have can be added to it."
)


def explore(
    port: int = 8765,
    *,
    seconds: float = 10.0,
    ready: Callable[[str], None] = print,
) -> None:
    """Serve the page to this machine until interrupted; needs Starlette, uvicorn and Jinja2.

    Parameters
    ----------
    port : int
        In [0, 65535]; 0 for any free port.
    seconds : float
        Time limit of an answer, > 0; after it the page says that it took too long.
    ready : callable
        Called with the address, which holds the token, once the server listens.

    Raises
    ------
    ValueError
        For an argument outside its domain.
    OSError
        If the port is taken.

    Notes
    -----
    Only this machine can reach the page, and only with the token of the address or the cookie that
    it sets.  Answers are computed one by one in a process of their own; a newer question about a
    run replaces an older one.  Other threads may use the package meanwhile.
    """
    limit = checks.positive("seconds", seconds)
    number = checks.count("port", port)
    if number > 65_535:
        raise ValueError(f"port must lie in [0, 65535], got {port!r}")
    with needed("the page", "explore"):
        import uvicorn

    with socket.create_server((HOST, number)) as listening:
        number = listening.getsockname()[1]
        token = secrets.token_urlsafe(24)
        app = application(token, Answerer(float(limit)), number)
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        server = uvicorn.Server(config)
        # dropped requests at shutdown are not errors
        logging.getLogger("uvicorn.error").addFilter(lambda _: not server.should_exit)
        ready(f"http://{HOST}:{number}/?token={token}")
        with contextlib.suppress(KeyboardInterrupt):  # raised again once all is closed
            server.run(sockets=[listening])


def application(token: str, answerer: Answerer, port: int) -> Starlette:
    """ASGI application of the page, for a server that listens at a port of this machine."""
    with needed("the page", "explore"):
        from starlette.applications import Starlette
        from starlette.middleware import Middleware
        from starlette.middleware.trustedhost import TrustedHostMiddleware
        from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse
        from starlette.responses import Response as Plain
        from starlette.routing import Route

    cookie = f"pyengine-explore-{port}"  # with the port, as browsers keep cookies by host alone
    # only pages of this server may ask; a browser sends one of these origins
    origins = {f"http://{name}:{port}" for name in (HOST, "localhost")}
    assets = {
        "/style.css": (style(), "text/css"),
        "/explore.js": (_asset("explore.js"), "text/javascript"),
        "/chart.js": (_asset("chart.js"), "text/javascript"),
    }
    body = page(__version__)

    def known(request: Request) -> bool:
        return secrets.compare_digest(request.cookies.get(cookie, "").encode(), token.encode())

    async def front(request: Request) -> Response:
        given = parse_qs(request.url.query).get("token", [""])[0]
        if given and secrets.compare_digest(given.encode(), token.encode()):
            answer = RedirectResponse("/", status_code=303)  # the browser keeps what follows #
            answer.set_cookie(cookie, token, httponly=True, samesite="lax")
            return answer
        if not known(request):
            return PlainTextResponse(REFUSED, status_code=403)
        return Plain(body, media_type="text/html")

    async def asset(request: Request) -> Response:
        if not known(request):
            return PlainTextResponse(REFUSED, status_code=403)
        text, kind = assets[request.url.path]
        return Plain(text, media_type=kind)

    async def answers(request: Request) -> Response:
        if not known(request) or request.headers.get("origin", "") not in origins:
            return JSONResponse({"error": REFUSED}, status_code=403)
        question = await _body(request)
        if question is None:
            return JSONResponse({"error": "the question is too long"}, status_code=413)
        try:
            asked = json.loads(question)
            slot, settings = asked["slot"], asked["settings"]
            if not isinstance(slot, str) or len(slot) > 80:
                raise ValueError
        except (ValueError, TypeError, KeyError, RecursionError):
            what = "a question must be JSON with a slot and settings"
            return JSONResponse({"error": what}, status_code=400)
        try:
            return JSONResponse(await answerer.ask(slot, json.dumps(settings)))
        except SupersededError:
            return JSONResponse({"superseded": True})
        except BusyError:
            return JSONResponse({"error": "too many questions at once"}, status_code=503)

    @contextlib.asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        async with answerer.at_work():
            yield

    return Starlette(
        routes=[
            Route("/", front),
            *(Route(path, asset) for path in assets),
            Route("/answers", answers, methods=["POST"]),
        ],
        middleware=[
            Middleware(_Headers),
            Middleware(TrustedHostMiddleware, allowed_hosts=[HOST, "localhost"]),
        ],
        lifespan=lifespan,
    )


async def _body(request: Request) -> bytes | None:
    """The body of a request, or None if it is too long."""
    found = b""
    async for part in request.stream():
        found += part
        if len(found) > LONGEST:
            return None
    return found


def _asset(name: str) -> str:
    return files("pyengine.explore").joinpath("assets", name).read_text(encoding="utf-8")


class _Headers:
    """Middleware that adds the same headers to all responses, also to errors."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._headers = [(key.lower().encode(), value.encode()) for key, value in HEADERS.items()]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *self._headers]
            await send(message)

        await self._app(scope, receive, with_headers)
