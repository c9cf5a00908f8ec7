"""The database of studies: its connection, its transactions, and retries while it is unreachable.

SQLite (one file, write-ahead log) or PostgreSQL, through SQLAlchemy. A committed entry survives a kill of the process
and a power failure: SQLite runs with synchronous=FULL, PostgreSQL with synchronous_commit=on. A writer holds the lock
of the file, or of the study's row, from the beginning of its transaction, so no two writers see the same log.
"""

from __future__ import annotations

import os
import random
import sqlite3
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from gpmi._support.checks import shown
from gpmi._support.interrupts import uninterrupted
from gpmi._support.logger import warn_user
from gpmi._support.study_files import protect, release
from gpmi._support.text import install_command, without_password
from gpmi.storage.errors import Busy, StudyError, Unavailable
from gpmi.storage.fair_lock import fair_lock
from gpmi.storage.tables import Transaction, prepare_tables

try:
    import sqlalchemy as sa
except ImportError as error:  # pragma: no cover
    raise ImportError(f"a study needs SQLAlchemy: {install_command('study')}") from error

Value = TypeVar("Value")

SILENT = 2.0  # seconds of retries after which the user hears why; our choice
CONNECT_TIMEOUT = 3  # seconds for a server to answer; with SILENT, the user hears of it within five. Our choice
BUSY = 10.0  # seconds for which one attempt waits for the lock; there are more attempts, so the value matters little
WAIT = 30.0  # seconds in the queue for the lock, at most: 16 processes that take a second each. Not tuned
# SQLSTATE classes of transient PostgreSQL errors: lost or refused connections, restarts, deadlocks, held locks. A full
# disk is excepted.
PASSING = ("08", "40", "53", "55", "57")


def retried(
    act: Callable[[], Value],
    patience: float,
    roll_back: Callable[[], None] = lambda: None,
    progress: Callable[[], int | None] = lambda: None,
    sleep: Callable[[float], object] | None = None,
) -> Value:
    """Return act(), retried for `patience` seconds while the database is unreachable; `roll_back()` on each failure.

    Under lock contention the timeout restarts whenever `progress()` changes: a long queue is not an error.
    """
    begin, pause, warned, seen = time.monotonic(), 0.01, False, None
    while True:
        try:
            return act()
        except Unavailable as error:
            roll_back()
            if isinstance(error, Busy) and patience > 0.0:
                before, seen = seen, progress()
                begin = begin if before in (None, seen) else time.monotonic()
            waited = time.monotonic() - begin
            if waited >= patience:
                raise
            if waited > SILENT and not warned:
                warn_user("%s; retrying for %.0f s", error, patience - waited)
                warned = True
            (sleep or time.sleep)(
                pause * random.uniform(0.5, 1.0)
            )  # so that many waiting processes do not retry together
            pause = min(2.0 * pause, 1.0)
        except BaseException:
            roll_back()
            raise


