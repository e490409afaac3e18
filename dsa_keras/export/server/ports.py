"""Looks whether ports are free, before anything slow is done."""

from __future__ import annotations

import errno
import os
import socket

from dsa_keras.errors import ConfigError
from dsa_keras.export.server.options import ServerOptions, address

_SAID_HERE = (errno.EADDRINUSE, errno.EACCES)
"""What does not change until the server listens; it says itself what else may be wrong then."""


def check_ports(options: ServerOptions) -> None:
    """Binds both ports for a moment.

    Raises:
        ConfigError: if one is taken, or not for this user.
    """
    for port, kind, option in (
        (options.rest_port, "REST", "--rest-port"),
        (options.grpc_port, "gRPC", "--grpc-port"),
    ):
        if reason := port and _why_not(options.host, port):
            raise cannot_listen(address(options.host, port), kind, option, reason)


def cannot_listen(where: str, kind: str, option: str, reason: str | None = None) -> ConfigError:
    """The error of an address that cannot be listened on."""
    return ConfigError(
        f"cannot listen on {where} for {kind}" + (f" ({reason})" if reason else ""),
        hint=f"Give another {option} or --host",
    )


def _why_not(host: str, port: int) -> str:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        return ""
    for family, kind, protocol, _, where in found:
        try:
            with socket.socket(family, kind, protocol) as probe:
                # As the servers do: connections that linger after a restart are no obstacle.
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                probe.bind(where)
        except OSError as error:
            if error.errno in _SAID_HERE:
                return os.strerror(error.errno)
    return ""
