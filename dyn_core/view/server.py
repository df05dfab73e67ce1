"""The server of the viewer: viser, on this machine alone unless asked."""

from __future__ import annotations

import contextlib
import errno
import io
import socket
from typing import Any

from dyn_core.errors import SettingError, UnsupportedError

HOST, PORT = "127.0.0.1", 8080


def viser_module() -> Any:
    """Return the library viser.

    Raises:
        UnsupportedError: It is not installed; says how.
    """
    try:
        import viser
    except ImportError as error:
        raise UnsupportedError(
            f"the viewer needs viser ({error}): pip install 'dyn_ros[view]'"
        ) from error
    return viser


def start_server(host: str, port: int, label: str) -> Any:
    """Return a server of viser that listens.

    Raises:
        UnsupportedError: viser is not installed.
        SettingError: The port is used, or the host is not one of this machine.
    """
    viser = viser_module()
    _check_free(host, port)
    with contextlib.redirect_stdout(io.StringIO()):  # it prints the address in a box
        server = viser.ViserServer(host=host, port=port, label=label, verbose=False)
    if port and server.get_port() != port:
        stop_server(server)
        raise SettingError(_used(host, port), "port")
    return server


def stop_server(server: Any) -> None:
    """End a server; it says nothing about that."""
    with contextlib.redirect_stdout(io.StringIO()):
        server.stop()


def _check_free(host: str, port: int) -> None:
    """Refuse a port that somebody listens on."""
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
    """Return the sentence about a port that is taken."""
    return (
        f"port {port} of {host} is used already; valid: another --port, 0 for any that"
        " is free"
    )