class Database:
    """A database by its address: the path of a file, or a URL such as postgresql://user@host/name."""

    def __init__(self, address: str | os.PathLike[str] | sa.URL) -> None:
        self.url = address if isinstance(address, sa.URL) else _url(address)
        self.is_file = self.url.get_backend_name() == "sqlite"
        self.path = _path(self.url.database or "") if self.is_file else None
        self.shown = str(self.path) if self.is_file else self.url.render_as_string(hide_password=True)
        self._process = 0
        self._prepared = False  # whether the tables exist: a file that vanishes afterwards is not created again
        self._connection: sa.Connection | None = None
        self._inode: tuple[int, int] | None = None

    # Connections

    def prepare(self, *, create: bool) -> None:
        """Create missing tables, migrate those of an older version, refuse those of a newer one."""
        if self.path is not None and not self.path.exists() and not create:
            raise StudyError(f"there is no file {self.path}; give the path of a study, or space= to make a new one")
        with self._translated(), self._connected(write=False) as connection, connection.begin():
            self._check_file(Transaction(connection))
            done = prepare_tables(connection, create=False)
        if not done:
            with self._translated(), self._connected(write=True) as connection, connection.begin():
                prepare_tables(connection, create=True)
        self._prepared = True

    def _check_file(self, transaction: Transaction) -> None:
        """Refuse a damaged file. A damaged index hides rows without a word, and the log would end too early.

        It takes a fiftieth of the time in which the log is replayed.
        """
        damage = transaction.damage(most=1)
        if damage:
            raise StudyError(
                f"{self.shown} is damaged ({_one_line(damage[0])}); use an intact copy, or repair a copy with a "
                "database tool"
            )

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """Open a transaction that holds the lock from its beginning. Ctrl-C acts after it."""
        with (
            uninterrupted(),
            fair_lock(self.path, WAIT),
            self._translated(),
            self._connected(write=True) as connection,
            connection.begin(),
        ):
            yield Transaction(connection)
            self._still_there()

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Open a transaction that sees one moment and blocks nobody."""
        with self._translated(), self._connected(write=False) as connection, connection.begin():
            yield Transaction(connection)

    def write_back(self) -> bool:
        """Copy the write-ahead log of SQLite into the file, so that a copy of the file alone has everything.

        It never waits and never raises. It uses a connection of its own, because another one may be in a transaction.
        Return whether everything is in the file: a process that reads an older snapshot delays it. There is nothing to
        do for a database server, or if the file is gone.
        """
        if self.path is None or not self.path.exists():
            return True
        try:
            with _engine(self.url).connect() as connection:
                driver: Any = connection.connection.driver_connection
                busy, length, copied = driver.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except (sa.exc.SQLAlchemyError, OSError, sqlite3.Error):  # a file that may only be read, or a full disk
            return False
        return not busy and length == copied

    def names(self) -> list[str]:
        """Return the names of all studies; none without a file, or without our tables in it."""
        if self.path is not None and not self.path.exists():
            return []
        with self._translated(), self._connected(write=False) as connection, connection.begin():
            exists = sa.inspect(connection).has_table("gpmi_studies")
            return Transaction(connection).names() if exists else []

    def close(self) -> None:
        connection, self._connection = self._connection, None
        release(self)
        if connection is not None and self._process == os.getpid():
            with suppress(sa.exc.SQLAlchemyError):
                connection.close()
            with suppress(sa.exc.SQLAlchemyError):
                connection.engine.dispose()

    @contextmanager
    def _connected(self, *, write: bool) -> Iterator[sa.Connection]:
        """Yield the connection of this process; drop that of a parent process or to a file that was replaced."""
        if self._process != os.getpid():
            self._connection, self._process = None, os.getpid()
        if self._connection is not None and not self._is_there():
            self.close()
        if self._connection is None:
            self._connection = self._connect()
        self._connection.info["write"] = write
        yield self._connection

    def _connect(self) -> sa.Connection:
        if self.path is not None and self._prepared and not self.path.exists():
            raise Unavailable(f"the file {self.path} is gone; put it back, or open another study")
        engine = _engine(self.url)
        connection = engine.connect()
        if self.path is not None and self.path.exists():
            self._inode = _inode(self.path)
            protect(self, self.path)
        return connection

    def _still_there(self) -> None:
        """Refuse to commit to a file that was removed or replaced: the entry would be lost with it."""
        if not self._is_there():
            raise Unavailable(f"the file {self.path} was removed or replaced; put it back, or open another study")

    def _is_there(self) -> bool:
        """Whether the path still leads to the open file."""
        try:
            return self.path is None or _inode(self.path) == self._inode
        except OSError:
            return False

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn errors of the database into a StudyError; the next transaction then begins with a new connection.

        So it does after Ctrl-C, which may have interrupted the database's own library anywhere.
        """
        try:
            yield
        except (StudyError, KeyboardInterrupt, SystemExit):
            self.close()
            raise
        except sa.exc.DBAPIError as error:
            self.close()
            raise _translate(error, self.shown, self.is_file) from error
        except sa.exc.SQLAlchemyError as error:
            self.close()
            raise StudyError(f"the database {self.shown} cannot be used: {_short(error)}") from error
        except UnicodeDecodeError as error:  # a message of SQLite that quotes a damaged name
            self.close()
            message = _one_line(error.object.decode(errors="replace"))
            raise StudyError(f"{self.shown} is damaged ({message}); use an intact copy, or another path") from error


def _url(address: Any) -> sa.URL:
    if not isinstance(address, str | os.PathLike) or not os.fspath(address):
        raise TypeError(f"the address of a study is {shown(address)}; give the path of a file, or a database URL")
    text = os.fspath(address)
    if ":memory:" in text:
        raise ValueError("a study in memory would be lost with its process; give the path of a file")
    if text.startswith("file:"):
        return _file_url(text, {})
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
            f"the address of a study is {without_password(text)!r}; only SQLite and PostgreSQL are supported"
        )
    if url.get_backend_name() == "sqlite" and not url.database:
        raise ValueError("a study in memory would be lost with its process; give the path of a file")
    if url.get_backend_name() == "sqlite" and (url.database or "").startswith("file:"):
        return _file_url(url.database or "", url.query)
    return url


