"""Messages from a process to the one that started it, and answers, whatever the function between them does.

The function may write into the pipe, close it, open another file under its number, or fork: a child that it has forked
returns from the function, too. A message therefore begins with a secret, only the started process sends it, and where
the pipe is gone it is left in memory that both processes share. Reading never blocks. A message is sent after the one
before it was answered, except the last one, which needs no answer.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from mmap import mmap
from typing import Any

SECRET = 16  # bytes
NUMBER = 8  # bytes of the message's number, from 1, after the secret
LENGTH = 8  # bytes of its length, after the number
HEAD = SECRET + NUMBER + LENGTH
CHUNK = 2**16  # bytes of one read
MOST_CHUNKS = 256  # of one look at the pipe, into which a function may write for ever; our choice
SHARED = 2**18  # bytes of shared memory, for a message that the pipe cannot take; our choice
ANSWER = NUMBER + 1  # bytes of the last answer after these: the number of its message, and whether to go on
LONGEST = 0.02  # seconds between two looks for an answer, at most; our choice


class ResultSender:
    """The end of the channel in the started process, which calls `open` first. It can be pickled, without memory."""

    def __init__(self, pipe: Any, secret: bytes, memory: mmap | None, answers: Any) -> None:
        self._pipe, self._secret, self._memory, self._answers = pipe, secret, memory, answers
        self._parent, self._process = os.getpid(), 0
        self._sent = 0  # messages
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
        self._sent += 1
        numbers = self._sent.to_bytes(NUMBER, "big") + len(content).to_bytes(LENGTH, "big")
        message = self._secret + numbers + content
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
            self._memory[:SECRET] = bytes(SECRET)  # of the message before
            self._memory[SECRET : len(message)] = message[SECRET:]
            self._memory[:SECRET] = self._secret  # last: then the message is complete

    def answer(self) -> bool:
        """Wait for the answer to the last message: whether to go on. No, if nobody is there to answer."""
        if not self.is_mine:
            return False
        if self._memory is None:
            try:
                return bool(self._answers.recv_bytes() == b"1")
            except (EOFError, OSError):
                return False
        delay = 0.0005
        while os.getppid() == self._parent:
            number, goes_on = self._memory[SHARED : SHARED + NUMBER], self._memory[SHARED + NUMBER]
            if int.from_bytes(number, "big") == self._sent:
                return bool(goes_on)
            time.sleep(delay)
            delay = min(2.0 * delay, LONGEST)
        return False

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
        self._memory = mmap(-1, SHARED + ANSWER) if forks else None
        self._sending = sending
        self._answers: Any = None  # where there is no shared memory
        self._answering: Any = None
        if not forks:
            self._answers, self._answering = context.Pipe(duplex=False)
        self.sender = ResultSender(sending, self._secret, self._memory, self._answers)
        self._taken = 0  # messages
        self.is_open = True  # whether anything can still arrive by the pipe
        self._bytes = bytearray()

    def close_sender(self) -> None:
        """Close this process's copies of the other process's ends, once that has its own."""
        self._sending.close()
        if self._answers is not None:
            self._answers.close()

    @property
    def has_begun(self) -> bool:
        """Whether a part of the message has arrived."""
        return self._bytes.startswith(self._secret)

    def message(self) -> bytes | None:
        """Return the next message; None if it is not complete."""
        self._read()
        content = _content(self._bytes, self._secret)
        if content is None and self._is_in_memory:
            assert self._memory is not None
            content = _content(self._memory[:SHARED], self._secret)
        return content

    @property
    def _is_in_memory(self) -> bool:
        """Whether the shared memory has a message that was not taken yet."""
        if self._memory is None or self._memory[:SECRET] != self._secret:
            return False
        return int.from_bytes(self._memory[SECRET : SECRET + NUMBER], "big") > self._taken

    def take(self) -> None:
        """Take the message that `message` has returned: the next one may follow."""
        self._taken += 1
        if (content := _content(self._bytes, self._secret)) is not None:
            del self._bytes[: HEAD + len(content)]
            self._find_secret()

    def answer(self, *, goes_on: bool) -> None:
        """Answer the message that was taken last."""
        if self._memory is not None:
            self._memory[SHARED + NUMBER] = int(goes_on)
            self._memory[SHARED : SHARED + NUMBER] = self._taken.to_bytes(NUMBER, "big")
            return
        with suppress(OSError):  # it has ended
            self._answering.send_bytes(b"1" if goes_on else b"0")

    def close(self) -> None:
        """Close the pipe and the memory."""
        self.close_sender()
        self.pipe.close()
        if self._memory is not None:
            self._memory.close()
        else:
            self._answering.close()

    def _read(self) -> None:
        """Read what has arrived. Bytes in front of the secret are not ours."""
        for _ in range(MOST_CHUNKS):
            data = self._chunk() if self.is_open else None
            if not data:
                return
            self._bytes += data
            self._find_secret()
            if _content(self._bytes, self._secret) is not None:
                return

    def _find_secret(self) -> None:
        if not self.has_begun:
            place = self._bytes.find(self._secret)
            del self._bytes[: place if place >= 0 else max(0, len(self._bytes) - SECRET + 1)]

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
    """Return the first message without its head; None if it is not complete."""
    if len(received) < HEAD or not received.startswith(secret):
        return None
    length = int.from_bytes(received[SECRET + NUMBER : HEAD], "big")
    return bytes(received[HEAD : HEAD + length]) if len(received) - HEAD >= length else None
