"""A stream that writes, merges, compacts and expires a store, and tells every state that it committed."""

import sys
from pathlib import Path

from tests.serve.streams import MINUTE, T0, ZONES, empty, slices

KEPT = 240  # minutes


def write(path, batches, tell, more=lambda: True, step=10):
    """Write so many batches of ten minutes; tell (kept from, watermark), in minutes, after each change."""
    store = empty(path)
    kept = 0
    for batch in range(batches):
        if not more():
            return
        first, last = batch * step, (batch + 1) * step
        store.write(slices(ZONES, first, last), query="q", batch=batch, watermark=T0 + last * MINUTE)
        tell(kept, last)
        if batch % 11 == 10:
            store.compact()
        if batch % 7 == 6 and last > KEPT:
            kept = last - KEPT
            store.expire(T0 + kept * MINUTE)
            tell(kept, last)


if __name__ == "__main__":
    import time

    path, seconds = sys.argv[1], float(sys.argv[2])
    end = time.monotonic() + seconds
    with Path(path + ".states").open("w") as states:

        def told(kept, last):
            print(kept, last, file=states, flush=True)

        write(path, 10**9, told, lambda: time.monotonic() < end)
