"""Random requests about outputs to `gpmi serve`: each is answered, and no output is lost, changed or invented.

A case is a conversation with one study. Forms and API calls have random cells, numbers, outputs and buttons, many of
them wrong. After each request the trials are compared with those before: an output changes only if the request is a
correction, vanishes only if it is a retraction, and appears only if the request says its value.
"""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
from fuzzing import play
from laboratory import BASE, Page, client_for

import gpmi

EACH = 40  # requests of a conversation
AT = "/study/default"
NAMES = ("yield", "cost <b>", "purity", "size", "colour")
GOALS = dict(
    zip(NAMES, (gpmi.Max(at_least=1.0), "min", gpmi.AtLeast(0.5), gpmi.Match(3.0, within=9.0), None), strict=True)
)
SPACE = {"a": gpmi.Real(0.0, 1.0), "kind": ["x", "y"]}
SINGLE = {"yield": "min", "cost <b>": None, "purity": gpmi.AtMost(2.0)}
VALID = ("1.5", "2.25 ± 0.5", "3,75", "7", "-4.5")
INVALID = ("failed", "failed: <b>spilt", "1,234", "much", "nan", "9" * 400)
CELLS = (*[""] * 6, "?", *VALID * 3, *INVALID)
WRONG = (None, "much", True, [], {}, 1e300, {"yield": 1.0})
CHANGES = ("correct", "retract")


class Client:
    """Draws requests and sends them."""

    def __init__(self, rng: random.Random, client: Any, names: tuple[str, ...]) -> None:
        self.rng, self.client, self.names = rng, client, names
        self.last = client.get(AT)

    def trials(self) -> dict[int, dict[str, Any]]:
        return {one["number"]: one for one in self.client.get("/api/trials?limit=1000").json()["trials"]}

    def number(self) -> int:
        return self.rng.randrange(6) if self.rng.random() < 0.97 else 99

    def send(self) -> tuple[Any, str, dict[str, Any]]:
        """Send a request. Return its answer, what it does, and what it says."""
        act = self.rng.choice(
            (self.results, self.results, self.trial, self.observe, self.choose, self.ask, *[self.api] * 4)
        )
        return act()

    def form(self, path: str, fields: dict[str, str], word: str) -> tuple[Any, str, dict[str, Any]]:
        page = self.client.get(f"{AT}/trial/0") if "/trial/" in path else self.client.get(AT)
        own = Page(page.text).forms[0].fields if Page(page.text).forms else {}
        data = {"csrf": own.get("csrf", ""), "once": str(self.rng.getrandbits(64)), **fields}
        answer = self.client.post(f"{AT}{path}", data=data, headers={"origin": BASE})
        return answer, word, data

    def results(self) -> tuple[Any, str, dict[str, Any]]:
        fields: dict[str, str] = {}
        for _ in range(self.rng.randrange(8)):
            fields[f"y-{self.number()}-{self.rng.randrange(7)}"] = self.rng.choice(CELLS)
        word = ""
        if self.rng.random() < 0.5:
            word = self.rng.choice(("fail", "reject", "forget", "retract", "again", "correct", "add", "leave"))
            fields[word] = str(self.number())
        if self.rng.random() < 0.2:
            head = self.rng.choice(("", "trial\tpurity\n", "purity\n", "\t".join(self.names) + "\n", "trial\tno\n"))
            fields["pasted"] = head + "\n".join(
                "\t".join(self.rng.choices(CELLS, k=self.rng.randrange(1, 7))) for _ in range(3)
            )
            fields["order"] = ",".join(str(self.number()) for _ in range(3))
        return self.form("/results", fields, word)

    def trial(self) -> tuple[Any, str, dict[str, Any]]:
        word = self.rng.choice(("tell", "correct", "again", "fail", "reject", "forget", "retract", "dance"))
        fields = {f"y-{i}": self.rng.choice(CELLS) for i in range(6) if self.rng.random() < 0.5}
        return self.form(f"/trial/{self.number()}", {"word": word, "why": "<b>", **fields}, word)

    def observe(self) -> tuple[Any, str, dict[str, Any]]:
        fields = {f"own-result-{i}": self.rng.choice(CELLS) for i in range(5)}
        return self.form(
            "/observe", {"own-a": self.rng.choice(("0.5", "2", "x")), "own-kind": "x", **fields}, "observe"
        )

    def choose(self) -> tuple[Any, str, dict[str, Any]]:
        fields = {f"choose-value-{i}": self.rng.choice(("", "", "", "2", "much", "1e300")) for i in range(5)}
        fields |= {f"choose-condition-{i}": self.rng.choice(("least", "most", "?")) for i in range(5)}
        fields |= {
            "choose-output": self.rng.choice("01237x"),
            "choose-direction": self.rng.choice(("min", "max", "match", "up")),
        }
        answer, word, said = self.form("/choose", fields, "choose")
        if answer.status_code == 303 and self.rng.random() < 0.5:
            forms = [
                one
                for one in Page(self.client.get(answer.headers["location"]).text).forms
                if one.action.endswith("/plan")
            ]
            return self.client.post(forms[0].action, data=forms[0].fields, headers={"origin": BASE}), "plan", said
        return answer, word, said

    def ask(self) -> tuple[Any, str, dict[str, Any]]:
        return self.form("/ask", {"n": self.rng.choice(("1", "2", "x"))}, "ask")

    def api(self) -> tuple[Any, str, dict[str, Any]]:
        word = self.rng.choice(("tell", "tell", "correct", "choose", "retract", "fail"))
        body: dict[str, Any] = {"number": self.number()}
        if word in ("tell", "correct"):
            names = self.rng.sample(
                [*self.names, "nothing"] if self.rng.random() < 0.1 else self.names,
                k=self.rng.choice((0, 1, 1, 1, 2, 2)),
            )
            body["outputs"] = {name: self.value() for name in names}
            body |= (
                {"noise_var": self.rng.choice((0.5, {names[0]: 0.5} if names else {}, -1, "x"))}
                if self.rng.random() < 0.3
                else {}
            )
            body |= {"again": True} if word == "tell" and self.rng.random() < 0.3 else {}
        elif word == "choose":
            body = {
                "output": self.rng.choice([*self.names, 5]),
                "direction": self.rng.choice(("min", "max", "match", 1)),
            }
            body |= {
                "where": self.rng.choice(({}, {"yield": ">= 2"}, {"yield": [1, 2]}, {"yield": []}, {"no": "<= 1"}, 5))
            }
        return self.client.post(f"/api/{word}", json=body), word, body

    def value(self) -> Any:
        return self.rng.choice(WRONG) if self.rng.random() < 0.1 else self.rng.choice((1.5, 2.25, 3.75, 7, -4.5))