def _file_url(text: str, query: Mapping[str, Any]) -> sa.URL:
    """Return the URL of a file that is given as SQLite's own kind of address, such as file:x.db?mode=ro."""
    parts = urllib.parse.urlsplit(text)
    path = urllib.parse.unquote(parts.path)
    options = {**dict(urllib.parse.parse_qsl(parts.query)), **query}
    if parts.netloc not in ("", "localhost") or not path or parts.fragment or options.get("mode") == "memory":
        raise ValueError(f"the address of a study is {without_password(text)!r}; give the path of a file")
    if not options.keys() - {"uri"}:
        return sa.URL.create("sqlite", database=path)
    return sa.URL.create("sqlite", database=f"file:{urllib.parse.quote(path)}", query={**options, "uri": "true"})


def _engine(url: sa.URL) -> sa.Engine:
    if url.get_backend_name() == "sqlite":
        options: dict[str, Any] = {"timeout": BUSY, "check_same_thread": False}
    else:
        # A server that does not answer is reported within five seconds (`retried` tries again), one that vanished
        # silently is noticed after half a minute.
        options = {
            "connect_timeout": CONNECT_TIMEOUT,
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 4,
        }
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
    connection.isolation_level = None  # `_begin_file` begins transactions
    connection.text_factory = _text
    cursor = connection.cursor()
    with suppress(Exception):  # a file that cannot be written to keeps its mode
        cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.close()


def _text(stored: bytes) -> str | bytes:
    """Return a text of SQLite; bytes that are not UTF-8 stay bytes, and `gpmi.storage.tables` names their row."""
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return stored


def _begin_file(connection: sa.Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.info.get("write") else "BEGIN")


def _set_up_server(connection: Any, record: Any) -> None:
    connection.execute("SET synchronous_commit TO on")
    connection.execute(f"SET lock_timeout TO {int(1000 * WAIT)}")  # a retry goes to the end of the queue
    connection.commit()


def _path(database: str) -> Path:
    """Return the path of an SQLite file; `_file_url` quotes that of an address with options."""
    is_quoted = database.startswith("file:")
    return Path(urllib.parse.unquote(database.removeprefix("file:")) if is_quoted else database).absolute()


def _inode(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


def _short(error: BaseException) -> str:
    """Return the message of the database itself, on one line."""
    return _one_line(str(getattr(error, "orig", None) or error))


def _one_line(message: str) -> str:
    return " ".join(message.split())[:300]


def _translate(error: sa.exc.DBAPIError, where: str, is_file: bool) -> StudyError:
    """Return the StudyError for an error of the database at `where`."""
    message = _short(error)
    if not is_file:
        return _translate_server(error, where, message)
    low = message.lower()
    if "locked" in low or "busy" in low:
        return Busy(f"another process holds the lock of {where}; wait until it has finished")
    if "readonly" in low or "read-only" in low:
        return StudyError(f"{where} cannot be written to; allow writing to the file and its folder, or use a copy")
    if "disk is full" in low:
        return StudyError(f"the disk of {where} is full; free some space, then continue: nothing was half-written")
    if "not a database" in low or "malformed" in low:
        return StudyError(f"{where} is damaged, or no SQLite file ({message}); use an intact copy, or another path")
    if "unable to open" in low:
        return StudyError(f"{where} cannot be opened; check that its folder exists and that you may write to it")
    return StudyError(f"{where} cannot be used: {message}")


def _translate_server(error: sa.exc.DBAPIError, where: str, message: str) -> StudyError:
    state = getattr(error.orig, "sqlstate", None) or ""
    if state == "53100":
        return StudyError(f"the disk of the server of {where} is full; free some space, then continue")
    if state.startswith(("28", "3D")):  # the password or the database does not exist
        return StudyError(f"the server of {where} refuses: {message}")
    if state in ("25006", "42501"):
        return StudyError(f"{where} cannot be written to: {message}; ask for permission to write")
    if state == "55P03":  # lock_timeout
        return Busy(f"another process holds the lock of the study in {where}; wait until it has finished")
    gone = error.connection_invalidated or isinstance(error, sa.exc.OperationalError | sa.exc.InterfaceError)
    if state.startswith(PASSING) or (not state and gone):
        return Unavailable(f"the server of {where} is unreachable: {message}")
    return StudyError(f"{where} cannot be used: {message}")
