"""`sash demo`: from a disordered stream to checked answers.

The flights that left New York in 2013 come in the order they left, while each counts at the time it was scheduled for: more
than half of them are out of order. They stream through Spark in micro-batches, for sliding windows, for rolling features and
for tiles on disk, and all of it is compared, row by row, with the same definitions in batch. The same windows are made by Spark's own
window() on the same rows. Then, without Spark: a training set, questions to the tiles that nobody declared before, and a chart.
"""

from sash.demo.command import add_arguments, run

__all__ = ["add_arguments", "run"]
