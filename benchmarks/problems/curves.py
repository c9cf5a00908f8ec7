"""Trainings with a learning curve, whose value at the last step is to be maximised.

`Task("3945")` is LCBench: a neural network on a data set of OpenML, seven hyperparameters, the validation accuracy
after each of 52 epochs in %. The curves are those of YAHPO's surrogate (Pfisterer and others 2022) of LCBench (Zimmer
and others 2021), which is read from ../shared/data/lcbench and runs with the package onnxruntime, on one thread. Rules
may be tuned on DEVELOPMENT. REPORTED chose nothing.

`Learners("44", split)` is LCDB (Mohr and others 2022): real curves of twenty learners over the size of the sample that
they were trained on, for one of 25 splits of a data set. The package lcdb has them.

Both have the same methods. `missing` says what is not at hand.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import gpmi

from .functions import Array

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "lcbench"
BEST = Path(__file__).with_name("curves.json")
DEVELOPMENT = ("3945", "126026", "167152", "168910", "189873")
REPORTED = (
    *("7593", "34539", "126025", "146212", "167104", "167161", "167181", "167184", "167190", "167200"),
    *("168329", "168331", "168868", "189354", "189865"),
)
EPOCHS, SAMPLE = 52, 20_000  # the best of so many random configurations is what regrets are measured from
INPUTS = ("batch_size", "learning_rate", "momentum", "weight_decay", "num_layers", "max_units", "max_dropout")
ACCURACY = 1  # the model's output of the validation accuracy

# Data sets for which all twenty learners have a value at all sample sizes of all splits, and whose best learner is at
# least MARGIN better than the median one at the largest size: the TABLES with the largest samples. The next three are
# there for development. `chosen` finds them.
TABLES, MARGIN, SPLITS = 12, 0.02, 25
LEARNER_REPORTED = (
    *("lcdb-901", "lcdb-823", "lcdb-722", "lcdb-735", "lcdb-761", "lcdb-847"),
    *("lcdb-41142", "lcdb-720", "lcdb-41156", "lcdb-728", "lcdb-4134", "lcdb-1042"),
)
LEARNER_DEVELOPMENT = ("lcdb-41158", "lcdb-41144", "lcdb-1485")


def missing(name: str = "") -> str | None:
    """Say what is not at hand for a task, or return None."""
    if name.startswith("lcdb"):
        return None if find_spec("lcdb") and find_spec("pandas") else "the package lcdb is not installed"
    if not (DATA / "model.onnx").exists():
        return "there are no data in ../shared/data/lcbench"
    return None if find_spec("onnxruntime") else "the package onnxruntime is not installed"


def build(name: str, seed: int = 0) -> Task | Learners:
    """Return a task by its name in the tables: "3945" or "lcdb-44". The seed of a run is the split of real curves."""
    return Learners(name.removeprefix("lcdb-"), seed % SPLITS) if name.startswith("lcdb-") else Task(name)


# LCBench


@cache
def model() -> Any:
    """Return the surrogate, on one thread."""
    onnxruntime: Any = import_module("onnxruntime")

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(DATA / "model.onnx", options, providers=["CPUExecutionProvider"])


@cache
def ranges() -> dict[str, dict[str, Any]]:
    """Return what the configuration space says about each hyperparameter."""
    found = json.loads((DATA / "config_space.json").read_text())["hyperparameters"]
    return {entry["name"]: entry for entry in found if entry["name"] in INPUTS}


@cache
def numbers() -> dict[str, int]:
    """Return the model's number of each task."""
    found: dict[str, int] = json.loads((DATA / "encoding.json").read_text())["OpenML_task_id"]
    return found


