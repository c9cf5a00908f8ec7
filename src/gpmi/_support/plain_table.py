"""Tables of plain values, as a file or a form has them, that are checked key by key. An error names its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, NoReturn, Self, TypeAlias

from gpmi._support import checks
from gpmi._support.refusals import RefusedValue

Place: TypeAlias = tuple[str | int, ...]  # keys and positions, from the outside inwards


class TableError(RefusedValue):
    """A value that cannot be used: `what is wrong; the remedy`, and where it stands."""

    def __init__(self, text: str, place: Place = ()) -> None:
        super().__init__(text)
        self.place = place


class Table:
    """One table, and where it stands. A missing table is an empty one."""

    def __init__(self, content: Mapping[str, Any], place: Place = ()) -> None:
        self.content, self.place = content, place

    def error(self, message: str, place: Place) -> TableError:
        """Return the error for a message about a place."""
        return TableError(message, place)

    def inside(self, content: Mapping[str, Any], place: Place) -> Self:
        """Return a table inside this one."""
        return type(self)(content, place)

    def attached(self, text: str) -> str:
        """Return the text that a value stands for: itself, as it was pasted into a form."""
        return text

    def refuse(self, message: str, *inside: str | int) -> NoReturn:
        """Raise an error that points at this table, or at something inside it."""
        raise self.error(message, (*self.place, *inside)) from None

    @contextmanager
    def at(self, *inside: str | int) -> Iterator[None]:
        """Let errors in this block point at this place."""
        try:
            yield
        except TableError:
            raise
        except (TypeError, ValueError) as error:
            raise self.error(str(error), (*self.place, *inside)).like(error) from None

    def allow_only(self, names: Iterable[str]) -> None:
        """Refuse keys that are not among these names."""
        names = list(names)
        for key in self.content:
            if key not in names:
                near = nearest(key, names)
                self.refuse(f"there is no such key; {near or 'give one of ' + ', '.join(names)}", key)

    def get(self, name: str, check: Callable[[str, Any], Any], default: Any = None) -> Any:
        """Return the checked value of a key; `default` if it is missing."""
        if name not in self.content:
            return default
        with self.at(name):
            return check(name, self.content[name])

    def table(self, name: str) -> Self:
        """Return a table inside this one."""
        content = self.content.get(name, {})
        if not isinstance(content, dict):
            self.refuse(f"it is {checks.shown(content)}; give a table", name)
        return self.inside(content, (*self.place, name))


def nearest(key: str, names: Iterable[str]) -> str | None:
    """Ask whether a similar name was meant; None if no name is similar."""
    near = get_close_matches(key, list(names), n=1)
    return f"did you mean {near[0]}?" if near else None
