"""Figures show the numbers of the posterior and of the run, with labels."""

import io
import sys
from functools import cache

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

import gpmi
from gpmi import kernels, plots
from gpmi._support.sobol import sobol
from gpmi.analysis.ledger.history import LOOKS
from gpmi.analysis.ledger.ledger import Ledger, Regret
from gpmi.views.figures.contours import GRID, MapPlane
from gpmi.views.pictures.slices import DEVIATION, MEAN
from gpmi.views.reading import view_of

pytestmark = pytest.mark.usefixtures("few_draws")

MIXED = {
    "rate": gpmi.Real(1e-4, 1.0, log=True),
    "layers": gpmi.Int(1, 6),
    "kind": ["relu", "tanh", "cost $"],
    "x": (0.0, 1.0),
}


def hill(x):
    return -float(np.sum((np.asarray(x) - 0.3) ** 2))


def mixed_hill(p):
    return -((np.log10(p["rate"]) + 2.0) ** 2) - (p["layers"] - 3) ** 2 + (p["kind"] == "tanh") - (p["x"] - 0.5) ** 2


@cache
def box_run(d, *, budget=8, goal="max", policy=None):
    optimise = gpmi.maximize if goal == "max" else gpmi.minimize
    prior = {"kernel": kernels.RBF(0.4), "noise_var": 1e-4}
    f = hill if goal == "max" else lambda x: -hill(x)
    return optimise(f, [(0.0, 1.0)] * d, budget=budget, n_init=3, seed=0, policy=policy or gpmi.GPMI(), **prior)


@pytest.fixture(scope="module")
def mixed_run():
    return gpmi.maximize(mixed_hill, MIXED, budget=15, seed=0)  # as many as importances need


def panels(figure):
    """Return the axes of a figure that are not colour bars."""
    assert isinstance(figure, Figure)
    return [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]


def titles(figure):
    return [ax.get_title(loc="left") for ax in panels(figure)]


def line(ax, label):
    return next(drawn for drawn in ax.get_lines() if drawn.get_label() == label)


MAPS = ["Queries in order (× initial)", r"Posterior mean $\mu$", r"Posterior deviation $\sigma$"]
TRACES = ["", r"Bonus at the query $\phi_t(x_t)$", r"Variance paid for before $t$, $\hat\gamma_{t-1}$"]


# One dimension


def posterior():
    x = np.array([[0.2], [0.8], [1.1], [2.3]])
    return gpmi.Posterior.prior(kernels.RBF(0.5), 1e-2).condition(x, np.sin(3.0 * x[:, 0]))


def test_figure_1_shows_the_mean_two_deviations_and_the_observations():
    p = posterior()
    (ax,) = panels(plots.posterior_1d(p, 0.0, 3.0, f=lambda x: np.sin(3.0 * x[0]), name="depth"))
    z = line(ax, MEAN).get_xdata()
    mu, var = p(z[:, None])
    assert (z[0], z[-1]) == (0.0, 3.0)
    np.testing.assert_allclose(line(ax, MEAN).get_ydata(), mu, rtol=1e-12)
    np.testing.assert_allclose(line(ax, "f").get_ydata(), np.sin(3.0 * z), rtol=1e-12)
    np.testing.assert_array_equal(line(ax, "observations").get_xydata(), np.column_stack([p.x, p.y]))
    assert line(ax, "observations").get_marker() == "x"
    (band,) = (area for area in ax.collections if area.get_label() == DEVIATION)
    edges = band.get_paths()[0].vertices
    for i in (0, 200, 400):
        heights = edges[np.isclose(edges[:, 0], z[i]), 1]
        assert np.ptp(heights) == pytest.approx(2.0 * np.sqrt(var[i]), rel=1e-9)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("depth", "$y$")
    assert {text.get_text() for text in ax.get_legend().get_texts()} == {MEAN, DEVIATION, "f", "observations"}


def test_figure_1_omits_observations_outside_its_range():
    (ax,) = panels(plots.posterior_1d(posterior(), 0.8, 2.0))
    np.testing.assert_array_equal(line(ax, "observations").get_xdata(), [0.8, 1.1])


