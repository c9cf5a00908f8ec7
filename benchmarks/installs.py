"""How much does each tool install?

    python benchmarks/installs.py     writes docs/benchmarks/installs.md, and the table of docs/features.md

Each tool is installed with all that it needs into an empty folder of its own, in the newest versions. The packages and
the bytes of their files are counted, without bytecode. PyTorch is its build for the CPU where pip finds one; the usual
one for Linux brings gigabytes for graphics cards. It takes a quarter of an hour, and 2 GB of disk at a time.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

import harness

TORCH = "torch==2.13.0"
BEGIN, END = "<!-- installs: written by make bench NAME=installs -->", "<!-- installs: end -->"
TOOLS: dict[str, tuple[str, ...]] = {  # the first requirement is the tool itself
    "gpmi": (str(harness.ROOT),),
    "gpmi[all]": (f"{harness.ROOT}[all]",),
    "BoTorch": ("botorch", TORCH),
    "Ax": ("ax-platform", TORCH),
    "Optuna": ("optuna",),
    "Optuna with what GPSampler needs": ("optuna", "scipy", TORCH),
    "BayBE": ("baybe", TORCH),
    "BoFire": ("bofire[optimization]", TORCH),
    "scikit-optimize": ("scikit-optimize",),
    "bayesian-optimization": ("bayesian-optimization",),
    "SMAC": ("smac",),
}
TABLE = harness.Table(
    harness.DOCS / "installs.csv", ("tool", "version", "packages", "megabytes", "torch", "date"), ("tool",)
)


def install(tool: str) -> tuple[object, ...]:
    """Install a tool in an empty folder, and return its row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]
        subprocess.run([*pip, "--target", folder, *TOOLS[tool]], check=True)
        files = [path for path in Path(folder).rglob("*") if path.is_file() and path.suffix != ".pyc"]
        size = sum(path.stat().st_size for path in files)
        versions = dict(path.stem.rsplit("-", 1) for path in Path(folder).glob("*.dist-info"))
    versions = {name.lower().replace("_", "-"): version for name, version in versions.items()}
    name = "gpmi" if tool.startswith("gpmi") else TOOLS[tool][0].partition("[")[0]
    torch = versions.get("torch", "")
    return tool, versions[name], len(versions), round(size / 1e6), torch, date.today().isoformat()


def main() -> None:
    arguments = harness.parser(__doc__, report=True).parse_args()
    new = 0 if arguments.report else harness.resume(TABLE, [(tool,) for tool in TOOLS], install)
    latest = TABLE.latest()
    rows = [latest[tool,] for tool in TOOLS]
    body = harness.table(
        ["tool", "version", "packages", "MB", "PyTorch"],
        ([row["tool"], row["version"], row["packages"], row["megabytes"], row["torch"] or "no"] for row in rows),
    )
    text = (
        "Each tool with all that it requires, in the newest versions, in an empty folder; files without bytecode. "
        "BoFire with its extra `optimization`, without which it has no strategies. PyTorch is its build for the CPU, "
        "which is not what pip installs on Linux unless it is told to."
    )
    path = harness.ROOT / "docs" / "features.md"
    before, begin, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    path.write_text("\n".join([before + begin, "", *body, "", end + after]), encoding="utf-8")
    harness.page(__file__, "How much does each tool install?", text, body, runs=len(rows), new=new)


if __name__ == "__main__":
    main()
