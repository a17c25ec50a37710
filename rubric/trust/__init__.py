"""How far a judge can be trusted: agreement, calibration, corrected estimates, comparisons, drift (extra `stats`)."""

from __future__ import annotations

try:
    import numpy as np
    from scipy import stats
except ImportError as error:
    message = "rubric.trust takes numpy and scipy: pip install rubric-grade[stats]"
    raise ImportError(message, name=error.name) from error

del np, stats
