"""What people write beside a trial of a study: who did something, a note, and the names of files that belong to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpmi._support import checks

# Our choices: a name, a paragraph, and the files of one experiment.
MAX_WHO = 80
MAX_TEXT = 2000
MAX_FILES = 20
MAX_FILE = 200
# What an annotation may accompany: the kinds of entries that a person causes.
DEEDS = ("told", "corrected", "failed", "rejected", "forgotten", "retracted", "moved", "reported", "confirmed")


@dataclass(frozen=True)
class Annotation:
    """One remark about a trial. No suggestion depends on it."""

    number: int  # of the trial
    who: str = ""
    text: str = ""
    files: tuple[str, ...] = ()  # their names alone: the files stay where they are
    did: str = ""  # what the person did just before, as the kind of an entry; empty for a remark alone
    time: float = 0.0  # by the clock of the database, in seconds since 1970

    @staticmethod
    def checked(number: int, text: Any = "", who: Any = None, files: Any = (), did: Any = None) -> Annotation:
        """Return a validated annotation. It must say something."""
        who, text = _line("who", who, MAX_WHO), _text("text", text, MAX_TEXT)
        if isinstance(files, str) or not isinstance(files, Sequence):
            raise TypeError(f"files is {checks.shown(files)}; give a list of names")
        if len(files) > MAX_FILES:
            raise ValueError(f"files has {len(files)} names; give at most {MAX_FILES}")
        names = tuple(_line("files", file, MAX_FILE) for file in files)
        if did is not None:
            checks.one_of("did", did, DEEDS)
        annotation = Annotation(number, who, text, tuple(name for name in names if name), did or "")
        if not (annotation.who or annotation.text or annotation.files):
            raise ValueError("text, who and files are empty; give at least one of them")
        return annotation

    def to_json(self) -> dict[str, Any]:
        """Return what a study stores: the fields that say something."""
        fields = {"text": self.text, "who": self.who, "files": list(self.files), "did": self.did}
        return {"number": self.number, **{name: value for name, value in fields.items() if value}}

    @staticmethod
    def from_json(content: Mapping[str, Any], time: float) -> Annotation:
        """Return the validated annotation of a stored object."""
        stored = {name: content[name] for name in ("text", "who", "files", "did") if name in content}
        annotation = Annotation.checked(checks.whole("number", content["number"], 0), **stored)
        return Annotation(annotation.number, annotation.who, annotation.text, annotation.files, annotation.did, time)


def _line(name: str, value: Any, most: int) -> str:
    return " ".join(_text(name, value, most).split())


def _text(name: str, value: Any, most: int) -> str:
    """Return a text without the space around it; refuse one that is too long."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"{name} is {checks.shown(value)}; give a string")
    text = value.strip()
    if len(text) > most:
        raise ValueError(f"{name} has {len(text)} characters; give at most {most}")
    return text
