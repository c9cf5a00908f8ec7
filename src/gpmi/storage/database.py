"""The database of studies: tables, connections, and one transaction for everything that happens.

SQLite (one file, write-ahead log) or PostgreSQL, through SQLAlchemy. What is committed survives a kill of the process
and a power failure: SQLite runs with synchronous=FULL, PostgreSQL with synchronous_commit=on. Who writes holds the
lock of the file, or of the study's row, from the beginning of the transaction, so no two writers see the same log.
"""

from __future__ import annotations

import logging
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from gpmi._support.checks import shown
from gpmi._support.text import install_command, without_password
from gpmi.storage.errors import Busy, StudyError, Unavailable
from gpmi.storage.fair_lock import queued
from gpmi.storage.tables import Transaction, prepared

try:
    import sqlalchemy as sa
except ImportError as error:  # pragma: no cover
    raise ImportError(f"a study needs SQLAlchemy: {install_command('study')}") from error

Value = TypeVar("Value")
logger = logging.getLogger("gpmi")

SILENT = 2.0  # seconds after which somebody who waits is told why; our choice
BUSY = 10.0  # seconds for which one attempt waits for the lock; there are more attempts, so the value matters little
WAIT = 30.0  # seconds in a queue for the lock, at most: 16 processes that take a second each. Not tuned
# The states of PostgreSQL that pass: connections lost or refused, restarts, deadlocks, locks that are held. By their
# first two characters, except disk full.
PASSING = ("08", "40", "53", "55", "57")


def patiently(
    act: Callable[[], Value],
    patience: float,
    tidy: Callable[[], None] = lambda: None,
    progress: Callable[[], int | None] = lambda: None,
) -> Value:
    """act(), tried again for `patience` seconds while the database does not answer; `tidy()` after each failure.

    While others hold the lock the seconds count from the last `progress()` that they made: on a crowded machine many
    may be served before us, and none of that is an error.
    """
    begin, pause, said, seen = time.monotonic(), 0.01, False, None
    while True:
        try:
            return act()
        except Unavailable as error:
            tidy()
            if isinstance(error, Busy) and patience > 0.0:
                before, seen = seen, progress()
                begin = begin if before in (None, seen) else time.monotonic()
            waited = time.monotonic() - begin
            if waited >= patience:
                raise
            if waited > SILENT and not said:
                logger.warning("%s; it is asked again for %.0f s", error, patience - waited)
                said = True
            time.sleep(pause * random.uniform(0.5, 1.0))  # so that many that wait do not come back together
            pause = min(2.0 * pause, 1.0)
        except BaseException:
            tidy()
            raise


