"""The risk of a failure that a query may take, so that about one query in ten fails.

If the best point lies at the edge of the feasible region, all remaining gain is there. Weighing by the probability of
success p is not enough then: a point beyond the edge with p = 0.03 promises more than the inside, and half of the
queries fail. With a small risk a run creeps towards the edge: if the edge may be anywhere on the remaining way, a query
that fails with probability r goes a share r of that way. So a run has an allowance of failures, and
spends it on the remaining queries.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from gpmi.policies.policy import LOG_SAFE, SAFE

# The share of its queries that may fail, and how many of the last queries, and of those to come, are counted.
ALLOWED, LATELY = 0.1, 30
# The remaining allowance is divided among two of three remaining queries; the others are assumed safe. No query may
# take a larger risk than RISK. Where the risk is larger, the exponent of the penalty on a gain (`State.caution`) is
# DEARER for each failure among the last queries. Chosen on edges through the maximisers of random hills
# (benchmarks/failures.py --tuning), other seeds than those of its page. With the limits 0.25, 0.17, 0.08
# and 0.05 after 0, 1, 2 and 3 failures of 30, whatever was left of the run, 7 % of the queries failed, and the median
# gap was four times as large.
SAFE_ONES, RISK, DEARER = 1.5, 0.25, 10.0
# Once the allowance of ENOUGH queries or more is used up, points that are not SAFE are avoided while others are left.
ENOUGH = 10
# An escape must succeed with probability ESCAPE while a query may take the risk PLENTY, otherwise with SAFE. Everything
# far from the successful points may fail, so SAFE alone would miss hills that are visible only from there.
ESCAPE, PLENTY = 0.5, 0.17


class Risk(NamedTuple):
    """How much a policy avoids points that may fail."""

    caution: float = 0.0  # see `State`
    log_enough: float = LOG_SAFE
    used_up: bool = False  # whether to avoid points that are not SAFE
    log_far: float = LOG_SAFE  # the logarithm of the smallest success probability of an escape


def risk_of(failed: int, ended: int, left: int | None) -> Risk:
    """Return the risk that the next query may take, after `failed` of the last `ended` queries of the policy failed.

    `ended` is at most LATELY. `left` is the number of queries to come, this one included; None if it is unknown.
    """
    left = LATELY if left is None else min(left, LATELY)
    allowance = ALLOWED * (ended + left) - failed
    share = min(RISK, allowance / (1.0 + left / SAFE_ONES))
    log_enough = min(LOG_SAFE, math.log1p(-share)) if share > 0.0 else LOG_SAFE
    log_far = math.log(ESCAPE) if share >= PLENTY else LOG_SAFE
    return Risk(DEARER * failed, log_enough, ended >= ENOUGH and share <= 1.0 - SAFE, log_far)
