"""Experiments, one per figure of the papers, and races against what users run today.

`sash bench NAME` runs one; each cell is measured several times after a warm-up, and reported with its spread.
"""

try:
    import sash._bench  # noqa: F401
except ImportError as error:  # its loops are a third of the compiling, and no one else's need
    raise ImportError(
        f"this build is without the native loops of the benchmarks ({error}). "
        "Build Sash with them, in a clone: pip install . -Ccmake.define.SASH_BENCH=ON"
    ) from None
