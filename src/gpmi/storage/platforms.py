"""What the last digits of a suggestion depend on: NumPy, SciPy, BLAS, the C library and the processor.

The same processor may run other code: NumPy and BLAS choose their vector units when they are loaded, and environment
variables may choose others. So the choice is part of the platform.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy

from gpmi._support.checks import shown

NAMES = {"numpy": "NumPy", "vectors": "vector units", "scipy": "SciPy", "blas": "BLAS", "libc": "libc", "cpu": "CPU"}
NONE = "none"  # of the vector units that a processor may lack


@lru_cache
def own_platform() -> Mapping[str, str]:
    """Return the versions of the arithmetic in this process, as a study stores them."""
    versions = {
        "numpy": np.__version__,
        "vectors": _vector_units(),
        "scipy": scipy.__version__,
        "blas": _blas(),
        "libc": " ".join(platform.libc_ver()).strip(),
        "cpu": _processor(),
    }
    return MappingProxyType(versions)


def described_platform(stored: Any) -> str:
    """Return a stored platform as readable text."""
    if not isinstance(stored, Mapping):
        return "an unknown platform"
    return ", ".join(f"{NAMES[name]} {shown(stored[name])[1:-1]}" for name in NAMES if stored.get(name))


def _vector_units() -> str:
    """Return the instruction sets beyond NumPy's baseline that NumPy uses on this processor; NONE if it uses none."""
    about: Any = np.show_config(mode="dicts")
    return " ".join(about.get("SIMD Extensions", {}).get("found", ())) or NONE


def _blas() -> str:
    """Return the loaded BLAS libraries with the kernels that they chose for this processor."""
    import scipy.linalg  # noqa: F401 - so that its library is loaded, too
    from threadpoolctl import threadpool_info

    libraries = [library for library in threadpool_info() if library.get("user_api") == "blas"]
    texts = {
        " ".join(str(library.get(key) or "") for key in ("internal_api", "version", "architecture"))
        for library in libraries
    }
    return " and ".join(sorted(text.strip() for text in texts))


def _processor() -> str:
    """Return the architecture and the model of the processor."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return f"{platform.machine()} {line.partition(':')[2].strip()}"
    return " ".join(filter(None, (platform.machine(), platform.processor())))