def test_figure_1_draws_the_prior_too():
    (ax,) = panels(plots.posterior_1d(gpmi.Posterior.prior(kernels.RBF(0.5), 0.0), -1.0, 1.0))
    np.testing.assert_array_equal(line(ax, MEAN).get_ydata(), 0.0)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((None, 0.0, 1.0), TypeError, "posterior is None; give"),
        ((posterior(), 1.0, 1.0), ValueError, "lo is 1.0 and hi is 1.0; give"),
        ((posterior(), 0.0, np.inf), ValueError, "hi is inf; give"),
        ((posterior(), "a", 1.0), TypeError, "lo is 'a'"),
        ((gpmi.Posterior.prior(kernels.RBF([1.0, 1.0]), 0.0), 0.0, 1.0), ValueError, "has 2 coordinates.*contours"),
    ],
)
def test_figure_1_refuses(arguments, error, words):
    with pytest.raises(error, match=words):
        plots.posterior_1d(*arguments)


# Two dimensions


def test_contours_have_a_panel_each_for_queries_mean_and_deviation():
    figure = plots.contours(box_run(2))
    assert titles(figure) == MAPS
    for ax in panels(figure):
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("x0", "x1")
        assert (ax.get_xlim(), ax.get_ylim()) == ((0.0, 1.0), (0.0, 1.0))


def test_contours_have_a_gap_where_constraints_forbid_points():
    space = {"a": (0.0, 1.0), "b": (0.0, 1.0)}
    run = gpmi.maximize(lambda p: p["a"] * p["b"], space, budget=6, seed=0, constraints=[lambda p: p["a"] >= 0.4])
    plane = MapPlane.of(view_of(run))
    _, mu, _ = plane.bounds(view_of(run))
    np.testing.assert_array_equal(np.isfinite(mu), plane.rows[:, 0] >= 0.4)
    plots.contours(run).savefig("/dev/null", format="png")


def test_contours_show_the_function_first_when_it_is_given():
    assert titles(plots.contours(box_run(2), hill)) == ["Function $f$", *MAPS]


def test_the_function_and_the_mean_share_their_levels():
    function, _, mean, _ = panels(plots.contours(box_run(2), hill))
    levels = [ax.collections[0].levels for ax in (function, mean)]
    np.testing.assert_array_equal(*levels)
    side = np.linspace(0.0, 1.0, GRID)
    assert levels[0][0] <= hill([1.0, 1.0]) and max(hill([a, b]) for a in side for b in side) <= levels[0][-1]


def test_queries_are_drawn_at_their_place_and_in_their_order():
    result = box_run(2)
    queries = panels(plots.contours(result))[0]
    asked = np.array([trial.x for trial in result.trials])
    design, chosen = (drawn for drawn in queries.collections if isinstance(drawn, PathCollection))
    np.testing.assert_array_equal(np.concatenate([design.get_offsets(), chosen.get_offsets()]), asked)
    np.testing.assert_array_equal(np.concatenate([design.get_array(), chosen.get_array()]), np.arange(1, 9))
    assert "1" in {text.get_text() for text in queries.texts}
    star = next(drawn for drawn in queries.get_lines() if drawn.get_marker() == "*")
    np.testing.assert_allclose(star.get_xydata()[0], result.recommended)


def test_an_optimizer_is_drawn_in_the_middle_of_its_run():
    optimizer = gpmi.Optimizer([(0.0, 1.0)] * 2, gpmi.GPMI(), kernel=kernels.RBF(0.4), noise_var=1e-4, seed=0)
    for _ in range(3):
        x = optimizer.ask()
        optimizer.tell(x, hill(x))
    optimizer.ask()
    assert titles(plots.contours(optimizer)) == MAPS


def test_cells_are_drawn_for_discrete_parameters():
    space = {"layers": gpmi.Int(1, 4), "kind": ["a", "b"]}
    result = gpmi.maximize(lambda p: p["layers"] + (p["kind"] == "b"), space, budget=6, seed=0)
    function = panels(plots.contours(result, lambda p: p["layers"] + (p["kind"] == "b")))[0]
    cells = function.collections[0].get_array()
    np.testing.assert_array_equal(cells, [[1.0, 2.0, 3.0, 4.0], [2.0, 3.0, 4.0, 5.0]])
    assert [text.get_text() for text in function.get_yticklabels()] == ["a", "b"]
    assert (function.get_xlabel(), function.get_ylabel()) == ("layers", "kind")


