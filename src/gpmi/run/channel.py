"""One message from a process to the one that started it, whatever the function between them does.

The function may write into the pipe, close it, open another file under its number, or fork: a child that it has forked
returns from the function, too. The message therefore begins with a secret, only the started process sends it, and where
the pipe is gone it is left in memory that both processes share. Reading never blocks.
"""

from __future__ import annotations

import os
from mmap import mmap
from typing import Any

SECRET = 16  # bytes
LENGTH = 8  # bytes of the message's length, after the secret
CHUNK = 2**16  # bytes of one read
MOST_CHUNKS = 256  # of one look at the pipe, into which a function may write for ever; our choice
SHARED = 2**18  # bytes of shared memory, for a message that the pipe cannot take; our choice


class ResultSender:
    """The end of the channel in the started process, which calls `open` first. It can be pickled, without memory."""

    def __init__(self, pipe: Any, secret: bytes, memory: mmap | None) -> None:
        self._pipe, self._secret, self._memory = pipe, secret, memory
        self._process = 0
        self._file: tuple[int, int] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_memory": None}

    def open(self) -> None:
        """Note which process may send, and which file its pipe is."""
        self._process, self._file = os.getpid(), self._opened_file()

    @property
    def is_mine(self) -> bool:
        """Whether this is the started process, not one that it has forked."""
        return os.getpid() == self._process

    def send(self, content: bytes) -> None:
        """Send the message. In a process that the started one has forked this does nothing."""
        if not self.is_mine:
            return
        message = self._secret + len(content).to_bytes(LENGTH, "big") + content
        try:
            if os.name != "posix":
                self._pipe.send_bytes(message)
                return
            if self._opened_file() != self._file:
                raise OSError("the pipe was closed by f")
            rest = memoryview(message)
            while rest:
                rest = rest[os.write(self._pipe.fileno(), rest) :]
        except OSError:
            if self._memory is None or len(message) > SHARED:
                raise
            self._memory[SECRET : len(message)] = message[SECRET:]
            self._memory[:SECRET] = self._secret  # last: then the message is complete

    def _opened_file(self) -> tuple[int, int] | None:
        """What the number of the pipe stands for now: f may have closed it and opened another file."""
        if os.name != "posix":
            return None
        status = os.fstat(self._pipe.fileno())
        return status.st_dev, status.st_ino


class ResultChannel:
    """The end of the channel in the process that starts another one. `sender` is for that one."""

    def __init__(self, context: Any, *, forks: bool) -> None:
        self.pipe, sending = context.Pipe(duplex=False)
        if os.name == "posix":
            os.set_blocking(self.pipe.fileno(), False)
        self._secret = os.urandom(SECRET)
        self._memory = mmap(-1, SHARED) if forks else None
        self._sending = sending
        self.sender = ResultSender(sending, self._secret, self._memory)
        self.is_open = True  # whether anything can still arrive by the pipe
        self._bytes = bytearray()

    def close_sender(self) -> None:
        """Close this process's copy of the sending end, once the other process has its own."""
        self._sending.close()

    @property
    def has_begun(self) -> bool:
        """Whether a part of the message has arrived."""
        return self._bytes.startswith(self._secret)

    def message(self) -> bytes | None:
        """Return the message; None if it is not complete."""
        self._read()
        content = _content(self._bytes, self._secret)
        if content is None and self._memory is not None and self._memory[:SECRET] == self._secret:
            content = _content(self._memory[:], self._secret)
        return content

    def close(self) -> None:
        """Close the pipe and the memory."""
        self._sending.close()
        self.pipe.close()
        if self._memory is not None:
            self._memory.close()

    def _read(self) -> None:
        """Read what has arrived. Bytes in front of the secret are not ours."""
        for _ in range(MOST_CHUNKS):
            data = self._chunk() if self.is_open else None
            if not data:
                return
            self._bytes += data
            if not self.has_begun:
                place = self._bytes.find(self._secret)
                del self._bytes[: place if place >= 0 else max(0, len(self._bytes) - SECRET + 1)]
            if _content(self._bytes, self._secret) is not None:
                return

    def _chunk(self) -> bytes | None:
        """Return the next bytes; None if there are none now."""
        data: bytes | None
        try:
            if os.name == "posix":
                data = os.read(self.pipe.fileno(), CHUNK)
            else:
                data = self.pipe.recv_bytes() if self.pipe.poll(0) else None
        except BlockingIOError:
            return None
        except (EOFError, OSError):
            data = b""
        self.is_open = data != b""
        return data


def _content(received: bytes | bytearray, secret: bytes) -> bytes | None:
    """Return the message without its secret and length; None if it is not complete."""
    begin = SECRET + LENGTH
    if len(received) < begin or not received.startswith(secret):
        return None
    length = int.from_bytes(received[SECRET:begin], "big")
    return bytes(received[begin : begin + length]) if len(received) - begin >= length else None
