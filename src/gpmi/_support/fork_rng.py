"""Random generators of a function that is evaluated in a forked process.

The process has a copy of everything, so a draw in f does not advance the generator here. A generator made outside of f
would start from the same state in each evaluation, and its noise would repeat unnoticed. Here each evaluation gets a
stream of its own, seeded by a draw from the generator. The run is still a function of the generator's state, though its
numbers differ from those of a run without processes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from types import FunctionType, MethodType
from typing import Any

import numpy as np

BITS = 128


def split_generators(f: Callable[..., Any]) -> Callable[[], None]:
    """Draw a seed from each generator that f can reach. Return a function that seeds them in the forked process.

    It finds the global generators of `random` and `numpy.random`, and those f reaches through globals, its closure, the
    arguments of a `partial`, or the attributes of its object. Others are not found.
    """
    seeds = [(generator, _draw_seed(generator)) for generator in {id(value): value for value in _reachable(f)}.values()]
    return partial(_seed_all, seeds)


def _reachable(f: Any) -> Iterator[Any]:
    yield random
    yield np.random
    for value in _values(f):
        if isinstance(value, random.Random | np.random.Generator | np.random.RandomState):
            yield value


def _values(f: Any) -> Iterator[Any]:
    """Yield the objects that a function refers to."""
    if isinstance(f, partial):
        yield from [*f.args, *f.keywords.values()]
        yield from _values(f.func)
    elif isinstance(f, MethodType):
        yield from [*getattr(f.__self__, "__dict__", {}).values()]
        yield from _values(f.__func__)
    elif isinstance(f, FunctionType):
        yield from (f.__globals__[name] for name in f.__code__.co_names if name in f.__globals__)
        yield from [*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()]
        for cell in f.__closure__ or ():
            try:
                yield cell.cell_contents
            except ValueError:  # an empty cell
                continue
    else:
        yield from [*getattr(f, "__dict__", {}).values()]
        call = vars(type(f)).get("__call__")
        if isinstance(call, FunctionType):
            yield from _values(call)


def _draw_seed(generator: Any) -> list[int]:
    """Draw a seed, as numbers of 32 bits."""
    if isinstance(generator, np.random.Generator):
        return [int(word) for word in generator.integers(2**32, size=BITS // 32, dtype=np.uint32)]
    if generator is np.random or isinstance(generator, np.random.RandomState):
        return [int(word) for word in generator.randint(2**32, size=BITS // 32, dtype=np.uint32)]
    return [generator.getrandbits(32) for _ in range(BITS // 32)]


def _seed_all(seeds: list[tuple[Any, list[int]]]) -> None:
    for generator, seed in seeds:
        _seed(generator, seed)


def _seed(generator: Any, seed: list[int]) -> None:
    if isinstance(generator, np.random.Generator):
        bits: Any = generator.bit_generator
        bits.state = type(bits)(seed).state
    elif generator is np.random or isinstance(generator, np.random.RandomState):
        generator.seed(seed)
    else:
        generator.seed(sum(word << (32 * place) for place, word in enumerate(seed)))
