"""The studies that a server shows: those of one database, or of all database files in a folder."""

from __future__ import annotations

import hashlib
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpmi._support.text import shortened, without_password
from gpmi.run.study import study
from gpmi.serve.session import DATABASE_TIMEOUT, Session
from gpmi.storage import StudyError, Unavailable
from gpmi.storage.opening import names_in

SUFFIXES = (".db", ".sqlite", ".sqlite3")
NAME_LENGTH = 80  # characters of the name of a new study, at most; our choice


@dataclass(frozen=True)
class StudyLocation:
    """One study, and where it is stored."""

    slug: str  # its name in the addresses of pages; looked up in a list, so it cannot lead to another file
    name: str
    address: str

    @property
    def title(self) -> str:
        """The name that people see: the file's name if the study has no name."""
        if self.name == "default" and "://" not in self.address:
            return Path(self.address).stem
        return self.name


class Catalogue:
    """The studies at an address. Each is opened when somebody looks at it. With `name`, only that study is shown."""

    def __init__(self, address: str, name: str | None = None) -> None:
        self.address, self.name = address, name
        self.folder = Path(address) if "://" not in address and Path(address).is_dir() else None
        if self.folder is None and "://" not in address and not Path(address).absolute().parent.is_dir():
            raise ValueError(f"the folder of {address!r} does not exist; give another path")
        self.unreadable: tuple[str, ...] = ()  # what is wrong with each file of the folder that cannot be read
        self._sessions: dict[str, Session] = {}
        self._lock = threading.Lock()

    @property
    def display_address(self) -> str:
        return without_password(self.address)

    def studies(self) -> list[StudyLocation]:
        """List the studies that exist now. Costs one short query for each file."""
        places: list[tuple[str, str]] = []
        unreadable: list[str] = []
        for address in self._addresses():
            try:
                places += [(address, name) for name in names_in(address)]
            except StudyError as error:
                if self.folder is None or isinstance(error, Unavailable):
                    raise
                unreadable.append(str(error))  # one damaged file must not hide the others
        self.unreadable = tuple(unreadable)
        if self.name is not None:
            places = [(address, name) for address, name in places if name == self.name]
        slugs: dict[str, StudyLocation] = {}
        for address, name in places:
            slug = self._slug(address, name)
            if slug in slugs:
                slug = f"{slug}-{hashlib.sha256(f'{address} {name}'.encode()).hexdigest()[:8]}"
            slugs[slug] = StudyLocation(slug, name, address)
        return list(slugs.values())

    def find(self, slug: str) -> StudyLocation | None:
        return next((location for location in self.studies() if location.slug == slug), None)

    def session(self, slug: str) -> Session | None:
        """Return the session of a study, opening it if needed; None if there is no such study."""
        with self._lock:
            if slug not in self._sessions:
                location = self.find(slug)
                if location is None:
                    return None
                self._sessions[slug] = Session(location.address, location.name, location.title, slug)
            return self._sessions[slug]

    def create(self, name: str, space: Any, **options: Any) -> StudyLocation:
        """Create a study. Raise a ValueError if the name is taken or an option cannot be used."""
        title = shortened(name.strip(), NAME_LENGTH)
        if not title:
            raise ValueError("The study has no name; give it one")
        with self._lock:
            if any(title in (location.name, location.title) for location in self.studies()):
                raise ValueError(f"There is already a study {title!r}; choose another name")
            address = self.address if self.folder is None else str(self._new_file(self.folder, title))
            with study(address, title, space=space, patience=DATABASE_TIMEOUT, **options):
                pass
            return next(new for new in self.studies() if (new.name, new.address) == (title, address))

    def close(self) -> None:
        for session in self._sessions.values():
            session.close()

    def _addresses(self) -> list[str]:
        if self.folder is None:
            return [self.address]
        return [str(path) for path in sorted(self.folder.iterdir()) if path.suffix in SUFFIXES and path.is_file()]

    def _slug(self, address: str, name: str) -> str:
        whole = name if self.folder is None else f"{Path(address).stem}-{name}"
        safe = _url_safe(whole)
        return safe if safe == whole else f"{safe}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"

    @staticmethod
    def _new_file(folder: Path, title: str) -> Path:
        stem = _url_safe(title)
        for suffix in ["", *(f"-{i}" for i in range(2, 1000))]:
            path = folder / f"{stem}{suffix}.db"
            if not path.exists():
                return path
        raise ValueError(f"There are too many studies called {stem!r}; choose another name")


def _url_safe(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")[:40] or "study"
