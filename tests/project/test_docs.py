"""The pages say what is true: their Python runs as printed, their links lead somewhere, their names exist."""

from __future__ import annotations

import doctest
import inspect
import os
import re
import runpy
import tomllib
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import harness
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

import gpmi.optimizer.optimizer
import gpmi.run.backtest
import gpmi.run.loop
import gpmi.run.study

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "paper" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
HOWTOS = sorted((ROOT / "docs" / "howto").glob("*.md"))
MANUAL = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *HOWTOS]
NOTES = sorted((ROOT / "docs" / "notes").glob("*.md"))
OTHERS = [ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/README.md")]
NAMING = [*PAGES, *OTHERS]
PLACED = re.compile(r"((?:`[\w.]+` and )?`[\w.]+`) in `((?:\w+/)+\w+\.py)`")  # names, and the file that they are in
CODE = [
    file for folder in ("src", "tests", "paper", "benchmarks", "examples") for file in (ROOT / folder).rglob("*.py")
]
LINKED = [*PAGES, *OTHERS, *sorted((ROOT / "integrations").rglob("*.md"))]
BLOCK = re.compile(r"^```(?:python|py)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
# A block of another tool beside ours has the tool's name as its title. It is run where the tool is installed.
PEERS = {
    "scikit-optimize": "skopt",
    "BoTorch": "botorch",
    "BayBE": "baybe",
    "BoFire": "bofire",
    "Ax": "ax",
    "Ray Tune": "ray",
    "MLflow": "mlflow",
    "Keras": "keras",
    "Lightning": "lightning",
    "RDKit": "mordred",
    "RDKit and pandas": "mordred",
}
FENCED = re.compile(r"^```\S.*?^```$", flags=re.DOTALL | re.MULTILINE)  # code, not output
PEER_BLOCK = re.compile(r'^```python title="([^"\n]+)"\n(.*?)^```$', flags=re.DOTALL | re.MULTILINE)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[str]:
    """The Python of a page, each block at its own line so that a traceback points at it."""
    text = page.read_text(encoding="utf-8")
    return ["\n" * text.count("\n", 0, found.start(1)) + found[1] for found in BLOCK.finditer(text)]


def play(page: Path) -> dict[str, Any]:
    """All blocks of a page in one namespace, in order."""
    names: dict[str, Any] = {}
    for block in blocks(page):
        exec(compile(block, name_of(page), "exec"), names)
    return names


def shown(page: Path) -> list[str]:
    """The lines of all output that a page shows, that of commands left out."""
    found = re.findall(r"^```\n(.*?)^```$", FENCED.sub("", page.read_text(encoding="utf-8")), re.DOTALL | re.MULTILINE)
    return [line for block in found if not block.startswith("$ ") for line in block.splitlines()]


def sentences(page: Path) -> list[str]:
    """The sentences of a page: of its paragraphs, of the items of lists, and of the cells of tables."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    text = re.sub(r"^```\n.*?^```$|<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^#.*$|<[^>\n]+>", "", text, flags=re.MULTILINE)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", re.sub(r"`[^`\n]+`", "code", text))
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    parts = re.split(r"\n\s*\n|^\s*(?:[-*>]|\d+\.) |\|", text, flags=re.MULTILINE)
    return [" ".join(one.split()) for part in parts for one in re.split(r"(?<=[.!?])[*)\"]*\s+", part) if one.strip()]


def anchors(page: Path) -> set[str]:
    """The names under which a page's headings can be linked to."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def files_named(path: str) -> list[Path]:
    """The files of the repository whose path ends so."""
    return [file for file in CODE if file.as_posix().endswith(f"/{path}")]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a temporary folder, and draw nowhere."""
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")


# Versions


def test_the_page_on_versions_has_every_package_that_gpmi_declares_and_ci_renews_the_test_weekly() -> None:
    """`make test-newest` writes the page; a new dependency needs another run of it."""
    names = runpy.run_path(str(ROOT / ".ci" / "versions.py"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    packages = names["declared"](project)
    assert packages["numpy"] == (">=1.26", "") and packages["psycopg"] == (">=3.1", "postgres")
    rows = re.findall(r"^\| ([\w-]+) \| [\w, ]+ \| (\S+) \| \d\S* \|$", names["PAGE"].read_text("utf-8"), re.MULTILINE)
    assert rows == [(name, bound or "any") for name, (bound, _) in packages.items()]
    with pytest.raises(SystemExit, match="no scipy"):
        names["page"](packages, dict.fromkeys(packages.keys() - {"scipy"}, "1.0"))
    workflow = (ROOT / ".github" / "workflows" / "newest.yml").read_text(encoding="utf-8")
    assert "schedule:" in workflow and "run: make test-newest" in workflow
    assert re.search(r"^test-newest:.*  ## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


# Python


def test_readme_and_the_pages_have_python_to_run() -> None:
    assert len(blocks(ROOT / "README.md")) >= 3
    assert sum(len(blocks(page)) for page in PAGES) >= 8


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_of_python_is_one_that_is_run(page: Path) -> None:
    """An indented block or another way to begin one would be passed over in silence."""
    text = page.read_text(encoding="utf-8")
    begun = re.findall(r"^\s*(?:```|~~~) ?\{?\.?py(?:thon)?\d?\b.*$", text, flags=re.MULTILINE)
    assert len(begun) == len(blocks(page)) + len(PEER_BLOCK.findall(text))
    assert {title for title, _ in PEER_BLOCK.findall(text)} <= PEERS.keys()


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name_of(page), marks=[pytest.mark.slow] if page.name == "gallery.md" else [])
        for page in PAGES
        if blocks(page) and name_of(page) not in ("README.md", "docs/ledger.md")
    ],
)
@pytest.mark.usefixtures("few_draws")
def test_the_python_of_a_page_runs_and_a_how_to_prints_what_it_shows(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Up to the first gap or number of a line: what follows may differ between processors, and with few draws."""
    play(page)
    plt.close("all")
    printed = capsys.readouterr().out.splitlines()
    for line in shown(page) if page in HOWTOS else []:
        start = re.split(r"  |[-+]?\d", line)[0]
        assert any(one.startswith(start) for one in printed), line


@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize(
    ("page", "peer", "code"),
    [
        pytest.param(page, PEERS[title], code, id=name_of(page))
        for page in PAGES
        for title, code in PEER_BLOCK.findall(page.read_text(encoding="utf-8"))
    ],
)
def test_the_python_of_another_tool_runs_where_it_is_installed(page: Path, peer: str, code: str) -> None:
    pytest.importorskip(peer)
    exec(compile(code, name_of(page), "exec"), {})


@pytest.mark.usefixtures("few_draws")
def test_the_python_of_the_readme_runs_and_finds_the_maximum() -> None:
    """What it finds is better than 0.93 of 0.95, and four points were asked and told."""
    names = play(ROOT / "README.md")
    assert names["r"].y > 0.93
    assert len(names["opt"].trials) == 4


def test_the_python_of_the_page_on_the_ledger_runs_and_prints_what_it_shows() -> None:
    page = ROOT / "docs" / "ledger.md"
    names = play(page)
    assert names["r"].reason == "regret below 0.05"
    assert names["known"].reason == "f is known here"
    shown = re.search(r"^```\n(values .*?)^```$", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert shown is not None
    assert [line[:15] for line in shown[1].splitlines()] == [line[:15] for line in str(names["r"].ledger).splitlines()]


@pytest.mark.parametrize(
    "module",
    [gpmi.optimizer.optimizer, gpmi.run.backtest, gpmi.run.loop, gpmi.run.study],
    ids=lambda module: module.__name__,
)
def test_the_examples_in_docstrings_run(module: ModuleType) -> None:
    ours = [one for one in vars(module).values() if getattr(one, "__module__", None) == module.__name__]
    tests = [
        test for one in ours for test in doctest.DocTestFinder().find(inspect.unwrap(one), globs=vars(module).copy())
    ]
    results = [doctest.DocTestRunner().run(test) for test in tests]
    assert sum(one.attempted for one in results) > 0 and not any(one.failed for one in results)


# Links and names


@pytest.mark.parametrize("page", LINKED, ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if re.match(r"https?:", link):
            continue
        target, _, anchor = link.partition("#")
        file = page.parent / target if target else page
        assert file.exists(), link
        assert not anchor or anchor in anchors(file), link


@pytest.mark.parametrize("page", NAMING, ids=name_of)
def test_every_file_named_in_a_page_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for path in re.findall(r"`((?:src|tests|paper|benchmarks|examples|docs)/[\w/.]+\.\w+)`", text):
        assert (ROOT / path).exists(), path
    for path in re.findall(r"(?<![\w/.:-])((?:[\w-]+/)+[\w-]+\.py)\b", text):
        assert files_named(path), path


@pytest.mark.parametrize("page", NAMING, ids=name_of)
def test_a_name_that_a_page_places_in_a_file_is_defined_there(page: Path) -> None:
    for names, path in re.findall(PLACED, page.read_text(encoding="utf-8")):
        sources = [file.read_text(encoding="utf-8") for file in files_named(path)]
        for name in re.findall(r"(\w+)`", names):
            assert any(
                re.search(rf'\b(?:def|class) {name}\b|^{name}\b.* = |"{name}"', text, re.M) for text in sources
            ), name


def test_a_file_is_found_by_the_end_of_its_path() -> None:
    assert (
        files_named("model/fitting/fit.py") == [ROOT / "src/gpmi/model/fitting/fit.py"] == files_named("fitting/fit.py")
    )
    assert files_named("model/fitting/attic.py") == []
    assert re.findall(PLACED, "`Log.settle` and `settle` in `trials/log.py`") == [
        ("`Log.settle` and `settle`", "trials/log.py")
    ]


@pytest.mark.parametrize("page", NAMING, ids=name_of)
def test_every_public_name_in_a_page_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for dotted in {*re.findall(r"`(gpmi(?:\.\w+)+)", text), *re.findall(r"`((?:theory|stopping|plots)\.\w+)", text)}:
        resolve(dotted.removeprefix("gpmi."))


def resolve(dotted: str) -> object:
    """An attribute of gpmi, or of a module of it."""
    found: Any = gpmi
    for name in dotted.split("."):
        found = getattr(found, name) if hasattr(found, name) else import_module(f"{found.__name__}.{name}")
    return found


@pytest.mark.parametrize("folder", ["src", "benchmarks", "tests"])
def test_every_page_that_the_source_names_exists(folder: str) -> None:
    """But for a page that a benchmark will write, which has the script's name."""
    for script in (ROOT / folder).rglob("*.py"):
        for path in re.findall(r"\bdocs/[\w/]+\.md\b", script.read_text(encoding="utf-8")):
            own = folder == "benchmarks" and Path(path).stem == script.stem
            assert own or (ROOT / path).exists(), f"{name_of(script)} names {path}"


@pytest.mark.skipif(os.name != "posix", reason="programs run in groups of processes of POSIX")
def test_the_program_of_the_start_page_prints_what_the_page_shows() -> None:
    pytest.importorskip("sqlalchemy")
    from typer.testing import CliRunner

    from gpmi import cli

    text = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    for language, file in (("text", "mill.py"), ("toml", "study.toml")):
        [content] = re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
        Path(file).write_text(content, encoding="utf-8")
    [output] = re.findall(r"^```\n\$ gpmi run study.toml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert CliRunner().invoke(cli.app(), ["run", "study.toml"]).stdout == output


# Manual and notes


@pytest.mark.parametrize("page", MANUAL, ids=name_of)
def test_the_manual_is_no_diary(page: Path) -> None:
    """What was compared and dropped is in docs/notes."""
    found = re.findall(
        r"\bprob(?:e|es|ed|ing)\b|without a page|no page\)|\b(?:was|were) tried\b", page.read_text("utf-8")
    )
    assert not found


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", ROOT / "docs" / "index.md", ROOT / "docs" / "start.md", *HOWTOS], ids=name_of
)
def test_a_sentence_has_at_most_40_words(page: Path) -> None:
    found = sentences(page)
    assert len(found) > 7
    assert not [one for one in found if len(re.findall(r"\w[\w.,'’-]*", one)) > 40]


@pytest.mark.parametrize("page", [page for page in HOWTOS if page.name != "index.md"], ids=name_of)
def test_a_how_to_opens_with_the_picture_or_the_output_that_the_reader_will_get(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()[:12]
    fences = [line for line in lines if line.startswith("```")]
    assert fences[:1] == ["```"] or any(line.startswith("![") for line in lines)


def test_the_vocabulary_has_every_word_once() -> None:
    rows = re.findall(
        r"^\| \*\*(.+)\*\* \|", (ROOT / "docs" / "vocabulary.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    words = [word for row in rows for word in row.split("**, **")]
    assert len(words) > 50 and len(words) == len(set(words))


def test_every_note_has_a_date_and_a_page_of_the_manual_that_leads_to_it() -> None:
    overview = (ROOT / "docs" / "notes" / "index.md").read_text(encoding="utf-8")
    linked = "".join(page.read_text(encoding="utf-8") for page in MANUAL)
    for note in NOTES:
        if note.name != "index.md":
            assert re.match(r"# .*\n\n\*\d{4}-\d\d-\d\d[ .]", note.read_text(encoding="utf-8")), note.name
            assert f"]({note.name})" in overview and f"notes/{note.name}" in linked, note.name


@pytest.mark.parametrize("page", MANUAL, ids=name_of)
def test_a_table_copied_from_a_benchmark_is_the_one_of_its_page(page: Path) -> None:
    """`make bench` renews the copies; this fails if a page was changed by hand."""
    text = page.read_text(encoding="utf-8")
    for name in set(re.findall(r"<!-- from benchmarks/(\S+) -->", text)):
        assert harness.with_copies(text, name, (harness.DOCS / name).read_text(encoding="utf-8")) == text


# The site


def test_the_reference_has_every_public_name_and_no_other() -> None:
    pages = [page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference").glob("*.md")]
    described = {name for text in pages for name in re.findall(r"^::: gpmi\.(\S+)$", text, flags=re.MULTILINE)}
    for name in described:
        resolve(name)
    assert set(gpmi.__all__) - {name.rpartition(".")[2] for name in described} == {"kernels"}  # described one by one
    assert {f"gp.kernels.{name}" for name in gpmi.kernels.__all__} <= described


@pytest.mark.parametrize("page", ["docs/gallery.md", "docs/start.md"])
def test_every_picture_is_one_that_a_block_of_the_page_draws(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    shown = set(re.findall(r"!\[[^\]]*\]\(gallery/(\S+)\)", text))
    assert shown and shown == set(re.findall(r'savefig\("(\S+?)"', text))


def test_the_gallery_has_every_kind_of_picture() -> None:
    text = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    assert set(re.findall(r"gpmi\.plots\.(\w+)\(", text)) == set(gpmi.plots.__all__)


# What the pages claim


def test_the_page_on_features_has_a_cell_for_each_tool_and_a_source_for_each_claim() -> None:
    """What holds in part says which part; each link and each footnote is defined, and used."""
    text = (ROOT / "docs" / "features.md").read_text(encoding="utf-8")
    head = "| | gpmi | BoTorch, Ax | Optuna | BayBE | BoFire | scikit-optimize | bayesian-optimization | SMAC |"
    tables = re.findall(rf"^{re.escape(head)}\n[|-]+\n((?:\|.*\n)+)", text, flags=re.MULTILINE)
    rows = [line.strip("|").split("|") for part in tables for line in part.splitlines()]
    assert len(rows) >= 25 and {len(row) for row in rows} == {9}
    assert all("*part*[^" in cell for row in rows for cell in row if "part" in cell.split("[^")[0].split())
    footnotes = dict(re.findall(r"^\[\^([\w-]+)\]: (.*)$", text, flags=re.MULTILINE))
    links = dict(re.findall(r"^\[([\w-]+)\]: (.*)$", text, flags=re.MULTILINE))
    assert set(re.findall(r"\[\^([\w-]+)\](?!:)", text)) == footnotes.keys()
    assert set(re.findall(r"\]\[([\w-]+)\]", text)) == links.keys()
    assert all(link.startswith("https://") for link in links.values())


def test_the_table_of_stopping_rules_gives_their_reasons() -> None:
    text = (ROOT / "docs" / "ledger.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)\(.*?\)` \| .* \| (.*) \|$", text, flags=re.MULTILINE)
    assert {rule for rule, _ in rows} == {
        name
        for name, rule in vars(gpmi.stopping).items()
        if isinstance(rule, type) and issubclass(rule, gpmi.stopping.Rule) and name not in ("Rule", "Either", "Both")
    }


def test_the_number_of_tests_behind_a_verdict_is_the_one_in_the_code() -> None:
    """A sum of squares is found too large at the error's share of one test, and nowhere else."""
    from scipy.special import chdtri, ndtri

    from gpmi.analysis.ledger import calibration

    said = re.search(r"(\w+) tests share an error", (ROOT / "docs" / "ledger.md").read_text(encoding="utf-8"))
    assert said is not None
    share = calibration.ERROR / {"Four": 4, "Five": 5, "Six": 6}[said[1]]
    n = 400
    z = ndtri((np.arange(n) + 0.5) / n)  # as normal as can be: no other test finds anything wrong
    for error, verdict in ((0.99 * share, "over-confident"), (1.01 * share, "fine")):
        assert calibration.judge(z * np.sqrt(chdtri(n, error) / (z @ z)))[0] == verdict


def requirements(extras: str) -> set[str]:
    """The packages that these extras bring, with those of the extras that they name."""
    import tomllib

    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    found = set[str]()
    for line in (line for extra in extras.split(",") for line in known[extra]):
        own = re.fullmatch(r"gpmi\[(.*)\]", line)
        found |= requirements(own[1]) if own else {re.split(r"[\[<>=; ]", line)[0]}
    return found


@pytest.mark.parametrize("page", ["README.md", "docs/start.md"])
def test_the_line_that_installs_brings_all_that_the_page_shows(page: str) -> None:
    installed = re.findall(r'^pip install "\.\[(.*)\]"$', (ROOT / page).read_text(), re.MULTILINE)
    assert len(installed) == 1
    assert requirements(installed[0]) >= requirements("plots,cli,study,postgres,serve") | {"pandas"}
    assert not requirements(installed[0]) & requirements("ax,botorch,hydra,mlflow,ray")
