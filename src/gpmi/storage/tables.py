"""The tables of studies, and the statements of one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gpmi._support.checks import shown
from gpmi._support.text import install_command
from gpmi.storage.entries import StoredEntry
from gpmi.storage.errors import StudyError

try:
    import sqlalchemy as sa
except ImportError as error:  # pragma: no cover
    raise ImportError(f"a study needs SQLAlchemy: {install_command('study')}") from error

SCHEMA = 2  # version 1 had no tokens and no leases
NEVER = 1e18  # the end of a lease without end, in seconds since 1970

_tables = sa.MetaData()
_schema = sa.Table("gpmi_schema", _tables, sa.Column("version", sa.Integer, nullable=False))
_studies = sa.Table(
    "gpmi_studies",
    _tables,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("description", sa.Text, nullable=False),
)
_events = sa.Table(
    "gpmi_events",
    _tables,
    sa.Column("study", sa.Integer, sa.ForeignKey("gpmi_studies.id"), primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("time", sa.Double, nullable=False),
    sa.Column("worker", sa.Text, nullable=False),
    sa.Column("checksum", sa.Text, nullable=False),
    sa.Column("token", sa.Text),
    sa.Index("gpmi_events_token", "study", "token", unique=True),
)
# Which worker evaluates which trial until when. Not part of the log: renewals would fill it, and no suggestion depends
# on them.
_leases = sa.Table(
    "gpmi_leases",
    _tables,
    sa.Column("study", sa.Integer, sa.ForeignKey("gpmi_studies.id"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("granted", sa.Integer, nullable=False),  # the entry that handed it out
    sa.Column("worker", sa.Text, nullable=False),
    sa.Column("until", sa.Double, nullable=False),
)

_COLUMNS = [_events.c[name] for name in ("seq", "kind", "body", "time", "worker", "token", "checksum")]
_SINCE = sa.select(*_COLUMNS).where(_events.c.study == sa.bindparam("s"), _events.c.seq > sa.bindparam("after"))
_SINCE = _SINCE.order_by(_events.c.seq)
_BY_TOKEN = sa.select(*_COLUMNS).where(_events.c.study == sa.bindparam("s"), _events.c.token == sa.bindparam("token"))
_MINE = (_leases.c.study == sa.bindparam("s"), _leases.c.number == sa.bindparam("n"))


class StoredStudy(NamedTuple):
    """A row of the table of studies."""

    number: int
    description: str  # JSON
    first: StoredEntry | None  # which has the description, too; None if it is missing

    @property
    def identity(self) -> str:
        """The checksum of the first entry, unique to the study."""
        return "" if self.first is None else self.first.checksum


class Lease(NamedTuple):
    """The lease of a trial that was handed out."""

    number: int
    granted: int  # the entry of the log that handed it out
    worker: str
    until: float  # by the clock of the database

    @property
    def expires(self) -> bool:
        """Whether it ends unless the worker renews it; the leases of trials that people evaluate never do."""
        return self.until < NEVER


class Transaction:
    """The operations inside a transaction; each is one statement."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        self._server = connection.dialect.name == "postgresql"

    def now(self) -> float:
        """Return the time by the clock of the database, in seconds since 1970."""
        clock = "extract(epoch from clock_timestamp())" if self._server else "(julianday('now') - 2440587.5) * 86400.0"
        return float(self._connection.exec_driver_sql(f"SELECT {clock}").scalar_one())

    # Studies

    def names(self) -> list[str]:
        rows = self._connection.execute(sa.select(_studies.c.id, _studies.c.name).order_by(_studies.c.name))
        return [str(_checked("gpmi_studies", i, "name", name, str)) for i, name in rows]

    def find(self, name: str) -> StoredStudy | None:
        """Return the study with this name; None if there is none."""
        first = sa.and_(_events.c.study == _studies.c.id, _events.c.seq == 0)
        columns = (_studies.c.id, _studies.c.description, *_COLUMNS)
        query = sa.select(*columns).select_from(_studies.outerjoin(_events, first)).where(_studies.c.name == name)
        row = self._connection.execute(query).one_or_none()
        if row is None:
            return None
        description = _checked("gpmi_studies", row[0], "description", row[1], str)
        return StoredStudy(row[0], description, None if row[2] is None else _entry(row[2:]))

    def lock_all(self) -> None:
        """Keep other processes from creating a study until the transaction ends."""
        if self._server:
            self._connection.exec_driver_sql("LOCK TABLE gpmi_studies IN EXCLUSIVE MODE")

    def create(self, name: str, description: str) -> int:
        result = self._connection.execute(sa.insert(_studies).values(name=name, description=description))
        return int((result.inserted_primary_key or (0,))[0])

    def lock(self, study: int) -> None:
        """Keep others from writing to the study until the transaction ends; a file is locked as a whole already."""
        if self._server:
            self._connection.execute(sa.select(_studies.c.id).where(_studies.c.id == study).with_for_update())

    # The log

    def entries(self, study: int, after: int = -1) -> Sequence[StoredEntry]:
        """Return the entries with a number above `after`, in order."""
        return [_entry(row) for row in self._connection.execute(_SINCE, {"s": study, "after": after})]

    def length(self, study: int) -> int:
        """Return the number of entries."""
        last = self._connection.scalar(sa.select(sa.func.max(_events.c.seq)).where(_events.c.study == study))
        return 0 if last is None else int(last) + 1

    def entry_by_token(self, study: int, token: str) -> StoredEntry | None:
        """Return the entry with this token; None if there is none."""
        row = self._connection.execute(_BY_TOKEN, {"s": study, "token": token}).one_or_none()
        return None if row is None else _entry(row)

    def append(self, study: int, entry: StoredEntry) -> None:
        self._connection.execute(
            sa.insert(_events),
            {
                **{"study": study, "seq": entry.seq, "kind": entry.kind, "body": entry.body, "time": entry.time},
                **{"worker": entry.worker, "token": entry.token or None, "checksum": entry.checksum},
            },
        )

    # Leases

    def leases(self, study: int) -> list[Lease]:
        columns = [_leases.c[name] for name in Lease._fields]
        rows = self._connection.execute(sa.select(*columns).where(_leases.c.study == study).order_by(_leases.c.number))
        return [Lease(*_row("gpmi_leases", _LEASE, row)) for row in rows]

    def lease(self, study: int, lease: Lease) -> None:
        """Set the lease of a trial, in place of an earlier one."""
        self.release(study, lease.number)
        self._connection.execute(sa.insert(_leases), {"study": study, **lease._asdict()})

    def renew(self, study: int, number: int, granted: int, until: float) -> None:
        """Move the end of a lease, unless the trial was handed to another worker since."""
        mine = sa.update(_leases).where(*_MINE, _leases.c.granted == sa.bindparam("g"))
        self._connection.execute(
            mine.values(until=sa.bindparam("u")), {"s": study, "n": number, "g": granted, "u": until}
        )

    def release(self, study: int, number: int) -> None:
        self._connection.execute(sa.delete(_leases).where(*_MINE), {"s": study, "n": number})

    # The whole file

    def damage(self, most: int = 100) -> list[str]:
        """Return the damage that SQLite finds in its file, `most` problems of it; PostgreSQL checks its own files."""
        if self._server:
            return []
        lines = self._connection.exec_driver_sql(f"PRAGMA integrity_check({most})").scalars()
        return [text for text in lines if text != "ok"]


