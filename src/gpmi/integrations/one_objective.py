"""Tools that optimise one value: what is refused there of a run with several goals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpmi.policies import JointPolicy


def check_options(options: Mapping[str, Any], owner: str, remedy: str) -> None:
    """Refuse arguments of `gpmi.Optimizer` that are for several outputs."""
    if options.get("goals") is not None:
        raise TypeError(f"goals is not an argument of {owner}, which optimises one value; {remedy}")
    check_policy(options.get("policy"), owner)


def check_policy(policy: Any, owner: str) -> None:
    """Refuse a policy for several objectives."""
    if isinstance(policy, JointPolicy):
        raise ValueError(
            f"policy is {policy!r}, for several objectives, but {owner} has one; leave it out, or give another"
        )
