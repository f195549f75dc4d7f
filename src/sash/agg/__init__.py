"""What is aggregated: factories of immutable aggregations, a module per family.

The names shadow built-ins on purpose: ``from sash import agg`` and write ``agg.sum()``. A family lists its factories in its own
``__all__``, so that a new one is added there and nowhere else.
"""

from sash.agg import custom, decayed, ends, extremes, largest, membership, models, moments, ordered, ranks, sketches, sums
from sash.agg.base import Aggregation
from sash.agg.custom import *  # noqa: F403
from sash.agg.decayed import *  # noqa: F403
from sash.agg.ends import *  # noqa: F403
from sash.agg.extremes import *  # noqa: F403
from sash.agg.largest import *  # noqa: F403
from sash.agg.membership import *  # noqa: F403
from sash.agg.models import *  # noqa: F403
from sash.agg.moments import *  # noqa: F403
from sash.agg.ordered import *  # noqa: F403
from sash.agg.ranks import *  # noqa: F403
from sash.agg.sketches import *  # noqa: F403
from sash.agg.sums import *  # noqa: F403

__all__ = ["Aggregation"]
__all__ += custom.__all__
__all__ += decayed.__all__
__all__ += ends.__all__
__all__ += extremes.__all__
__all__ += largest.__all__
__all__ += membership.__all__
__all__ += models.__all__
__all__ += moments.__all__
__all__ += ordered.__all__
__all__ += ranks.__all__
__all__ += sketches.__all__
__all__ += sums.__all__