def test_candidates_are_drawn_as_a_grid_if_they_form_one_and_as_dots_otherwise():
    prior = {"kernel": kernels.RBF(0.4), "noise_var": 1e-4}
    grid = np.stack(np.meshgrid(np.linspace(0, 1, 40), np.linspace(0, 1, 35)), -1).reshape(-1, 2)
    dots = np.random.default_rng(0).uniform(size=(50, 2))
    for candidates, drawn_as in ((grid, "QuadContourSet"), (dots, "PathCollection")):
        result = gpmi.maximize(hill, candidates, budget=5, seed=0, **prior)
        function = panels(plots.contours(result, hill))[0]
        assert type(function.collections[0]).__name__ == drawn_as
    np.testing.assert_array_equal(np.sort(function.collections[0].get_array()), np.sort([hill(x) for x in dots]))


def test_a_frame_of_numbers_and_words_is_drawn():
    frame = pd.DataFrame({"size": [1, 2, 3, 1, 2, 3], "kind": list("uuuvvv")})
    f = lambda p: p["size"] * (1.0 + (p["kind"] == "v"))  # noqa: E731
    result = gpmi.maximize(f, frame, budget=5, seed=0)
    function = panels(plots.contours(result, f))[0]
    np.testing.assert_array_equal(function.collections[0].get_array(), [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]])


# More dimensions


