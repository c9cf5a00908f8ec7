"""List the benchmarks, or run one in the environment that it needs, for `make bench`.

    python benchmarks/launch.py                    the names of all benchmarks, with the question that each one answers
    python benchmarks/launch.py NAME [ARGUMENT ...]
    python benchmarks/launch.py --stamps NAME      the files that make has to build first: they say what is installed

A script that needs other tools has a line `NEEDS = "peers"`, or `NEEDS = "peers and HEBO"`. It is read, not imported,
so any Python can run this file.
"""

import ast
import os
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
STAMPS = {  # the first environment runs the script
    "gpmi": (".venv/.dev",),
    "ANUGA": (".venv/.anuga",),
    "peers": (".venv-bench/.ready",),
    "peers and HEBO": (".venv-bench/.ready", ".venv-bench-hebo/.ready"),
}


def scripts() -> dict[str, Path]:
    """Return all benchmarks by name."""
    helpers = ("harness.py", "launch.py")
    return {path.stem: path for path in sorted(FOLDER.glob("*.py")) if path.name not in helpers}


def question(script: Path) -> str:
    """Return the first line of the docstring: the question that the script answers."""
    return (ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or "").split("\n")[0]


def stamps(script: Path) -> tuple[str, ...]:
    """Return the stamps of the environments that the script needs."""
    lines = script.read_text(encoding="utf-8").splitlines()
    needs = [ast.literal_eval(line.removeprefix("NEEDS = ")) for line in lines if line.startswith("NEEDS = ")]
    return STAMPS[needs[0] if needs else "gpmi"]


def main(arguments: list[str]) -> None:
    """List the benchmarks, print the stamps of one, or become the process that runs it."""
    benchmarks = scripts()
    if not arguments:
        width = max(map(len, benchmarks))
        print("\n".join(f"{name:{width}}  {question(script)}" for name, script in benchmarks.items()))
        return
    name = arguments[-1] if arguments[0] == "--stamps" else arguments[0]
    if name not in benchmarks:
        sys.exit(f"there is no benchmark {name!r}; `make bench` lists them")
    built = stamps(benchmarks[name])
    if arguments[0] == "--stamps":
        print(*built)
        return
    python = FOLDER.parent / Path(built[0]).parent / "bin" / "python"
    os.execv(python, [str(python), str(benchmarks[name]), *arguments[1:]])


if __name__ == "__main__":
    main(sys.argv[1:])
