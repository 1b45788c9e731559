"""Calls the server's methods: deadlines, retries, lists page by page, streams, and typed errors."""
from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from ablate import errors
from ablate._address import Address

Response = TypeVar("Response", bound=Message)

LONG = 300.0  # seconds, for calls that expand or compare a large grid
_SHORT = 30.0
_RETRY_DELAYS = (0.1, 0.4)
_AT_ONE_TIME = 8  # calls; the server answers a user by 6 threads
_MAX_MESSAGE = 128 << 20  # a response with 100,000 cells takes some 20 MB
_MAX_TIME_AWAY = 60.0  # of a server, while a watch waits for it
_LIVE_WATCH = 30.0  # a watch that lasts so long had a server


def release() -> str:
    """Returns the installed release of this package, such as 0.2.0; empty if it isn't installed."""
    try:
        return metadata.version("ablate")
    except metadata.PackageNotFoundError:
        return ""


class Connection:
    """A channel to one server. It connects with the first call. Thread-safe."""

    def __init__(self, address: Address) -> None:
        self.address = address
        options: list[tuple[str, Any]] = [
            ("grpc.max_receive_message_length", _MAX_MESSAGE),
            ("grpc.max_send_message_length", _MAX_MESSAGE),
            # A server that restarts is back within a second: look often.
            ("grpc.initial_reconnect_backoff_ms", 50),
            ("grpc.max_reconnect_backoff_ms", 500),
            ("grpc.enable_http_proxy", 0),
        ]
        self._metadata: list[tuple[str, str]] = []
        if release():
            self._metadata.append(("ablate-release", release()))
        if address.authority:
            host = address.target.rpartition(":")[0].strip("[]")
            if address.server_name != host:
                options.append(("grpc.ssl_target_name_override", address.server_name))
            # Notices a network that is gone while a watch waits for the next change.
            options += [("grpc.keepalive_time_ms", 30_000), ("grpc.keepalive_timeout_ms", 20_000),
                        ("grpc.http2.max_pings_without_data", 0)]
            credentials = grpc.ssl_channel_credentials(address.authority.encode())
            self._channel = grpc.secure_channel(address.target, credentials, options)
            self._metadata.append(("authorization", f"Bearer {address.token}"))
        else:
            self._channel = grpc.insecure_channel(address.target, options)

    def close(self) -> None:
        self._channel.close()

    def call(self, method: str, request: Message, response: type[Response], *,
             timeout: float = _SHORT, repeat: bool = True) -> Response:
        """Makes a unary call, such as Runs/GetRun. Repeats it while no server answers, unless it
        changes something each time."""
        unary = self._channel.unary_unary(
            f"/ablate.v1.{method}", request_serializer=type(request).SerializeToString,
            response_deserializer=response.FromString)
        delays = list(_RETRY_DELAYS) if repeat else []
        while True:
            try:
                result: Response = unary(request, timeout=timeout, metadata=self._metadata)
                return result
            except grpc.RpcError as failure:
                error = self._error(failure)
                if not delays or not isinstance(error, errors.Unavailable):
                    raise error from None
                time.sleep(delays.pop(0))

    def call_all(self, method: str, requests: Iterable[Message],
                 response: type[Response]) -> list[Response]:
        """Makes unary calls, some at one time; returns the responses in order."""
        with ThreadPoolExecutor(_AT_ONE_TIME) as threads:
            return list(threads.map(lambda request: self.call(method, request, response), requests))

    def pages(self, method: str, request: Any, response: type[Response]) -> Iterator[Response]:
        """Yields all pages of a list."""
        while True:
            page: Any = self.call(method, request, response)
            yield page
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def stream(self, method: str, request: Message, response: type[Response]) -> Iterator[Response]:
        """Yields the messages of a stream. Leaving the loop ends the call."""
        call = self._channel.unary_stream(
            f"/ablate.v1.{method}", request_serializer=type(request).SerializeToString,
            response_deserializer=response.FromString)(request, metadata=self._metadata)
        try:
            yield from call
        except grpc.RpcError as failure:
            raise self._error(failure) from None
        finally:
            call.cancel()

    def send(self, method: str, requests: Iterator[Message], response: type[Response]) -> Response:
        """Sends a stream of messages of one type; returns the answer."""
        try:
            result: Response = self._channel.stream_unary(
                f"/ablate.v1.{method}",
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=response.FromString)(requests, metadata=self._metadata)
            return result
        except grpc.RpcError as failure:
            raise self._error(failure) from None

    def keep_watching(self, watch: Callable[[], Iterator[Response]]) -> Iterator[Response]:
        """Yields the messages of watches until one ends without an error. A server that is away,
        or has no room for a watch, gets a minute from when it was missed."""
        lost = None
        while True:
            began = time.monotonic()
            try:
                for message in watch():
                    lost = None
                    yield message
                return
            except (errors.Unavailable, errors.Exhausted):
                now = time.monotonic()
                if lost is None or now - began >= _LIVE_WATCH:
                    lost = now
                if now - lost >= _MAX_TIME_AWAY:
                    raise
                time.sleep(0.2)

    def download(self, method: str, request: Any, response: type[Response],
                 sha256: str) -> bytearray:
        """Returns a file that the server sends in chunks with `data`. A stream that breaks is
        continued as long as tries bring bytes. `request` has an `offset`."""
        data = bytearray()
        while True:
            request.offset = len(data)
            try:
                for chunk in self.stream(method, request, response):
                    data += chunk.data  # type: ignore[attr-defined]
                break
            except errors.Unavailable:
                if len(data) == request.offset:
                    raise
        if hashlib.sha256(data).hexdigest() != sha256:
            raise errors.DataLoss(f"{request.name}: the bytes that arrived have another SHA-256")
        return data

    def _error(self, failure: grpc.RpcError) -> errors.Error:
        return errors.from_call(failure, str(self.address), self.address.next_step)