def _entry(row: Sequence[Any]) -> StoredEntry:
    seq, kind, body, time, worker, token, checksum = _row("gpmi_events", _ENTRY, row)
    return StoredEntry(seq, kind, body, float(time), worker, token or "", checksum)


# The columns of a row with the types of their values. SQLite keeps any value in any column.
_ENTRY: Mapping[str, Any] = {
    **{"seq": int, "kind": str, "body": str, "time": int | float, "worker": str, "token": str | None, "checksum": str}
}
_LEASE: Mapping[str, Any] = {"number": int, "granted": int, "worker": str, "until": int | float}


def _row(table: str, types: Mapping[str, Any], row: Sequence[Any]) -> Sequence[Any]:
    """Return a row, whose first column is its key; refuse it if a value has another type than its column."""
    return [_checked(table, row[0], name, value, types[name]) for name, value in zip(types, row, strict=True)]


def _checked(table: str, key: Any, column: str, value: Any, kind: Any) -> Any:
    if not isinstance(value, kind):
        raise StudyError(
            f"row {shown(key)} of the table {table} has {shown(value)} as its {column}, so the database was damaged or "
            "changed by hand; use an intact copy, or rescue the readable rows with a database tool"
        )
    return value


def prepare_tables(connection: sa.Connection, *, create: bool) -> bool:
    """Return whether the tables have this version; with `create`, create or migrate them first."""
    if create and connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(746509)")  # an arbitrary key: tables are created once
    version = _version(connection)
    if version is not None and version > SCHEMA:
        raise StudyError(
            f"the study was written by a newer gpmi (version {version} of its tables, this one knows {SCHEMA}); "
            "update gpmi"
        )
    if version == SCHEMA or not create:
        return version == SCHEMA
    if version is None:
        _tables.create_all(connection)
        connection.execute(sa.insert(_schema).values(version=SCHEMA))
    else:
        _migrate_1_to_2(connection)
        connection.execute(sa.update(_schema).values(version=SCHEMA))
    return True


def _version(connection: sa.Connection) -> int | None:
    if not sa.inspect(connection).has_table("gpmi_schema"):
        return None
    version = connection.scalar(sa.select(sa.func.max(_schema.c.version)))
    return None if version is None else int(_checked("gpmi_schema", 1, "version", version, int))


def _migrate_1_to_2(connection: sa.Connection) -> None:
    """Add tokens, empty for existing entries, and leases: without one a pending trial goes to the next worker."""
    connection.exec_driver_sql("ALTER TABLE gpmi_events ADD COLUMN token TEXT")
    for index in _events.indexes:
        index.create(connection)
    _leases.create(connection)