class Task:
    """A neural network on one data set: its curve has a value after each of 52 epochs."""

    steps = EPOCHS

    def __init__(self, task_id: str | int) -> None:
        self.name, self.number = str(task_id), numbers()[str(task_id)]

    def space(self) -> dict[str, Any]:
        """Return the seven hyperparameters."""
        kinds = {"uniform_int": gpmi.Int, "uniform_float": gpmi.Real}
        found = {name: ranges()[name] for name in INPUTS}
        return {name: kinds[p["type"]](p["lower"], p["upper"], log=p["log"]) for name, p in found.items()}

    def curve(self, config: Mapping[str, Any]) -> Array:  # (52,)
        """Return the validation accuracy after each epoch, in %."""
        row = [float(config[name]) for name in INPUTS]
        return self._accuracy(np.column_stack([np.arange(1, EPOCHS + 1), np.tile(row, (EPOCHS, 1))]))

    def finals(self, configs: Array) -> Array:  # (n, 7) in the order of INPUTS -> (n,)
        """Return the validation accuracies after the last epoch, in %."""
        return self._accuracy(np.column_stack([np.full(len(configs), EPOCHS), configs]))

    @property
    def best(self) -> float:
        """Return the best of 20,000 random configurations, after the last epoch."""
        return stored().get(self.name) or self.search()

    def search(self) -> float:
        """Draw the random configurations and return the best value."""
        rng = np.random.default_rng(20_000)
        columns = []
        for p in (ranges()[name] for name in INPUTS):
            whole = p["type"] == "uniform_int"
            lo, hi = p["lower"] - 0.5 * whole, p["upper"] + 0.5 * whole
            draw = np.exp(rng.uniform(np.log(lo), np.log(hi), SAMPLE)) if p["log"] else rng.uniform(lo, hi, SAMPLE)
            columns.append(np.clip(np.round(draw), p["lower"], p["upper"]) if whole else draw)
        return float(self.finals(np.column_stack(columns)).max())

    def _accuracy(self, inputs: Array) -> Array:  # (n, 8)
        tasks = np.full((len(inputs), 1), self.number, dtype=np.int32)
        (outputs,) = model().run(None, {"x_cat": tasks, "x_cont": inputs.astype(np.float32)})
        accuracies: Array = np.asarray(outputs[:, ACCURACY], dtype=float)
        return accuracies


@cache
def stored() -> dict[str, float]:
    """Return the best values that are stored, by task."""
    found: dict[str, float] = json.loads(BEST.read_text()) if BEST.exists() else {}
    return found


def find_best() -> dict[str, float]:
    """Search all tasks for their best values, and write what was found."""
    found = {name: Task(name).search() for name in (*DEVELOPMENT, *REPORTED)}
    BEST.write_text(json.dumps(found, indent=1) + "\n")
    stored.cache_clear()
    return found


# LCDB


@cache
def scores() -> Any:
    """Return the validation accuracies of LCDB: a series by data set, split, learner and sample size."""
    import pandas as pd

    spec = find_spec("lcdb")  # the package itself imports what nobody needs here
    assert spec is not None and spec.origin is not None
    names = ["openmlid", "outer_seed", "inner_seed", "learner", "size_train"]
    frame = pd.read_csv(Path(spec.origin).with_name("database-accuracy.csv"), usecols=[*names, "score_valid"])
    frame = frame[(frame["outer_seed"] < 5) & (frame["inner_seed"] < 5)]
    frame["split"] = 5 * frame["outer_seed"] + frame["inner_seed"]
    return frame.groupby(["openmlid", "split", "learner", "size_train"])["score_valid"].mean()


@cache
def curves(data: str) -> tuple[tuple[str, ...], tuple[int, ...], Array]:
    """Return the learners of a data set, its sample sizes, and the accuracies (splits, learners, sizes)."""
    block = scores().loc[int(data)].unstack("size_train")
    learners = tuple(sorted(block.index.unique("learner")))
    places = [(split, learner) for split in range(SPLITS) for learner in learners]
    values = block.reindex(places).to_numpy().reshape(SPLITS, len(learners), -1)
    return learners, tuple(map(int, block.columns)), values


def chosen() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the data sets to report and those for development, by the rule above."""
    found = []
    for data in map(str, scores().index.unique("openmlid")):
        learners, sizes, values = curves(data)
        last = values[:, :, -1].mean(axis=0)
        if len(learners) == 20 and np.isfinite(values).all() and last.max() - np.median(last) >= MARGIN:
            found.append((-sizes[-1], int(data)))
    names = tuple(f"lcdb-{data}" for _, data in sorted(found))
    return names[:TABLES], names[TABLES : TABLES + 3]


class Learners:
    """Twenty learners on one split of a data set: a curve has a value at each sample size, which are its steps."""

    def __init__(self, data: str | int, split: int = 0) -> None:
        self.name, self.split = f"lcdb-{data}", split
        self.learners, self.sizes, values = curves(str(data))
        self.values: Array = 100 * values[split]

    @property
    def steps(self) -> int:
        return len(self.sizes)

    def space(self) -> dict[str, Any]:
        """Return the choice of a learner."""
        return {"learner": gpmi.Choice(self.learners)}

    def curve(self, config: Mapping[str, Any]) -> Array:  # (steps,)
        """Return the validation accuracy at each sample size, in %."""
        found: Array = self.values[self.learners.index(config["learner"])]
        return found

    @property
    def best(self) -> float:
        """Return the accuracy of the best learner at the largest sample size."""
        return float(self.values[:, -1].max())