def check_changes(word: str, said: str, answer: Any, before: dict[int, Any], after: dict[int, Any]) -> None:
    changed = [number for number in before.keys() | after.keys() if before.get(number) != after.get(number)]
    assert not changed or answer.status_code in (200, 303) or "pasted" in said or "y-" in said, changed
    for number in changed:
        old, new = before.get(number), after.get(number)
        if new is None:
            assert old["status"] == "pending" and word == "forget", ("a trial was lost", old)
            continue
        had = {} if old is None else old["outputs"]
        for name, y in new["outputs"].items():
            if name not in had or had[name] != y:
                assert f"{abs(y):g}" in said.replace(",", "."), ("an output that nobody said", name, new)
                assert name not in had or word in CHANGES, ("an output changed", old, new)
        lost = had.keys() - new["outputs"].keys()
        assert not lost or new["status"] == "retracted", ("an output was lost", old, new)


def check_told(word: str, data: dict[str, Any], answer: Any, names: tuple[str, ...], after: dict[int, Any]) -> None:
    """Check that what was accepted is in the study."""
    if word in ("tell", "correct") and answer.status_code == 200:
        shown = answer.json()["trial"]
        told = {name: float(y) for name, y in data["outputs"].items()}
        assert told.items() <= shown["outputs"].items() and after[shown["number"]] == shown, (data, shown)
    if answer.status_code != 303 or word in ("add", "leave", "retract"):
        return
    for field, text in data.items():
        cell = re.fullmatch(r"(?:y-\d+|own-result)-(\d)", field)
        if cell and text in ("1.5", "7", "-4.5") and int(cell[1]) < len(names):
            name = names[int(cell[1])]
            assert float(text) in [one["outputs"].get(name) for one in after.values()], (field, text)


@pytest.mark.fuzz
@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
def test_no_output_is_lost_changed_or_invented(tmp_path: Path) -> None:
    def case(rng: random.Random) -> list[str]:
        goals = rng.choice((GOALS, GOALS, SINGLE))
        path = str(tmp_path / f"{rng.getrandbits(64):x}.db")
        gpmi.study(path, space=SPACE, goals=goals, seed=rng.randrange(100)).close()
        kinds = []
        with client_for(path) as client:
            sender = Client(rng, client, tuple(goals))
            client.post("/api/ask", json={"n": 4})
            before = sender.trials()
            for i in range(EACH):
                answer, word, data = sender.send()
                try:
                    assert answer.status_code < 500 and "Traceback" not in answer.text, answer.text
                    assert "<b>" not in answer.text or "json" in answer.headers["content-type"]
                    after = sender.trials()
                    check_changes(word, repr(data), answer, before, after)
                    check_told(word, data, answer, sender.names, after)
                except Exception as error:
                    raise AssertionError(f"request {i}: {word} {data}\n{error!r}") from error
                before = after
                kinds.append(f"{answer.status_code // 100}xx")
            for page in (AT, f"{AT}/trials", f"{AT}/trials.csv", "/api/front", f"{AT}/trial/{min(before)}"):
                assert client.get(page).status_code == 200
        with gpmi.study(path) as study:
            assert study.verify() and not study.warnings
        return kinds

    play("requests about outputs", "GPMI_OUTPUT_REQUESTS", 4 * EACH, case, each=EACH)
