"""The server of the viewer: viser, on this machine only by default.

A page of another site, open in the same browser, can send requests to it, too. Their
headers Host and Origin show this, and they are refused before viser sees them.
"""

from __future__ import annotations

import contextlib
import errno
import http
import importlib
import ipaddress
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from dyn_core.errors import SettingError, UnsupportedError
from dyn_core.sharing import Lock

HOST, PORT = "127.0.0.1", 8080
_STARTING = Lock()  # _guarded replaces a global function


def viser_module() -> Any:
    """Return the module viser; UnsupportedError says how to install it."""
    try:
        import viser
    except ImportError as error:
        raise UnsupportedError(
            f"the viewer needs viser ({error}): pip install 'dyn_ros[view]'"
        ) from error
    return viser


def start_server(host: str, port: int, label: str) -> Any:
    """Return a running viser server; stop it by stop_server. Port 0: any free one."""
    viser = viser_module()
    _check_free(host, port)
    with _STARTING, _guarded(host) as guarded, _silent():
        server = viser.ViserServer(host=host, port=port, label=label, verbose=False)
    if not guarded:
        stop_server(server)
        raise UnsupportedError(
            f"viser {viser.__version__} would serve pages of other sites, too; valid:"
            " pip install 'viser>=1.1,<2'"
        )
    if port and server.get_port() != port:
        stop_server(server)
        raise SettingError(_used(host, port), "port")
    return server


@contextlib.contextmanager
def _guarded(host: str) -> Iterator[list[Any]]:
    """Context manager that adds a check of requests (`refusal`) to a viser server.

    The server must be started within it. viser has no interface for that: the function
    it calls to listen is replaced meanwhile, for the whole process. Yields a list that
    is not empty once the check is installed.
    """
    module: Any = importlib.import_module("websockets.asyncio.server")
    listen, guarded = module.serve, []

    def serve(handler: Any, *arguments: Any, **options: Any) -> Any:
        if not str(handler.__module__).startswith("viser."):
            return listen(handler, *arguments, **options)
        answer = options["process_request"]

        def process_request(connection: Any, request: Any) -> Any:
            reason = refusal(host, request.headers)
            if reason:
                return connection.respond(http.HTTPStatus.FORBIDDEN, f"{reason}\n")
            return answer(connection, request)

        guarded.append(process_request)
        return listen(
            handler, *arguments, **{**options, "process_request": process_request}
        )

    module.serve = serve
    try:
        yield guarded
    finally:
        module.serve = listen


def refusal(host: str, headers: Any) -> str:
    """Return why a request is refused, as a sentence; empty if it is accepted.

    A request must have one header Host, which names this server with any port (see
    _is_name_of), and each header Origin must be http:// and this Host, port included;
    case does not count.
    """
    asked, origins = headers.get_all("Host"), headers.get_all("Origin")
    if len(asked) != 1 or not _is_name_of(host, asked[0]):
        return "the viewer answers by its own address alone"
    if any(origin.lower() != f"http://{asked[0].lower()}" for origin in origins):
        return "the viewer answers its own page alone"
    return ""


def _is_name_of(host: str, asked: str) -> bool:
    """Return whether an address, with or without a port, names the server on a host.

    Anybody can let a domain name point to this machine, so only numeric addresses,
    localhost, `host` itself and the names of this machine are accepted; for a loopback
    address only loopback addresses and localhost. Ports may differ, as they do in
    tunnels.
    """
    try:
        name = urlsplit(f"//{asked}").hostname or ""
    except ValueError:
        return False
    if _is_loopback(name) or _is_loopback(host):
        return _is_loopback(name)
    mine = socket.gethostname().lower()
    names = host.lower(), mine, f"{mine}.local"
    return name in names or _ip_address(name) is not None


def _is_loopback(name: str) -> bool:
    address = _ip_address(name)
    return name.lower() == "localhost" if address is None else address.is_loopback


def _ip_address(name: str) -> Any:
    """Return a name as an IP address; None if it is no IP address."""
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def stop_server(server: Any) -> None:
    """Stop a server, without output."""
    with _silent():
        server.stop()


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Context manager that hides the banners of viser, in notebooks, too.

    The global console of rich, which prints them, is quiet meanwhile; a notebook would
    show them as boxes, past sys.stdout. Other output is not hidden.
    """
    console = importlib.import_module("rich").get_console()
    quiet, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = quiet


def _check_free(host: str, port: int) -> None:
    """Raise SettingError if nothing can listen on an address of this machine.

    Port 0 stands for any free one.
    """
    if not 0 <= port <= 65535:
        raise SettingError(
            f"port {port}; valid: 0 .. 65535, 0 for any free one", "port"
        )
    if not host:
        raise SettingError("host ''; valid: an address of this machine", "host")
    try:
        family, _, _, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
    except socket.gaierror as error:
        raise SettingError(f"host '{host}' is not known: {error}", "host") from error
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise SettingError(_used(host, port), "port") from error
        raise SettingError(
            f"nothing can listen on {host}:{port}: {error}", "host"
        ) from error


def _used(host: str, port: int) -> str:
    """Return the message of the error about a port in use."""
    return (
        f"port {port} of {host} is used already; valid: another --port, 0 for any that"
        " is free"
    )