class Database:
    """A database by its address: the path of a file, or a URL such as postgresql://user@host/name."""

    def __init__(self, address: str | os.PathLike[str] | sa.URL) -> None:
        self.url = address if isinstance(address, sa.URL) else _url(address)
        self.is_file = self.url.get_backend_name() == "sqlite"
        self.path = Path((self.url.database or "").removeprefix("file:")).absolute() if self.is_file else None
        self.shown = str(self.path) if self.is_file else self.url.render_as_string(hide_password=True)
        self._process = 0
        self._made = False  # whether the tables were there: a file that is missing afterwards is not made again
        self._connection: sa.Connection | None = None
        self._inode: tuple[int, int] | None = None

    # Connections

    def prepare(self, *, create: bool) -> None:
        """Make the tables if there are none, migrate those of an older version, refuse those of a newer one."""
        if self.path is not None and not self.path.exists() and not create:
            raise StudyError(f"there is no file {self.path}; give the path of a study, or space= to make a new one")
        with self._translated(), self._connected(write=False) as connection, connection.begin():
            done = prepared(connection, create=False)
        if not done:
            with self._translated(), self._connected(write=True) as connection, connection.begin():
                prepared(connection, create=True)
        self._made = True

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """A transaction that holds the lock from its beginning."""
        with (
            queued(self.path, WAIT),
            self._translated(),
            self._connected(write=True) as connection,
            connection.begin(),
        ):
            yield Transaction(connection)
            self._still_there()

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """A transaction that sees one moment and holds nobody up."""
        with self._translated(), self._connected(write=False) as connection, connection.begin():
            yield Transaction(connection)

    def names(self) -> list[str]:
        """The studies that there are; none where there is no file, or nothing of ours in it."""
        if self.path is not None and not self.path.exists():
            return []
        with self._translated(), self._connected(write=False) as connection, connection.begin():
            known = sa.inspect(connection).has_table("gpmi_studies")
            return Transaction(connection).names() if known else []

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and self._process == os.getpid():
            with suppress(sa.exc.SQLAlchemyError):
                connection.close()
            with suppress(sa.exc.SQLAlchemyError):
                connection.engine.dispose()

    @contextmanager
    def _connected(self, *, write: bool) -> Iterator[sa.Connection]:
        """The connection of this process; what a parent process has opened, or a file that was replaced, is left."""
        if self._process != os.getpid():
            self._connection, self._process = None, os.getpid()
        if self._connection is not None and not self._is_there():
            self.close()
        if self._connection is None:
            self._connection = self._connect()
        self._connection.info["write"] = write
        yield self._connection

    def _connect(self) -> sa.Connection:
        if self.path is not None and self._made and not self.path.exists():
            raise Unavailable(f"the file {self.path} is gone; put it back, or open another study")
        engine = _engine(self.url)
        connection = engine.connect()
        if self.path is not None and self.path.exists():
            self._inode = _inode(self.path)
        return connection

    def _still_there(self) -> None:
        """Refuse to commit to a file that was removed or replaced: nobody would find it again."""
        if not self._is_there():
            raise Unavailable(f"the file {self.path} was removed or replaced; put it back, or open another study")

    def _is_there(self) -> bool:
        """Whether the file is the one that is open."""
        try:
            return self.path is None or _inode(self.path) == self._inode
        except OSError:
            return False

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Errors of the database become a StudyError; the next transaction then begins with a new connection."""
        try:
            yield
        except StudyError:
            self.close()
            raise
        except sa.exc.DBAPIError as error:
            self.close()
            raise _in_words(error, self.shown, self.is_file) from error
        except sa.exc.SQLAlchemyError as error:
            self.close()
            raise StudyError(f"the database {self.shown} cannot be used: {_short(error)}") from error


def _url(address: Any) -> sa.URL:
    if not isinstance(address, str | os.PathLike) or not os.fspath(address):
        raise TypeError(f"the address of a study is {shown(address)}; give the path of a file, or a database URL")
    text = os.fspath(address)
    if ":memory:" in text:
        raise ValueError("a study in memory would be lost with its process; give the path of a file")
    if "://" not in text:
        return sa.URL.create("sqlite", database=text)
    try:
        url = sa.make_url(text)
    except (sa.exc.ArgumentError, ValueError):
        raise ValueError(
            f"the address of a study is {without_password(text)!r}; give a path, or postgresql://user:password@host/name"
        ) from None
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise ValueError(
            f"the address of a study is {without_password(text)!r}; SQLite and PostgreSQL are known, no other database"
        )
    if url.get_backend_name() == "sqlite" and not url.database:
        raise ValueError("a study in memory would be lost with its process; give the path of a file")
    return url


def _engine(url: sa.URL) -> sa.Engine:
    if url.get_backend_name() == "sqlite":
        options: dict[str, Any] = {"timeout": BUSY, "check_same_thread": False}
    else:
        # A server that vanished without a word is noticed after half a minute.
        options = {"connect_timeout": 10, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 4}
    try:
        engine = sa.create_engine(url, connect_args=options, poolclass=sa.pool.NullPool)
    except ImportError as error:
        raise ImportError(f"{error}; install the driver: {install_command('postgres')}") from error
    if url.get_backend_name() == "sqlite":
        sa.event.listen(engine, "connect", _set_up_file)
        sa.event.listen(engine, "begin", _begin_file)
    else:
        sa.event.listen(engine, "connect", _set_up_server)
    return engine


def _set_up_file(connection: Any, record: Any) -> None:
    connection.isolation_level = None  # transactions begin where we say so
    cursor = connection.cursor()
    with suppress(Exception):  # a file that cannot be written to stays in the mode in which it is
        cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.close()


def _begin_file(connection: sa.Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.info.get("write") else "BEGIN")


def _set_up_server(connection: Any, record: Any) -> None:
    connection.execute("SET synchronous_commit TO on")
    connection.execute(f"SET lock_timeout TO {int(1000 * WAIT)}")  # who tries again is the last in the queue
    connection.commit()


def _inode(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


def _short(error: BaseException) -> str:
    """What the database itself says, on one line."""
    original = getattr(error, "orig", None) or error
    return " ".join(str(original).split())[:300]


def _in_words(error: sa.exc.DBAPIError, where: str, is_file: bool) -> StudyError:
    said = _short(error)
    if not is_file:
        return _server_in_words(error, where, said)
    low = said.lower()
    if "locked" in low or "busy" in low:
        return Busy(f"another process holds the lock of {where}; wait until it has finished")
    if "readonly" in low or "read-only" in low:
        return StudyError(f"{where} cannot be written to; allow writing to the file and its folder, or use a copy")
    if "disk is full" in low:
        return StudyError(f"the disk of {where} is full; free some space, then go on: nothing was half-written")
    if "not a database" in low or "malformed" in low:
        return StudyError(f"{where} is damaged, or no SQLite file ({said}); use a copy that is whole, or another path")
    if "unable to open" in low:
        return StudyError(f"{where} cannot be opened; check that its folder exists and that you may write to it")
    return StudyError(f"{where} cannot be used: {said}")


def _server_in_words(error: sa.exc.DBAPIError, where: str, said: str) -> StudyError:
    state = getattr(error.orig, "sqlstate", None) or ""
    if state == "53100":
        return StudyError(f"the disk of the server of {where} is full; free some space, then go on")
    if state.startswith(("28", "3D")):  # the password or the database does not exist
        return StudyError(f"the server of {where} refuses: {said}")
    if state in ("25006", "42501"):
        return StudyError(f"{where} cannot be written to: {said}; ask for the right to write")
    if state == "55P03":  # lock_timeout
        return Busy(f"another process holds the lock of the study in {where}; wait until it has finished")
    gone = error.connection_invalidated or isinstance(error, sa.exc.OperationalError | sa.exc.InterfaceError)
    if state.startswith(PASSING) or (not state and gone):
        return Unavailable(f"the server of {where} does not answer: {said}")
    return StudyError(f"{where} cannot be used: {said}")
