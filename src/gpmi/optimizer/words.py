"""What is said of trials after they have an outcome, and of points that will not be evaluated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from gpmi._support import checks
from gpmi._support.checks import checked_noise, checked_value
from gpmi._support.interrupts import uninterrupted
from gpmi._support.types import Point
from gpmi.gp.linalg import one_blas_thread
from gpmi.optimizer.belief import Believing, locked, logger
from gpmi.space import Space
from gpmi.trials import Origin, Trial, names_a_trial
from gpmi.trials.dataframe import Shown, trials_given
from gpmi.trials.outcomes import checked_constraints

Observation: TypeAlias = tuple[Point, float, float, int, tuple[float, ...]]  # x, y, noise_var, repeats, constraints


class Words(Believing):
    """The part of an Optimizer with the later words about a trial: they go by the trial or its number."""

    space: Space

    @locked
    def correct(
        self,
        trial: Trial | int,
        y: float,
        *,
        noise_var: float | None = None,
        repeats: int | None = None,
        constraints: Sequence[float] | None = None,
    ) -> Trial:
        """Replace the value of a trial by y: everything is then as if y had been told at first.

        The trial, given as itself or by its number, was told, failed or retracted. noise_var, repeats and constraints
        stay what they were unless they are given. The model is computed anew, and with it the prior: O(n^3). What was
        said of trials when they were chosen (`mu`, `sd`, `phi`, `gamma_hat`) stays in the log: it is what was believed
        then. The `surprise` and `information` of this trial become None; `y_before` keeps the first value that it
        had. Points that are pending stay so: only the next `ask` knows y.
        """
        remedy = "give a trial that was told, failed or retracted; a pending one is told"
        number = self._log.number_with(trial, ("told", "failed", "retracted"), remedy)
        self._require_here(trial, number)
        old, value = self._log[number], checked_value(y)
        noise = checked_noise(
            old.noise_var if noise_var is None else noise_var, old.repeats if repeats is None else repeats
        )
        limits = checked_constraints(
            old.constraints if constraints is None else constraints, self._log.count_of_constraints(number)
        )

        def record() -> Trial:
            corrected = self._log.correct(number, value, *noise, limits)
            self._believe_anew(self._setting.anew())
            return corrected

        return self._said(uninterrupted(record))

    @locked
    def retract(self, trial: Trial | int) -> Trial:
        """Take back the outcome of a trial that was told, failed or rejected: everything is as if it had not been.

        The trial stays in the log with the status "retracted" and its value in `y_before`, but counts for nothing: the
        point may be asked again. What was said of other trials stays, as with `correct`.
        """
        remedy = "give a trial that was told, failed or rejected; a pending one is forgotten"
        number = self._log.number_with(trial, ("told", "failed", "rejected"), remedy)
        self._require_here(trial, number)

        def record() -> Trial:
            retracted = self._log.retract(number)
            self._believe_anew(self._setting.anew())
            return retracted

        return self._said(uninterrupted(record))

    @locked
    def reject(self, x: Point | Trial | int) -> Trial:
        """Record that x will not or cannot be evaluated: a pending point, or any other point of the space.

        On a finite set the row is not offered again. Elsewhere no point is offered within a thousandth of the width of
        the space in every coordinate, and none within 5 % of it before 5 more values have been told. It is no failure:
        the model learns nothing from it. `retract` takes it back.
        """
        number = self._pending_number(x) if names_a_trial(x) else self._meant(x)

        def record() -> Trial:
            known = self._add(self.space.canonical(x), "user").number if number is None else number
            return self._log.settle(known, None, rejected=True)

        return self._said(uninterrupted(record))

    @locked
    def tell_all(self, observations: Iterable[Any] | Shown, *, noise_var: float = 0.0) -> list[Trial]:
        """Tell values that are known already, as those of an earlier run: each as by `tell`, in their order.

        An observation is (x, y), (x, y, noise_var), or a Trial, of which those with a value count, with their own
        noise_var, repeats and constraints; a Result stands for its trials. The argument noise_var is added to that of
        each one: how far that run may be off. Nothing is told if one of them is refused.
        """
        with one_blas_thread:
            return [self._tell(one[0], self._meant(one[0]), *one[1:]) for one in self._known(observations, noise_var)]

    def _known(self, observations: Iterable[Any] | Shown, noise_var: float) -> list[Observation]:
        """Observations as `tell_all` takes them, all checked before one is told."""
        extra, _ = checked_noise(noise_var, 1)
        given = trials_given("observations", observations)
        count, checked = self._log.count_of_constraints(), []
        for one in given:
            if not isinstance(one, Trial) or one.status == "told":
                checked.append(self._checked(one, extra, count))
                count = len(checked[-1][-1])
        return checked

    def _checked(self, observation: Any, extra: float, count: int | None) -> Observation:
        """An observation as `_tell` takes it; it has `count` constraints."""
        limits: tuple[float, ...] = ()
        if isinstance(observation, Trial):
            x, y, own, repeats = observation.x, observation.y, observation.noise_var, observation.repeats
            limits = observation.constraints
        elif isinstance(observation, tuple | list) and len(observation) in (2, 3):
            (x, y), own, repeats = observation[:2], observation[2] if len(observation) == 3 else 0.0, 1
        else:
            what = checks.shown(observation)
            raise TypeError(f"observations has {what}; give (x, y), (x, y, noise_var) or a Trial")
        noise, repeats = checked_noise(own, repeats)
        limits = checked_constraints(limits, count)
        return self.space.canonical(x), checked_value(y), checked_noise(noise + extra, 1)[0], repeats, limits

    # How it is done

    def _tell(
        self,
        x: Point,
        number: int | None,
        y: float,
        noise_var: float,
        repeats: int,
        constraints: tuple[float, ...] = (),
    ) -> Trial:
        """Record a checked value of the pending trial with this number, or of a new one at x."""

        def record() -> Trial:
            told = self._add(self.space.canonical(x), "user").number if number is None else number
            return self._log.settle(told, y, noise_var=noise_var, repeats=repeats, constraints=constraints)

        before = self._foreseeing()
        trial: Trial = uninterrupted(record)
        return self._said(trial if before is None else self._compare(trial, before))

    def _add(self, x: Point, origin: Origin, **said: Any) -> Trial:
        """A new pending trial at x, with what the model says of it."""
        return self._log.add(self.space.frozen(x), self.space.encode(x), origin, **said)

    def _said(self, trial: Trial) -> Trial:
        logger.info("%r", trial)
        return trial

    def _meant(self, x: Point) -> int | None:
        """The pending trial that is meant by a point, if any."""
        return self._log.find_pending(self.space.encode(x), self.space.rounding)

    def _pending_number(self, x: Point | Trial | int) -> int:
        if not names_a_trial(x):
            number = self._meant(x)
            if number is None:
                raise ValueError(f"x is {x!r}, which is not pending; only points that were asked and not yet told are")
            return number
        number = self._log.pending_number(x)
        self._require_here(x, number)
        return number

    def _require_here(self, x: Trial | int, number: int) -> None:
        """Refuse a trial of another run that has the number of one of this run."""
        if isinstance(x, Trial) and not np.array_equal(self.space.encode(x.x), self._log.row(number)):
            raise ValueError(f"x is {x!r}, but trial {number} of this run is at another point; give one of its trials")
