"""The names of workers, and whether their processes are still alive."""

from __future__ import annotations

import os
import socket
import uuid
from contextlib import suppress
from functools import lru_cache
from pathlib import Path


def own_name() -> str:
    """Return the name of this worker, "host:machine:process:start", unique even if a process number is reused."""
    return ":".join([socket.gethostname().replace(":", "-"), _machine(), str(os.getpid()), _started(os.getpid())])


def has_ended(worker: str) -> bool:
    """Whether the worker ran on this machine and its process has ended. False if unknown: its lease decides."""
    parts = worker.split(":")
    if len(parts) != 4 or parts[1] != _machine() or not parts[2].isdigit() or not parts[3]:
        return False
    return _started(int(parts[2])) != parts[3]


@lru_cache
def _machine() -> str:
    """Return an id of this boot and PID namespace, random if unavailable. A container has its own."""
    parts = []
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    return uuid.uuid5(uuid.NAMESPACE_OID, " ".join(parts)).hex[:12] if len(parts) == 2 else uuid.uuid4().hex[:12]


def _started(process: int) -> str:
    """Return when a process started, in clock ticks since boot; empty if it does not exist or is a zombie."""
    try:
        after_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if after_name[0] in ("Z", "X") else after_name[19]
