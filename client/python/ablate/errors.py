"""Errors of this package, built from the details that the server sends."""
from __future__ import annotations

import re
from typing import NamedTuple

import grpc
from google.rpc import error_details_pb2, status_pb2


class FieldProblem(NamedTuple):
    """A problem of one field of a request."""

    field: str  #: path, such as base.model.width or axes[0].settings[1].label
    problem: str  #: a complete sentence with the value and what is expected


class Error(Exception):
    """Base of all errors of this package.

    `reason` is the server's name for the kind of error, such as RUN_NOT_FOUND; empty if the error
    isn't the server's. `retry` is true if the same call may succeed later.
    """

    def __init__(self, message: str, reason: str = "", retry: bool = False) -> None:
        super().__init__(message)
        self.reason = reason
        self.retry = retry


class InvalidArgument(Error):
    """A request with wrong fields. `fields` lists them, as far as they are known by name."""

    def __init__(self, message: str, fields: list[FieldProblem] | None = None,
                 reason: str = "") -> None:
        super().__init__(message, reason)
        self.fields = fields or []

    @classmethod
    def of(cls, fields: list[FieldProblem]) -> InvalidArgument:
        """Returns the error for these problems; at least one."""
        message = "\n  ".join(problem.problem for problem in fields)
        return cls(f"{len(fields)} problems:\n  {message}" if len(fields) > 1 else message, fields)

    def renamed(self, names: dict[str, str]) -> InvalidArgument:
        """Returns the error with other names of the request's fields: those of parameters."""
        def rename(text: str) -> str:
            field = re.split(r"\W", text, maxsplit=1)[0]
            return names.get(field, field) + text[len(field):]

        if not self.fields:
            return InvalidArgument(rename(str(self)), reason=self.reason)
        return InvalidArgument.of([FieldProblem(rename(one.field), rename(one.problem))
                                   for one in self.fields])


class NotFound(Error):
    """An object is missing, or private to somebody else."""


class PermissionDenied(Error):
    """The server rejects the token, or the user's role doesn't suffice."""


class Conflict(Error):
    """The state of an object excludes the call, such as deleting an active experiment."""


class Exhausted(Error):
    """A limit is reached: of calls at one time, of the disk, or of a quota."""


class Unavailable(Error):
    """No server answers, or it is shutting down."""


class DeadlineExceeded(Error):
    """The server didn't answer in time."""


class DataLoss(Error):
    """Stored data are damaged, or bytes arrived damaged."""


_CLASSES: dict[grpc.StatusCode, type[Error]] = {
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDenied,
    grpc.StatusCode.UNAUTHENTICATED: PermissionDenied,
    grpc.StatusCode.ALREADY_EXISTS: Conflict,
    grpc.StatusCode.FAILED_PRECONDITION: Conflict,
    grpc.StatusCode.ABORTED: Conflict,
    grpc.StatusCode.OUT_OF_RANGE: Conflict,
    grpc.StatusCode.RESOURCE_EXHAUSTED: Exhausted,
    grpc.StatusCode.UNAVAILABLE: Unavailable,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceeded,
    grpc.StatusCode.DATA_LOSS: DataLoss,
}


def from_call(call: grpc.RpcError, server: str, next_step: str) -> Error:
    """Returns the error of a failed call to `server`, as messages name it. `next_step` is advice if
    it doesn't answer."""
    code, message = call.code(), call.details() or ""
    details = _details_of(call)
    if details is None and code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
        # gRPC's own answer: nobody listens, or the server shuts down.
        return Unavailable(f"{server} doesn't answer{next_step} ({message})", retry=True)
    if code == grpc.StatusCode.DEADLINE_EXCEEDED:
        return DeadlineExceeded(f"{server} did not answer in time")
    reason, retry, fields = "", code == grpc.StatusCode.UNAVAILABLE, []
    for detail in details.details if details is not None else ():
        info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
        if detail.Unpack(info):
            reason = info.reason
        elif detail.Unpack(bad):
            fields = [FieldProblem(one.field, one.description) for one in bad.field_violations]
        elif detail.Is(error_details_pb2.RetryInfo.DESCRIPTOR):
            retry = True
    if code == grpc.StatusCode.INVALID_ARGUMENT:
        return InvalidArgument(message, fields, reason)
    return _CLASSES.get(code, Error)(message, reason, retry)


def _details_of(call: grpc.RpcError) -> status_pb2.Status | None:
    """Returns the details of an error; our server sends some with each."""
    for key, value in call.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            return status_pb2.Status.FromString(value)
    return None
