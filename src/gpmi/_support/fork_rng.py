"""Random generators of a function that is evaluated in a forked process.

The process has a copy of everything, so what f draws there is not drawn here: a generator made outside of f would start
from the same state in each evaluation, and noise would repeat itself without anybody noticing. Here each evaluation
gets a stream of its own, drawn from the generator, which goes on: the run is a function of its state, as it is without
processes, with other numbers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from types import FunctionType, MethodType
from typing import Any

import numpy as np

BITS = 128


def parted(f: Callable[..., Any]) -> Callable[[], None]:
    """Draw a seed from each generator that f reaches; what is returned is called in the forked process, and seeds them.

    These are the generators of `random` and `numpy.random` themselves, and those that f has as a global variable, in
    its closure, as an argument of a `partial`, or as an attribute of its object. Others are not found.
    """
    seeds = [(generator, _drawn(generator)) for generator in {id(one): one for one in _reached(f)}.values()]
    return partial(_seed_all, seeds)


def _reached(f: Any) -> Iterator[Any]:
    yield random
    yield np.random
    for value in _values(f):
        if isinstance(value, random.Random | np.random.Generator | np.random.RandomState):
            yield value


def _values(f: Any) -> Iterator[Any]:
    """What a function has at hand."""
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
            except ValueError:  # nothing in it yet
                continue
    else:
        yield from [*getattr(f, "__dict__", {}).values()]
        own = vars(type(f)).get("__call__")
        if isinstance(own, FunctionType):
            yield from _values(own)


def _drawn(generator: Any) -> list[int]:
    """A seed, as numbers of 32 bits."""
    if isinstance(generator, np.random.Generator):
        return [int(word) for word in generator.integers(2**32, size=BITS // 32, dtype=np.uint32)]
    if generator is np.random or isinstance(generator, np.random.RandomState):
        return [int(word) for word in generator.randint(2**32, size=BITS // 32, dtype=np.uint32)]
    return [generator.getrandbits(32) for _ in range(BITS // 32)]


def _seed_all(seeds: list[tuple[Any, list[int]]]) -> None:
    for generator, drawn in seeds:
        _seed(generator, drawn)


def _seed(generator: Any, drawn: list[int]) -> None:
    if isinstance(generator, np.random.Generator):
        bits: Any = generator.bit_generator
        bits.state = type(bits)(drawn).state
    elif generator is np.random or isinstance(generator, np.random.RandomState):
        generator.seed(drawn)
    else:
        generator.seed(sum(word << (32 * place) for place, word in enumerate(drawn)))
