"""The studies that a server shows: those of a database, or of all files in a folder."""

from __future__ import annotations

import hashlib
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpmi._support.text import shortened, without_password
from gpmi.run.study import study
from gpmi.serve.session import PATIENCE, Desk
from gpmi.storage.errors import StudyError, Unavailable
from gpmi.storage.opening import names_in

ENDINGS = (".db", ".sqlite", ".sqlite3")
NAME = 80  # characters of the name of a new study, at most; our choice


@dataclass(frozen=True)
class Book:
    """One study, and where it is."""

    slug: str  # what addresses of pages call it; found in a list, so it can lead nowhere else
    name: str
    address: str

    @property
    def title(self) -> str:
        """What people call it: the name of its file where the study itself has none."""
        if self.name == "default" and "://" not in self.address:
            return Path(self.address).stem
        return self.name


class Shelf:
    """The studies at an address, opened when somebody looks at them. `name` shows one of them only."""

    def __init__(self, address: str, name: str | None = None) -> None:
        self.address, self.name = address, name
        self.folder = Path(address) if "://" not in address and Path(address).is_dir() else None
        if self.folder is None and "://" not in address and not Path(address).absolute().parent.is_dir():
            raise ValueError(f"{address!r} is in no folder that there is; give another path")
        self.unreadable: tuple[str, ...] = ()  # what is wrong with files of the folder that hold no study
        self._desks: dict[str, Desk] = {}
        self._lock = threading.Lock()

    @property
    def shown(self) -> str:
        return without_password(self.address)

    def books(self) -> list[Book]:
        """What there is now. One short look into each file."""
        found: list[tuple[str, str]] = []
        wrong: list[str] = []
        for address in self._addresses():
            try:
                found += [(address, name) for name in names_in(address)]
            except StudyError as error:
                if self.folder is None or isinstance(error, Unavailable):
                    raise
                wrong.append(str(error))  # one file that is damaged hides none of the others
        self.unreadable = tuple(wrong)
        if self.name is not None:
            found = [one for one in found if one[1] == self.name]
        slugs: dict[str, Book] = {}
        for address, name in found:
            slug = self._slug(address, name)
            if slug in slugs:
                slug = f"{slug}-{hashlib.sha256(f'{address} {name}'.encode()).hexdigest()[:8]}"
            slugs[slug] = Book(slug, name, address)
        return list(slugs.values())

    def book(self, slug: str) -> Book | None:
        return next((one for one in self.books() if one.slug == slug), None)

    def desk(self, slug: str) -> Desk | None:
        """The study that is called so; None if there is none."""
        with self._lock:
            if slug not in self._desks:
                found = self.book(slug)
                if found is None:
                    return None
                self._desks[slug] = Desk(found.address, found.name, found.title, slug)
            return self._desks[slug]

    def make(self, name: str, space: Any, **options: Any) -> Book:
        """Make a study; a ValueError if the name is taken or something about it cannot be used."""
        title = shortened(name.strip(), NAME)
        if not title:
            raise ValueError("the study has no name; give it one")
        with self._lock:
            known = self.books()
            if any(one.name == title or one.title == title for one in known):
                raise ValueError(f"there is a study {title!r} already; give another name")
            address = self.address if self.folder is None else str(self._new_file(self.folder, title))
            with study(address, title, space=space, patience=PATIENCE, **options):
                pass
            return next(one for one in self.books() if one.name == title and one.address == address)

    def close(self) -> None:
        for desk in self._desks.values():
            desk.close()

    def _addresses(self) -> list[str]:
        if self.folder is None:
            return [self.address]
        return [str(path) for path in sorted(self.folder.iterdir()) if path.suffix in ENDINGS and path.is_file()]

    def _slug(self, address: str, name: str) -> str:
        whole = name if self.folder is None else f"{Path(address).stem}-{name}"
        plain = _plain(whole)
        return plain if plain == whole else f"{plain}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"

    @staticmethod
    def _new_file(folder: Path, title: str) -> Path:
        stem = _plain(title)
        for more in ["", *(f"-{i}" for i in range(2, 1000))]:
            path = folder / f"{stem}{more}.db"
            if not path.exists():
                return path
        raise ValueError(f"there are too many studies called {stem!r}; give another name")


def _plain(words: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", words).strip("-")[:40] or "study"
