"""Experiments, one per figure of the papers, and races against what users run today.

`sash bench NAME` runs one; each cell is measured several times after a warm-up, and reported with its spread.
"""