def test_a_slice_is_the_posterior_along_one_parameter_through_the_recommended_point(mixed_run):
    figure = plots.slices(mixed_run, mixed_hill)
    drawn = panels(figure)
    kind = "kind\neach at its own best setting"
    assert [ax.get_xlabel() for ax in drawn] == ["rate", "layers", kind, "x"]
    assert [ax.get_xscale() for ax in drawn] == ["log", "linear", "linear", "linear"]
    settings = {
        "rate": line(drawn[0], MEAN).get_xdata(),
        "layers": np.arange(1, 7),
        "kind": MIXED["kind"],
        "x": line(drawn[3], MEAN).get_xdata(),
    }
    for ax, (name, values) in zip(drawn, settings.items(), strict=True):
        values = [type(mixed_run.recommended[name])(value) for value in values]
        points = [{**mixed_run.recommended, name: value} for value in values]
        if name == "kind":
            points = [option.x for option in mixed_run.ledger.options]
        if name == "rate":
            points[0][name], points[-1][name] = 1e-4, 1.0  # exp(log(lo)) may lie outside
        mu, _ = mixed_run.posterior(np.array([mixed_run.space.encode(p) for p in points]))
        np.testing.assert_allclose(line(ax, MEAN).get_ydata(), mu, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(line(ax, "f").get_ydata(), [mixed_hill(p) for p in points], rtol=1e-9, atol=1e-9)


def test_discrete_parameters_are_points_with_bars_of_one_deviation(mixed_run):
    kind = panels(plots.slices(mixed_run))[2]
    points = [option.x for option in mixed_run.ledger.options]
    _, var = mixed_run.posterior(np.array([mixed_run.space.encode(p) for p in points]))
    (bars,) = kind.containers[0].lines[2]
    np.testing.assert_allclose([np.ptp(bar[:, 1]) for bar in bars.get_segments()], 2.0 * np.sqrt(var), rtol=1e-6)
    assert line(kind, MEAN).get_linestyle() == "None"
    assert [text.get_text() for text in kind.get_xticklabels()] == ["relu", "tanh", r"cost \$"]


def test_every_row_of_slices_has_a_scale():
    drawn = panels(plots.slices(box_run(7, budget=4)))
    assert len(drawn) == 7
    assert [ax.get_ylabel() for ax in drawn] == ["f", "", "", "", "f", "", ""]


def test_slices_of_candidates_leave_f_out():
    candidates = np.random.default_rng(0).uniform(size=(40, 3))
    result = gpmi.maximize(hill, candidates, budget=4, seed=0, kernel=kernels.RBF(0.4), noise_var=1e-4)
    assert len(panels(plots.slices(result))) == 3
    assert len(panels(plots.run(result, hill))) == 6
    with pytest.raises(ValueError, match="leave f out"):
        plots.slices(result, hill)


# The run


@pytest.mark.parametrize(("d", "model"), [(1, [""]), (2, ["Function $f$", *MAPS]), (3, ["", "", ""])])
def test_a_run_shows_the_model_and_three_traces(d, model):
    assert titles(plots.run(box_run(d), hill)) == model + TRACES


@pytest.mark.parametrize("goal", ["max", "min"])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_legend_of_the_best_values_covers_none_of_them(d, goal):
    figure = plots.run(box_run(d, goal=goal))
    best, bonus, _ = panels(figure)[-3:]
    figure.canvas.draw()
    legend, axes = best.get_legend().get_window_extent(), best.get_window_extent()
    assert [text.get_text() for text in best.get_legend().get_texts()] == [
        "first points",
        "observed",
        "best so far",
    ]
    assert legend.y0 >= axes.y1 and legend.x1 < bonus.get_tightbbox().x0


@pytest.mark.parametrize("goal", ["max", "min"])
def test_the_traces_show_the_values_of_the_trials(goal):
    result = box_run(2, goal=goal)
    best, bonus, paid = panels(plots.run(result))[-3:]
    y = [trial.y for trial in result.trials]
    accumulated = (np.maximum if goal == "max" else np.minimum).accumulate(y)
    np.testing.assert_array_equal(line(best, "best so far").get_ydata(), accumulated)
    np.testing.assert_array_equal(line(best, "observed").get_ydata(), y)
    chosen = [(t, trial) for t, trial in enumerate(result.trials, 1) if trial.origin == "policy"]
    assert len(chosen) == 5
    for ax, name in ((bonus, "phi"), (paid, "gamma_hat")):
        (drawn,) = ax.get_lines()
        np.testing.assert_array_equal(drawn.get_xydata(), [(t, getattr(trial, name)) for t, trial in chosen])
    assert all(ax.get_xlabel() == "evaluation" for ax in (best, bonus, paid))


def test_a_policy_without_phi_shows_the_deviation_instead():
    result = box_run(2, policy=gpmi.EI())
    bonus = panels(plots.run(result))[-2]
    assert bonus.get_title(loc="left") == r"Deviation at the query $\sigma_t(x_t)$"
    np.testing.assert_array_equal(
        bonus.get_lines()[0].get_ydata(), [t.sd for t in result.trials if t.origin == "policy"]
    )


def test_a_run_with_only_an_initial_design_says_so():
    drawn = panels(plots.run(box_run(2, budget=2)))
    assert [text.get_text() for text in drawn[-1].texts] == ["the policy has chosen no query yet"]


def test_observations_are_crosses_in_a_run_of_one_dimension():
    result = box_run(1)
    ax = panels(plots.run(result))[0]
    np.testing.assert_array_equal(line(ax, "observations").get_ydata(), [trial.y for trial in result.trials])


# All figures


@pytest.mark.slow
def test_every_kind_of_figure_is_drawn_without_a_warning(mixed_run):
    constant = gpmi.maximize(lambda x: 2.0, [(0.0, 1.0)] * 2, budget=5, seed=0)
    figures = [
        plots.posterior_1d(posterior(), 0.0, 3.0, f=hill),
        plots.contours(box_run(2)),
        plots.run(box_run(1), hill),
        plots.run(box_run(2), hill),
        plots.run(box_run(2, budget=1)),
        plots.run(box_run(9, budget=4)),
        plots.run(constant, lambda x: 2.0),
        plots.run(mixed_run, mixed_hill),
    ]
    for figure in figures:
        FigureCanvasAgg(figure).draw()


@pytest.mark.slow
def test_figures_do_not_change_matplotlib_settings():
    import matplotlib

    before = dict(matplotlib.rcParams)
    plots.run(box_run(2), hill)
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("draw", [plots.contours, plots.slices, plots.run])
def test_a_figure_needs_a_run_with_an_observation(draw):
    with pytest.raises(TypeError, match="source is 3; give a Result"):
        draw(3)
    with pytest.raises(ValueError, match=r"source has no observation.*evaluate at least one point"):
        draw(gpmi.Optimizer([(0.0, 1.0)] * 2))


def test_contours_need_two_parameters():
    with pytest.raises(ValueError, match=r"1 parameter, .*posterior_1d"):
        plots.contours(box_run(1, budget=3))


def test_f_must_be_a_function_with_finite_values():
    result = box_run(2, budget=3)
    with pytest.raises(TypeError, match="f is 3; give a function"):
        plots.contours(result, 3)
    with pytest.raises(ValueError, match=r"f returned nan at x = .*leave f out"):
        plots.contours(result, lambda x: np.nan)


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    result = box_run(2, budget=3)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for draw in (plots.contours, plots.slices, plots.run, lambda r: plots.posterior_1d(posterior(), 0.0, 1.0)):
        with pytest.raises(ImportError, match=r'pip install "gpmi\[plots\]"'):
            draw(result)


# The ledger

ACCOUNTS = [
    r"Simple regret, $\max f - f$(recommended)",
    "Information, nats",
    r"Bonus $\phi_t(x_t)$ ($\circ$ exploited)",
]


@pytest.mark.parametrize(("d", "above"), [(1, [""]), (2, MAPS), (3, [])])
def test_the_ledger_has_four_panels_below_the_model_of_one_or_two_parameters(d, above):
    *others, residuals = titles(plots.ledger(box_run(d)))
    assert others == [*above, *ACCOUNTS]
    assert residuals.startswith("Residuals / sd: ")


def test_the_ledger_draws_f_where_it_is_given():
    assert titles(plots.ledger(box_run(2), hill))[:-1] == ["Function $f$", *MAPS, *ACCOUNTS]


def test_the_ledger_s_panels_show_its_numbers():
    result = box_run(1, budget=20)
    regret, information, bonus, residuals = panels(plots.ledger(result))[1:]
    book = result.ledger
    looks = line(regret, "median").get_xdata()
    assert (looks[0], looks[-1], len(looks)) == (4, 20, LOOKS)
    low, high = book.regret(20).interval()
    assert high == pytest.approx(max(v[1] for v in regret.collections[0].get_paths()[0].vertices if v[0] == 20))
    assert line(regret, "median").get_ydata()[-1] >= low
    (gathered,) = (drawn.get_ydata() for drawn in information.get_lines() if len(drawn.get_ydata()))
    np.testing.assert_allclose(gathered[-1], sum(step.information for step in book.steps))
    np.testing.assert_array_equal(bonus.get_lines()[0].get_ydata(), [s.phi for s in book.steps if s.phi is not None])
    exploited = [step.phi for step in book.steps if step.choice == "exploited"]
    np.testing.assert_array_equal(bonus.get_lines()[1].get_ydata(), exploited)
    np.testing.assert_array_equal(residuals.get_lines()[0].get_ydata(), [step.surprise for step in book.steps])
    assert residuals.get_title(loc="left").endswith(book.calibration.verdict)


def test_a_regret_that_falls_by_orders_of_magnitude_has_a_logarithmic_scale(monkeypatch):
    def regret(self, t=None):
        draws = np.linspace(0.0, 10.0**-t, 101)
        return Regret(t, np.zeros(1), draws, np.zeros(101), np.zeros((101, 1)), "made up", learned=False)

    monkeypatch.setattr(Ledger, "regret", regret)
    ax = panels(plots.ledger(box_run(1)))[1]
    assert ax.get_yscale() == "log"
    np.testing.assert_allclose(line(ax, "median").get_ydata(), 0.5 * 10.0 ** -np.arange(4.0, 9.0))
    assert ax.get_ylim()[0] == pytest.approx(0.1 * 0.95e-8)


@pytest.mark.slow
def test_the_ledger_of_a_learned_model_a_policy_without_phi_and_exact_observations_is_drawn(mixed_run):
    figure = plots.ledger(mixed_run)
    FigureCanvasAgg(figure).draw()
    assert len(panels(figure)) == 4
    exact = gpmi.maximize(hill, np.linspace(0, 1, 9)[:, None], budget=4, seed=0, policy=gpmi.EI(),
                          kernel=kernels.RBF(0.4), noise_var=0.0)  # fmt: skip
    figure = plots.ledger(exact)
    FigureCanvasAgg(figure).draw()
    assert titles(figure)[-2] == r"The policy has no $\phi$"


@pytest.mark.slow
def test_the_same_run_gives_the_same_figure():
    def png(figure):
        written = io.BytesIO()
        figure.savefig(written, format="png", dpi=40)
        return written.getvalue()

    first, second = (box_run.__wrapped__(2, budget=6) for _ in range(2))
    for draw in (plots.slices, plots.run, plots.ledger):  # the ledger has the maps of `contours`
        assert png(draw(first)) == png(draw(second))


# Figures that answer one question each


def test_contours_of_many_parameters_are_a_plane_through_the_recommended_point(mixed_run):
    _, mean, _ = panels(plots.contours(mixed_run, params=("rate", "x")))
    assert (mean.get_xlabel(), mean.get_ylabel()) == ("rate", "x")
    figure = Figure()
    ax = figure.add_subplot()
    assert plots.contours(mixed_run, params=("kind", 1), ax=ax) is figure
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("kind", "layers")
    cells = ax.collections[0].get_array()
    points = [[{**mixed_run.recommended, "kind": k, "layers": n} for k in MIXED["kind"]] for n in range(1, 7)]
    mu = [[mixed_run.posterior(mixed_run.space.encode(p)[None])[0][0] for p in row] for row in points]
    np.testing.assert_allclose(cells, mu, rtol=1e-9)
    matter = {one.name for one in gpmi.importances(mixed_run).ranked[:2]}
    assert {
        panels(plots.contours(mixed_run))[0].get_xlabel(),
        panels(plots.contours(mixed_run))[0].get_ylabel(),
    } == matter


@pytest.mark.parametrize("params", [("rate",), ("rate", "rate"), "rate", ("rate", "depth"), (0, 9)])
def test_unknown_parameters_are_refused(mixed_run, params):
    with pytest.raises(ValueError, match=r"params (is|has)"):
        plots.contours(mixed_run, params=params)


def test_convergence_of_several_runs_is_a_median_and_a_band():
    runs = [box_run(2, budget=n) for n in (4, 6)]
    (ax,) = panels(plots.convergence({"GP-MI $": runs, "one": runs[0]}, optimum=0.0))
    best = np.array([np.maximum.accumulate([t.y for t in run.trials]) for run in (runs[0],)])[0]
    np.testing.assert_allclose(line(ax, "one").get_ydata(), -best)
    middle = line(ax, "GP-MI \\$ (2 runs)").get_ydata()
    assert len(middle) == 6 and middle[-1] == pytest.approx(-np.median([runs[0].y, runs[1].y]))
    assert ax.get_yscale() == "log"
    (alone,) = panels(plots.convergence(box_run(2, goal="min", budget=4)))
    assert alone.get_ylabel().startswith("smallest") and np.all(np.diff(alone.get_lines()[-1].get_ydata()) <= 0.0)


def test_runs_that_cannot_be_compared_are_refused():
    with pytest.raises(ValueError, match="two figures"):
        plots.convergence([box_run(1, budget=3), box_run(1, budget=3, goal="min")])
    for nothing in ([], {}, gpmi.Optimizer([(0.0, 1.0)], seed=0)):
        with pytest.raises(ValueError, match="source has no"):
            plots.convergence(nothing)


def test_bars_and_curves_show_the_importances(mixed_run):
    found = gpmi.importances(mixed_run)
    (ax,) = panels(plots.importances(mixed_run))
    assert [text.get_text() for text in ax.get_yticklabels()] == [one.name for one in found.ranked]
    widths = [bar.get_width() for bar in ax.containers[0]]
    np.testing.assert_allclose(widths, [one.total for one in found.ranked])
    (rate,) = panels(plots.partial_dependence(mixed_run, "rate"))
    np.testing.assert_allclose(line(rate, "mean over the others").get_ydata(), found.each[0].effect)
    assert len(panels(plots.partial_dependence(mixed_run))) == 4
    with pytest.raises(ValueError, match="ax is given for 2 parameters"):
        plots.partial_dependence(mixed_run, ("rate", "x"), ax=Figure().add_subplot())


def test_with_too_few_values_importances_are_refused_and_contours_are_of_the_first_two_parameters():
    opt = gpmi.Optimizer([(0.0, 1.0)] * 3, seed=0)
    for x in sobol(3, 3, (1,)):
        opt.tell(x, hill(x))
    for draw in (plots.importances, plots.partial_dependence):
        with pytest.raises(ValueError, match="not known yet: it takes 12 values to say, and there are 8"):
            draw(opt)
    assert [panels(plots.contours(opt))[0].get_xlabel(), panels(plots.contours(opt))[0].get_ylabel()] == [
        "x0",
        "x1",
    ]


def test_every_figure_can_be_drawn_into_axes_from_every_source(mixed_run, tmp_path):
    space = [(0.0, 1.0)] * 2
    with gpmi.study(tmp_path / "s.db", space=space, seed=0) as study:
        for x in sobol(2, 4, (1,))[:9]:
            study.tell(x, hill(x))
        for draw in (plots.convergence, plots.importances, plots.partial_dependence, plots.parallel, plots.calibration,
                     plots.contours):  # fmt: skip
            for source in (study, gpmi.Optimizer(space, seed=0).replay(study), box_run(2, budget=4), mixed_run):
                figure = Figure()
                ax = figure.add_subplot()
                assert draw(source, ax=ax) is figure
                assert ax.has_data() or ax.texts
    others, best = panels(plots.parallel(mixed_run))[0].collections
    assert (len(best.get_segments()), len(others.get_segments())) == (10, len(mixed_run.trials) - 10)
