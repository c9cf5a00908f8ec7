"""What the site does to the pages, which are written for the repository, too; and the check of what was built."""

from __future__ import annotations

import logging
import posixpath
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from mkdocs.structure.files import File, Files

log = logging.getLogger("mkdocs.hooks.links")

LINK = re.compile(r"(?<!!)\[([^\]\n]+)\]\(([^)\s#]+)(#[^)\s]*)?\)")
FENCE = re.compile(r"^(```.*?^```$)", flags=re.DOTALL | re.MULTILINE)
CELL = "# %%"  # what begins a cell of a script in percent format
# Pages of the site that are files of the repository's root.
ROOT_PAGES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}


def on_files(files: Files, config: Any) -> Files:
    """Take in the pages of the repository's root, and let "folder/*" in the navigation be its pages."""
    root = Path(config.config_file_path).parent
    for name, page in ROOT_PAGES.items():
        text = prose(lambda part: rooted(part), (root / name).read_text(encoding="utf-8"))
        files.append(File.generated(config, page, content=text))
    for script in sorted((root / "examples").glob("*.py")):
        text = script.read_text(encoding="utf-8")
        if text.startswith(CELL):
            files.append(File.generated(config, f"stories/{script.stem}.md", content=story(text, script.name)))
    pages = sorted(file.src_uri for file in files.documentation_pages())
    config.nav = expanded(config.nav, pages, set(named(config.nav)))
    return files


def story(text: str, name: str) -> str:
    """A script in cells as a page: its prose, its code, and the pictures that the code writes (`make gallery`)."""
    parts = []
    for cell in re.split(rf"^{CELL}", text, flags=re.MULTILINE)[1:]:
        head, _, body = cell.partition("\n")
        if "[markdown]" in head:
            parts.append("\n".join(line.removeprefix("#").removeprefix(" ") for line in body.strip().splitlines()))
        elif body.strip():
            parts.append(f"```python\n{body.strip()}\n```")
            parts += [f"![](../gallery/{picture})" for picture in re.findall(r'savefig\("(\S+?)"', body)]
    return "\n\n".join([*parts, f"This page is `examples/{name}`."]) + "\n"


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """A link that leaves docs/, or leads to a file that the site leaves out, becomes the name of the file."""
    folder = posixpath.dirname(page.file.src_uri)

    def replaced(found: re.Match[str]) -> str:
        text, target, anchor = found[1], found[2], found[3] or ""
        if re.match(r"[a-z]+:", target):
            return found[0]
        path = posixpath.normpath(posixpath.join(folder, target))
        if path.startswith("../"):
            inside = path.removeprefix("../")
            stem = posixpath.splitext(posixpath.basename(inside))[0]
            if inside.startswith("examples/") and files.get_file_from_path(f"stories/{stem}.md"):
                return f"[{text}]({posixpath.relpath(f'stories/{stem}.md', folder or '.')})"
            if inside in ROOT_PAGES:
                return f"[{text}]({posixpath.relpath(ROOT_PAGES[inside], folder or '.')}{anchor})"
            return in_words(text, inside)
        file = files.get_file_from_path(path)
        return found[0] if file and file.inclusion.is_included() else in_words(text, f"docs/{path}")

    return prose(lambda part: LINK.sub(replaced, part), markdown)


def in_words(text: str, path: str) -> str:
    """A link that the site does not have, as its text and the file it led to."""
    plain = text.strip("`")
    return f"`{path}`" if path.endswith(plain) else f"{text} (`{path}`)"


def rooted(text: str) -> str:
    """Links of a page of the root, as if it stood in docs/."""

    def replaced(found: re.Match[str]) -> str:
        target = found[2]
        if re.match(r"[a-z]+:", target):
            return found[0]
        target = target.removeprefix("docs/") if target.startswith("docs/") else f"../{target}"
        return f"[{found[1]}]({target}{found[3] or ''})"

    return LINK.sub(replaced, text)


def prose(change: Any, text: str) -> str:
    """The text with everything changed but its blocks of code."""
    return "".join(part if part.startswith("```") else change(part) for part in FENCE.split(text))


def named(nav: list[Any]) -> list[str]:
    """The pages that the navigation names."""
    found: list[str] = []
    for entry in nav:
        value = next(iter(entry.values())) if isinstance(entry, dict) else entry
        found += named(value) if isinstance(value, list) else [value]
    return found


def expanded(nav: list[Any], pages: list[str], taken: set[str]) -> list[Any]:
    """The navigation with the pages of a folder in place of "folder/*", its index first; with a title, as a section."""
    result: list[Any] = []
    for entry in nav:
        title, value = next(iter(entry.items())) if isinstance(entry, dict) else (None, entry)
        if isinstance(value, list):
            result.append({title: expanded(value, pages, taken)})
        elif value.endswith("*"):
            folder = value[:-1]
            inside = [page for page in pages if page.startswith(folder) and page not in taken]
            inside = inside if folder else [page for page in inside if "/" not in page]
            inside.sort(key=lambda page: (not page.endswith("/index.md"), page))
            result += inside if title is None else [{title: inside}]
        else:
            result.append(entry)
    return result


# The site that was built


class Read(HTMLParser):
    """The names in a page that can be linked to, where its links lead, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if "href" in given:
            (self.loads if tag == "link" else self.links).add(given["href"])
        if "src" in given:
            self.loads.add(given["src"])


def on_post_build(config: Any) -> None:
    """Warn of links that lead nowhere and of files that would come from a network; with --strict that is an error."""
    site = Path(config.site_dir)
    read = {path: Read(path.read_text(encoding="utf-8")) for path in site.rglob("*.html") if path.name != "404.html"}
    for path, page in read.items():
        name = path.relative_to(site)
        for load in page.loads:
            if re.match(r"(https?:)?//", load):
                log.warning("%s loads %s from a network", name, load)
        for link in page.links | page.loads:
            if re.match(r"([a-z]+:|//)", link):
                continue
            target, _, anchor = link.partition("#")
            file = (path.parent / unquote(target.partition("?")[0])).resolve() if target else path
            file = file / "index.html" if file.is_dir() else file
            if not file.exists() or (anchor and file in read and unquote(anchor) not in read[file].ids):
                log.warning("%s has a link that leads nowhere: %s", name, link)
