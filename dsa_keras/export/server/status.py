"""The one error a request can end with, and its name in gRPC and its number in HTTP."""

from __future__ import annotations

HTTP_STATUS = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "OUT_OF_RANGE": 400,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "CANCELLED": 499,
    "INTERNAL": 500,
    "UNKNOWN": 500,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
"""HTTP status of each gRPC code, as TensorFlow Serving maps them."""


class ServingError(Exception):
    """A request that cannot be answered.

    Args:
        code: the name of a gRPC status code, a key of `HTTP_STATUS`.
        message: what was wrong, for the client to read.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message

    @property
    def http_status(self) -> int:
        """The HTTP status of this error."""
        return HTTP_STATUS[self.code]


def invalid(message: str) -> ServingError:
    """The error of a request that is wrong in itself."""
    return ServingError("INVALID_ARGUMENT", message)
