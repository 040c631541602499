"""The HTTP port: what monitoring and orchestration ask of the daemon. It reads state and changes none."""

from offsetd.http.server import HttpServer

__all__ = ["HttpServer"]
