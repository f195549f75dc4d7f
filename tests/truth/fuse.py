"""An aggregation whose callables raise when they are told to."""

from sash import agg


class Fault(Exception):
    pass


class Fuse:
    """Tuples under concatenation; of the callable that is named in ``kind``, the call that ``left`` counts down to raises."""

    def __init__(self):
        self.kind, self.left = None, 0

    def burn(self, kind):
        if self.kind == kind:
            self.left -= 1
            if self.left == 0:
                raise Fault(kind)

    def aggregation(self):
        def lift(x):
            self.burn("lift")
            return (x,)

        def combine(a, b):
            self.burn("combine")
            return a + b

        def lower(p):
            self.burn("lower")
            return list(p)

        return agg.define(lift=lift, combine=combine, lower=lower, identity=(), name="fused")
