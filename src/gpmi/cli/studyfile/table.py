"""A table of a study file, whose values are checked at the place where they stand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from gpmi._support import checks
from gpmi.cli.studyfile.lines import Path as Place
from gpmi.cli.studyfile.lines import line_of


class StudyFileError(ValueError):
    """A study file that cannot be used: `file:line: what is wrong; the remedy`."""


class Table:
    """What one table of the file says, and where it stands. A missing table is an empty one."""

    def __init__(self, said: Mapping[str, Any], file: Path, lines: Mapping[Place, int], place: Place = ()) -> None:
        self.said, self.file = said, file
        self._lines, self._place = lines, place

    def refuse(self, words: str, *inside: str | int) -> NoReturn:
        """A message that points at this table, or at something inside it."""
        place = (*self._place, *inside)
        named = ".".join(f"[{part}]" if isinstance(part, int) else part for part in place).replace(".[", "[")
        prefix = f"{named}: " if place else ""
        raise StudyFileError(f"{self.file}:{line_of(self._lines, place)}: {prefix}{words}") from None

    @contextmanager
    def at(self, *inside: str | int) -> Iterator[None]:
        """What is refused in this block is refused at this place."""
        try:
            yield
        except StudyFileError:
            raise
        except (TypeError, ValueError) as error:
            self.refuse(str(error), *inside)

    def known(self, names: Iterable[str]) -> None:
        """Refuse keys that are none of these names."""
        names = list(names)
        for key in self.said:
            if key not in names:
                near = nearest(key, names)
                self.refuse(f"there is no such key; {near or 'give one of ' + ', '.join(names)}", key)

    def get(self, name: str, check: Callable[[str, Any], Any], default: Any = None) -> Any:
        """The value of a key, checked; `default` if it is not there."""
        if name not in self.said:
            return default
        with self.at(name):
            return check(name, self.said[name])

    def table(self, name: str) -> Table:
        """A table inside this one."""
        said = self.said.get(name, {})
        if not isinstance(said, dict):
            self.refuse(f"it is {checks.shown(said)}; give a table", name)
        return Table(said, self.file, self._lines, (*self._place, name))


def nearest(key: str, names: Iterable[str]) -> str | None:
    """A question with the name that somebody may have meant; None if none is near."""
    near = get_close_matches(key, list(names), n=1)
    return f"did you mean {near[0]}?" if near else None
