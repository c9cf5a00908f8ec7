"""Open a study, or create it if it does not exist."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from gpmi._support import checks
from gpmi.optimizer import Optimizer
from gpmi.space import Space
from gpmi.storage.database import Database, retried
from gpmi.storage.entries import next_entry, own_version
from gpmi.storage.errors import OtherSettings, StudyError
from gpmi.storage.platforms import own_platform
from gpmi.storage.serialization import arguments, checked_names, contradiction, described, is_unicode, text_of
from gpmi.storage.study_log import StudyLog, checked_lease
from gpmi.storage.study_optimizer import StudyOptimizer
from gpmi.storage.tables import StoredStudy
from gpmi.storage.workers import own_name

DEFAULT_NAME = "default"  # of a study that was created without a name
LEASE = 60.0  # lease duration: after this many seconds without a heartbeat the trial is reassigned; our choice
PATIENCE = 60.0  # retry timeout for an unreachable database, in seconds; a restart takes less


def open_study(
    address: Any,
    name: str | None,
    space: Any,
    options: Mapping[str, Any],
    *,
    lease: float = LEASE,
    patience: float = PATIENCE,
) -> StudyOptimizer:
    """Open the study with this name, or create it with `space` and the options of `Optimizer`.

    Without a name it is the study "default". If there is none, and no `space` to create it, it is the only study.
    """
    if name is not None and (not isinstance(name, str) or not name):
        raise TypeError(f"name is {checks.shown(name)}; give a string")
    if name is not None and not is_unicode(name):
        raise ValueError(f"name is {checks.shown(name)}, which is not valid Unicode; give another name")
    seconds, wait = checked_lease(lease), checks.positive("patience", patience)
    database, given = Database(address), dict(checked_names(options))
    new = None
    if space is not None and database.path is not None and not database.path.exists():
        new = _describe(space, given)  # wrong arguments are refused before there is a file
    retried(lambda: database.prepare(create=space is not None), wait)
    if name is None:
        names = [] if space is not None else retried(database.names, wait)
        name = names[0] if len(names) == 1 else DEFAULT_NAME
    stored = retried(lambda: _find(database, name), wait)
    if stored is None:
        if space is None:
            database.close()
            raise ValueError(_no_such_study(database, name))
        description = text_of(new or _describe(space, given))
        stored = retried(lambda: _create(database, name, description), wait)
    optimizer = _optimizer(database, stored, name, lease=seconds, patience=wait)
    wrong = contradiction(_description(stored, name), space, given)
    if wrong is not None:
        database.close()
        remedy = f"leave it out to continue the study {name!r}, or give another name or file"
        raise OtherSettings(f"{wrong}; {remedy}", wrong.difference)
    if isinstance(space, Mapping):
        optimizer.add_events(*Space.of(space).events)  # about how it was read; the study stores the result
    optimizer.refresh()
    if given.get("budget") is not None:
        optimizer.set_budget(given["budget"])
    return optimizer


def names_in(address: Any) -> list[str]:
    """Return the names of the studies in a database; nothing is created where there is none."""
    database = Database(address)
    try:
        return retried(database.names, PATIENCE)
    finally:
        database.close()


@contextmanager
def opened_for_run(address: Any, space: Any, policy: Any, **options: Any) -> Iterator[StudyOptimizer]:
    """Open the default study of a database for the time of one run."""
    optimizer = open_study(address, DEFAULT_NAME, space, {"policy": policy, **options})
    try:
        yield optimizer
    finally:
        optimizer.log.close()


def _describe(space: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description of a new study, with the seed that an Optimizer with these arguments has."""
    description = described(space, options)
    return {**description, "seed": Optimizer(**arguments(description)).seed}


def _find(database: Database, name: str) -> StoredStudy | None:
    with database.reading() as transaction:
        return transaction.find(name)


def _create(database: Database, name: str, description: str) -> StoredStudy:
    """Create the study, unless another process has created it meanwhile."""
    with database.writing() as transaction:
        transaction.lock_all()
        stored = transaction.find(name)
        if stored is not None:
            return stored
        number = transaction.create(name, description)
        content = {"description": json.loads(description), "by": own_version(), "platform": dict(own_platform())}
        now, token = transaction.now(), uuid.uuid4().hex
        first = next_entry("", 0, "created", content, time=now, worker=own_name(), token=token)
        transaction.append(number, first)
        return StoredStudy(number, description, first)


def _optimizer(database: Database, stored: StoredStudy, name: str, *, lease: float, patience: float) -> StudyOptimizer:
    """Return the optimizer of a stored study, before its log is replayed."""
    try:
        description = _description(stored, name)
        if not is_unicode(json.dumps(description, ensure_ascii=False)):
            raise ValueError("it has a string that is not valid Unicode")
        return StudyOptimizer(description, partial(StudyLog, database, stored, name, lease=lease, patience=patience))
    except (StudyError, ImportError):
        database.close()
        raise
    except Exception as error:
        database.close()
        raise StudyError(
            f"entry 0 of the study {name!r} does not describe a study that this gpmi can open, so it was changed by "
            f"hand, or written by another version of gpmi: {type(error).__name__}: {error}"
        ) from error


def _description(stored: StoredStudy, name: str) -> dict[str, Any]:
    """Return the description of a study. The table of studies and entry 0 must have the same one."""
    if stored.first is None:
        raise StudyError(f"entry 0 of the study {name!r} is missing, so the file is damaged; use an intact copy")
    description: dict[str, Any] = stored.first.content["description"]
    try:
        same = text_of(json.loads(stored.description)) == text_of(description)
    except (ValueError, RecursionError):
        same = False
    if not same:
        raise StudyError(
            f"the description of the study {name!r} in the table gpmi_studies is not that of entry 0 of its log, so "
            "one of them was changed by hand; use an intact copy"
        )
    return description


def _no_such_study(database: Database, name: str) -> str:
    with database.reading() as transaction:
        names = transaction.names()
    database.close()
    if not names:
        return f"there is no study {name!r} in {database.shown}: it has none; give space= to make it"
    remedy = f"it has {', '.join(map(repr, names))}; give one of these names, or space= to make it"
    return f"there is no study {name!r} in {database.shown}: {remedy}"
