"""Runs that outlive their processes: a log of entries in a database, from which everything else is replayed."""

from gpmi.storage.annotations import MAX_FILES, MAX_TEXT, MAX_WHO, Annotation
from gpmi.storage.entries import StoredEntry
from gpmi.storage.errors import OtherSettings, StudyError, Unavailable
from gpmi.storage.serialization import point_to_json

__all__ = [
    "MAX_FILES",
    "MAX_TEXT",
    "MAX_WHO",
    "Annotation",
    "OtherSettings",
    "StoredEntry",
    "StudyError",
    "Unavailable",
    "point_to_json",
]
