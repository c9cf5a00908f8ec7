"""How a study is opened, or made if it does not exist."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from gpmi._support import checks
from gpmi.space import Space
from gpmi.storage.database import Database, patiently
from gpmi.storage.entries import entry
from gpmi.storage.replayed import own_version
from gpmi.storage.serialization import checked_names, contradiction, described, text_of
from gpmi.storage.study_log import Record, checked_lease
from gpmi.storage.study_optimizer import Kept
from gpmi.storage.tables import Known
from gpmi.storage.worker import own_name

LEASE = 60.0  # seconds after which the trial of a worker that fell silent is offered again; our choice
PATIENCE = 60.0  # seconds for which a database that does not answer is asked again; a restart takes less


def opened(
    address: Any,
    name: str,
    space: Any,
    options: Mapping[str, Any],
    *,
    lease: float = LEASE,
    patience: float = PATIENCE,
    kind: type[Record] = Record,
) -> Record:
    """The study with this name, made with `space` and the options of `Optimizer` if there is none."""
    if not isinstance(name, str) or not name:
        raise TypeError(f"name is {checks.shown(name)}; give a text")
    seconds, wait = checked_lease(lease), checks.positive("patience", patience)
    database, given = Database(address), {key: value for key, value in checked_names(options).items()}
    made = None
    if space is not None and database.path is not None and not database.path.exists():
        made = _made(space, given)  # wrong arguments are refused before there is a file
    patiently(lambda: database.prepare(create=space is not None), wait)
    found = patiently(lambda: _found(database, name), wait)
    if found is None:
        if space is None:
            database.close()
            raise ValueError(_no_such(database, name))
        new = text_of(made or _made(space, given))
        found = patiently(lambda: _create(database, name, new), wait)
    description = json.loads(found.description)
    wrong = contradiction(description, space, given)
    if wrong is not None:
        database.close()
        raise ValueError(f"{wrong}; leave it out to go on with the study {name!r}, or give another name or file")
    optimizer = Kept(description)
    if isinstance(space, Mapping):
        optimizer.remark(*Space.of(space).events)  # on how it was read: the study has it as it was understood
    record = optimizer.record = kind(database, found, name, optimizer, lease=seconds, patience=wait)
    record.refresh()
    if given.get("budget") is not None:
        record.set_budget(given["budget"])
    return record


def names_in(address: Any) -> list[str]:
    """The names of the studies in a database; nothing is made where there is none."""
    database = Database(address)
    try:
        return patiently(database.names, PATIENCE)
    finally:
        database.close()


@contextmanager
def kept(address: Any, space: Any, policy: Any, **options: Any) -> Iterator[Kept]:
    """The optimizer of a study, for the time of one run."""
    record = opened(address, "default", space, {"policy": policy, **options})
    try:
        assert isinstance(record.optimizer, Kept)
        yield record.optimizer
    finally:
        record.close()


def _made(space: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """The description of a new study, after an Optimizer could be made from it."""
    description = described(space, options)
    return {**description, "seed": Kept(description).seed}


def _found(database: Database, name: str) -> Known | None:
    with database.reading() as transaction:
        return transaction.find(name)


def _create(database: Database, name: str, description: str) -> Known:
    """Make the study, unless another process has made it meanwhile."""
    with database.writing() as transaction:
        transaction.lock_all()
        known = transaction.find(name)
        if known is not None:
            return known
        number, said = transaction.create(name, description), {"description": json.loads(description)}
        now, mark = transaction.now(), uuid.uuid4().hex
        first = entry("", 0, "created", {**said, "by": own_version()}, time=now, worker=own_name(), token=mark)
        transaction.append(number, first)
        return Known(number, description, first.checksum)


def _no_such(database: Database, name: str) -> str:
    with database.reading() as transaction:
        names = transaction.names()
    database.close()
    known = f"it has {', '.join(map(repr, names))}" if names else "it has none"
    return f"there is no study {name!r} in {database.shown}: {known}; give space= to make it"
