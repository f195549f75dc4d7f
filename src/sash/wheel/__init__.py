"""µWheel: aggregates indexed over time, for streaming windows and for questions about history, from the same partials."""

from sash.wheel.errors import BeyondWatermark, Misaligned, NotRetained, TileStoreError
from sash.wheel.keyed_wheels import KeyedWheels
from sash.wheel.plan import Plan
from sash.wheel.tile_store import TileStore
from sash.wheel.wheel import Reader, Wheel, WindowResult

__all__ = [
    "BeyondWatermark",
    "KeyedWheels",
    "Misaligned",
    "NotRetained",
    "Plan",
    "Reader",
    "TileStore",
    "TileStoreError",
    "Wheel",
    "WindowResult",
]
