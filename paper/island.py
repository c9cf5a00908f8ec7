"""Where does an island make the tsunami behind it worst? Every evaluation is a simulation, about 20 s on one core.

    python -m paper.island [evaluations] [how fine the mesh is, 1 for that of the table]

Run it from the root of the repository. It needs Matplotlib, rich and ANUGA (paper/requirements.txt).
"""

import sys

import gpmi
from paper.tasks import tsunami


def main(budget: int = 15, fineness: float = 1.0) -> None:
    """Maximise the amplification, print the worst place and draw the run."""
    settings = tsunami.Settings().refined(fineness)

    def amplification(point: dict[str, float]) -> float:
        return tsunami.simulate(**point, settings=settings).amplification

    result = gpmi.maximize(amplification, tsunami.SPACE, budget=budget, seed=0, progress=sys.stderr.isatty())
    print(f"worst of {len(result.trials)}: {result.y:.3f} times the run-up one radius of the island's foot aside, at")
    for name, value in (result.x or {}).items():
        print(f"  {name:12} {value:.4g}")
    gpmi.plots.run(result).savefig("tsunami.png", dpi=150)


if __name__ == "__main__":
    main(*(number(text) for number, text in zip((int, float), sys.argv[1:], strict=False)))
