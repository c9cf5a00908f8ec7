"""Write which versions were tested, from the environments of make test-newest: python .ci/versions.py .venv-newest ..."""

import platform
import re
import sys
import tomllib
from datetime import date
from importlib.metadata import distributions
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "versions.md"
# Extras that only developers install: their tools are no dependencies of gpmi.
TOOLS = ("dev", "docs")
TEXT = """\
# Tested versions

gpmi declares the lowest versions that it works with, and no highest ones: a new release of another package must not keep gpmi from being installed. `make test-newest` installs the newest
version of everything, without a lock, runs the quick tests and those of the neighbours, and writes this page. CI does so once a week.

If something fails with a version above the one in this table, install that one: `pip install "name==version"`.
"""


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(project: dict) -> dict[str, tuple[str, str]]:
    """Return the packages that gpmi declares, in order: by name, the bound and the extra that needs it first."""
    extras = {name: needs for name, needs in project["optional-dependencies"].items() if name not in TOOLS}
    found: dict[str, tuple[str, str]] = {}
    for extra, needs in {"": project["dependencies"], **extras}.items():
        for need in needs:
            name, bound = re.fullmatch(r"([\w.-]+)(?:\[[^]]*\])?\s*([^;]*?)\s*(?:;.*)?", need).groups()
            if name != "gpmi":
                found.setdefault(canonical(name), (bound, extra))
    return found


def installed(environments: list[str]) -> dict[str, str]:
    """Return the version of each package; the first environment that has it counts."""
    found: dict[str, str] = {}
    for environment in environments:
        folders = [str(folder) for folder in Path(environment).glob("lib/python*/site-packages")]
        for one in distributions(path=folders):
            found.setdefault(canonical(one.name), one.version)
    return found


def page(packages: dict[str, tuple[str, str]], versions: dict[str, str]) -> str:
    missing = sorted(packages.keys() - versions.keys())
    if missing:
        raise SystemExit(f"the environments have no {', '.join(missing)}; run make test-newest")
    rows = [
        f"| {name} | {extra or 'always'} | {bound or 'any'} | {versions[name]} |"
        for name, (bound, extra) in packages.items()
    ]
    return "\n".join(
        [
            TEXT,
            f"Tested on {date.today().isoformat()} with Python {platform.python_version()} on {platform.system()} "
            f"({platform.machine()}).\n",
            "| package | installed with | declared | newest tested |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


if __name__ == "__main__":
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    PAGE.write_text(page(declared(project), installed(sys.argv[1:])), encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))
