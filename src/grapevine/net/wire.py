"""Messages as frames on a byte stream: four bytes of length, then msgpack `[version, [kind, field, …]]`.

The inner array is a message exactly as msgspec writes it (a tagged, array-like struct), so every system's messages
travel unchanged. The version stands outside, where it can be read whatever it is a version of. Fields may be added at a
message's end with a default: who does not know them ignores them, who misses them takes the default. Any other change
is a new version.

Who breaks these rules is disconnected: the decoder takes nothing more after its first error, and what came in the same
chunk before the bad frame goes with it. Peers live with lost messages.

Memory: a decoder buffers at most one frame. Decoding it makes objects of at most a fixed multiple of its size (about 40
bytes for the one byte of a small number in a tuple of floats): msgspec does not believe the sizes that arrays announce.
"""

from __future__ import annotations

from functools import cache
from struct import Struct
from typing import Any

import msgspec

from grapevine.model.errors import PeerError, UsageError
from grapevine.systems.contracts.peer import Message

VERSION = 2  # 1 had no epochs: events were named by publisher and number
FRAME_LIMIT = 1 << 20  # bytes after the length; ours: a payload of a megabyte is a file, not an event
LENGTH_BYTES = 4

_LENGTH = Struct(">I")
_HEADER = bytes([0x92, VERSION])  # an array of two, of which the first is a small number
_REASON_LIMIT = 200  # characters of what a remote sent that may stand in an error
_encoder = msgspec.msgpack.Encoder()


def encode(message: Message, limit: int = FRAME_LIMIT) -> bytes:
    """The frame of a message; UsageError, which is our own mistake, if no frame of `limit` bytes can hold it."""
    kind = type(message).__name__
    try:
        body = _encoder.encode(message)
    except (TypeError, OverflowError, ValueError) as error:
        raise UsageError(f"a {kind} message holds what no frame can ({error}); fields are those of its class") from None
    size = len(_HEADER) + len(body)
    if size > limit:
        raise UsageError(f"a {kind} message takes {size:,} bytes; frames hold {limit:,}: send less, or raise the limit")
    return b"".join((_LENGTH.pack(size), _HEADER, body))


class Decoder:
    """Takes bytes as they come, in any pieces, and gives the messages that they complete."""

    def __init__(self, messages: Any, limit: int = FRAME_LIMIT) -> None:
        self._decoder = _decoder_of(messages)
        if not len(_HEADER) < limit < 1 << 8 * LENGTH_BYTES:
            raise UsageError(f"a frame limit of {limit:,} bytes cannot be kept; it is from 3 to {2**32 - 1:,}")
        self.limit = limit
        self._buffer = bytearray()  # the beginning of a frame whose rest has not come yet
        self._wanted = LENGTH_BYTES  # bytes that the buffer needs before there is anything to do
        self._failure: str | None = None

    @property
    def buffered(self) -> int:
        """Bytes that wait for the rest of their frame."""
        return len(self._buffer)

    def feed(self, data: bytes | bytearray | memoryview) -> list[Any]:
        """The messages that end in this data; PeerError, now and ever after, if it is no stream of frames."""
        if self._failure is not None:
            raise PeerError(self._failure)
        try:
            return self._messages(data)
        except PeerError as error:
            self._failure = str(error)
            self._buffer = bytearray()
            raise

    def _messages(self, data: bytes | bytearray | memoryview) -> list[Any]:
        messages: list[Any] = []
        with memoryview(data) as view:
            position = 0
            while self._buffer:  # at most two turns: the rest of a length, then the rest of a frame
                taken = view[position : position + self._wanted - len(self._buffer)]
                self._buffer += taken
                position += len(taken)
                if len(self._buffer) < self._wanted:
                    return messages
                if self._wanted == LENGTH_BYTES:
                    self._wanted += self._length(self._buffer, 0)
                else:
                    frame, self._buffer, self._wanted = self._buffer, bytearray(), LENGTH_BYTES
                    messages.append(self._message(memoryview(frame), LENGTH_BYTES, len(frame)))
            while len(view) - position >= LENGTH_BYTES:
                start = position + LENGTH_BYTES
                end = start + self._length(view, position)
                if end > len(view):
                    self._wanted = end - position
                    break
                messages.append(self._message(view, start, end))
                position = end
            self._buffer += view[position:]
        return messages

    def _length(self, data: bytearray | memoryview, position: int) -> int:
        (length,) = _LENGTH.unpack_from(data, position)
        if length > self.limit:
            raise PeerError(f"a frame of {length:,} bytes was announced; the limit is {self.limit:,}")
        if length == 0:
            raise PeerError("an empty frame came; every frame holds a message")
        return int(length)

    def _message(self, data: memoryview, start: int, end: int) -> Any:
        body = start + len(_HEADER)
        if body >= end or data[start] != _HEADER[0]:
            raise PeerError(f"a frame of {end - start:,} bytes came that is not [version, [kind, …]]")
        if data[start + 1] != VERSION:
            raise PeerError(f"a frame of version {data[start + 1]} came; this node speaks version {VERSION}")
        try:
            return self._decoder.decode(data[body:end])
        except msgspec.ValidationError as error:
            what = "of an unknown kind" if str(error).endswith("`$[0]`") else "with wrong fields"
            raise PeerError(f"a message {what} came ({_first_line(error)})") from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise PeerError(f"a frame of {end - start:,} bytes is no message ({_first_line(error)})") from None


@cache
def _decoder_of(messages: Any) -> msgspec.msgpack.Decoder[Any]:
    """One for all connections: making it costs forty microseconds, decoding a message one."""
    try:
        return msgspec.msgpack.Decoder(messages)
    except TypeError as error:
        raise UsageError(f"these messages cannot be told apart on the wire ({_first_line(error)})") from None


def _first_line(error: Exception) -> str:
    line = str(error).split("\n", 1)[0]
    return line if len(line) <= _REASON_LIMIT else f"{line[:_REASON_LIMIT]}…"
