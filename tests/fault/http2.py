"""HTTP/2 made by hand, so that what no well-behaved client sends can be sent."""
import functools
import socket
import ssl
import struct
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

# Types of frames, flags, and a setting.
DATA, HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
INITIAL_WINDOW_SIZE = 4

HEALTH_CHECK = "/grpc.health.v1.Health/Check"
HEALTH_WATCH = "/grpc.health.v1.Health/Watch"
EMPTY_MESSAGE = b"\0\0\0\0\0"
SERVING = b"\0\0\0\0\x02\x08\x01"
TOKEN = "good"
HOSTILE_TOKEN = "hostile"  # of another user


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def setting(key, value):
    return struct.pack(">HI", key, value)


def integer(value, bits):
    """An HPACK integer whose first byte has so many bits of it, the others 0."""
    limit = (1 << bits) - 1
    if value < limit:
        return bytes([value])
    out = [limit]
    value -= limit
    while value >= 128:
        out.append(value % 128 + 128)
        value //= 128
    return bytes(out + [value])


def literal(name, value, indexed=False):
    """A header with its name spelt out, without Huffman's code; `indexed`: it goes into the dynamic table, too."""
    first = b"\x40" if indexed else b"\0"
    return first + b"".join(integer(len(text), 7) + text.encode() for text in (name, value))


def request_headers(path, token=None):
    fields = [(":method", "POST"), (":scheme", "https"), (":path", path), (":authority", "localhost"),
              ("te", "trailers"), ("content-type", "application/grpc")]
    return fields + ([("authorization", "Bearer " + token)] if token else [])


def request(path, token=None, indexed=False):
    return b"".join(literal(name, value, indexed) for name, value in request_headers(path, token))


@functools.cache
def tls_context():
    """Trusts anybody and offers h2."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    return context


class Connection:
    """To ("ADDRESS", PORT) or the path of a unix socket, up to a stage: "tcp"; "tls", the handshake is done; or "http2", the preface and
    settings are sent. `source` is the address that it comes from."""

    def __init__(self, address, stage="http2", tls=True, settings=b"", source=None, timeout=5):
        if isinstance(address, str):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(timeout)
            self.socket.connect(address)
        else:
            self.socket = socket.create_connection(address, timeout, (source, 0) if source else None)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls and stage != "tcp":
            self.socket = tls_context().wrap_socket(self.socket)
        if stage == "http2":
            self.send(PREFACE + frame(SETTINGS, 0, 0, settings))
        self.received = b""
        self.last_stream = -1

    def send(self, data):
        self.socket.sendall(data)

    def new_stream(self):
        self.last_stream += 2
        return self.last_stream

    def read_frame(self, deadline):
        """(kind, flags, stream, payload); None at the connection's end, TimeoutError at `deadline` (of time.monotonic())."""
        while len(self.received) < 9 or len(self.received) < 9 + int.from_bytes(self.received[:3], "big"):
            self.socket.settimeout(max(deadline - time.monotonic(), 0.0001))
            more = self.socket.recv(1 << 16)
            if not more:
                return None
            self.received += more
        end = 9 + int.from_bytes(self.received[:3], "big")
        head, payload, self.received = self.received[:9], self.received[9:end], self.received[end:]
        return head[3], head[4], int.from_bytes(head[5:], "big") & 0x7FFFFFFF, payload

    def acknowledge(self, kind, flags, payload):
        """What a well-behaved client owes for a frame."""
        if kind in (SETTINGS, PING) and not flags & ACK:
            self.send(frame(kind, ACK, 0, payload if kind == PING else b""))

    def is_served(self, timeout, token=TOKEN):
        """Whether a health check is answered in time."""
        deadline = time.monotonic() + timeout
        stream = self.new_stream()
        self.send(frame(HEADERS, END_HEADERS, stream, request(HEALTH_CHECK, token)) +
                  frame(DATA, END_STREAM, stream, EMPTY_MESSAGE))
        served = False
        while (got := self.read_frame(deadline)) is not None:
            kind, flags, where, payload = got
            self.acknowledge(kind, flags, payload)
            if kind == DATA and payload:
                self.send(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", len(payload))))
            if where == stream:
                served = served or (kind == DATA and payload == SERVING)
                if kind == RST_STREAM or (kind in (HEADERS, DATA) and flags & END_STREAM):
                    return served
        return False

    def discard(self):
        """Throws away what has arrived; ConnectionError if the connection has ended."""
        self.socket.settimeout(0)
        try:
            while self.socket.recv(1 << 20):
                pass
        except (BlockingIOError, ssl.SSLWantReadError):
            return
        raise ConnectionError("the server hung up")

    def close(self):
        self.socket.close()
