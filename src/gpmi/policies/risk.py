"""What risk of a failure a query may take, so that about one query of ten fails.

Where the best point lies at the edge of what works, everything that is left to gain is there. To weigh by the
probability of success p is not enough then: a point beyond the edge with p = 0.03 promises more than what is left
inside, and half of the queries fail. With a small risk a run creeps towards the edge: where the edge may be anywhere on
the way that is left, a query that fails with probability r goes a share r of that way. So failures are an allowance,
and a run spends what is left of it on the queries that are left.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from gpmi.policies.policy import LOG_SAFE, SAFE

# The share of its queries that may fail, and how many of the last ones, and of those to come, are counted.
ALLOWED, LATELY = 0.1, 30
# What is left of the allowance is meant for two of three queries to come, the others being safe ones; but no query is
# to take a larger risk than RISK. Where p is lower, what a policy gains is weighed by further DEARER powers of p for
# each failure among the last queries. Chosen on edges through the maximisers of random hills (benchmarks/failures.py
# --tuning), other seeds than those of its page. With the limits 0.25, 0.17, 0.08 and 0.05 after 0, 1, 2 and 3 failures
# of 30, whatever was left of the run, 7 % of the queries failed, and the median gap was four times as large.
SAFE_ONES, RISK, DEARER = 1.5, 0.25, 10.0
# While the allowance is used up, of ENOUGH queries or more, points that are not SAFE are left alone if others are left.
ENOUGH = 10
# A point from elsewhere succeeds with probability FAR at least while a query may take the risk PLENTY, and is SAFE
# otherwise: all that is far from what worked may fail, and a hill that is only seen from there would not be found.
FAR, PLENTY = 0.5, 0.17


class Risk(NamedTuple):
    """How a policy weighs what may fail."""

    caution: float = 0.0  # see `State`
    log_enough: float = LOG_SAFE
    used_up: bool = False  # whether points that are not SAFE are to be left alone
    log_far: float = LOG_SAFE  # the logarithm of the p that a point from elsewhere has at least


def risk_of(failed: int, ended: int, left: int | None) -> Risk:
    """The risk that the next query may take, after `failed` of the last `ended` queries of the policy have failed.

    `ended` is at most LATELY. `left` queries, this one included, are still to come; None if nobody knows.
    """
    left = LATELY if left is None else min(left, LATELY)
    allowance = ALLOWED * (ended + left) - failed
    share = min(RISK, allowance / (1.0 + left / SAFE_ONES))
    log_enough = min(LOG_SAFE, math.log1p(-share)) if share > 0.0 else LOG_SAFE
    log_far = math.log(FAR) if share >= PLENTY else LOG_SAFE
    return Risk(DEARER * failed, log_enough, ended >= ENOUGH and share <= 1.0 - SAFE, log_far)
