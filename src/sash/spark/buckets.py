"""Bucket labels that Spark's hash spreads evenly over any number of partitions.

Spark sends a group to partition `murmur3(key) mod partitions`. For one 4-byte key that hash is a bijection, so the label of
bucket i is the int whose hash is i: bucket i goes to partition i mod partitions, whatever their number.

A label depends on nothing but i. The number of buckets belongs to a checkpoint: which bucket a key is in follows from it. It is that of
the shuffle partitions unless ``spark.sash.buckets`` says otherwise, so a query that is started again with another number of partitions
is refused (``CheckpointMismatch``) with the setting that makes it go on.
"""

from __future__ import annotations

import functools

_MASK = 0xFFFFFFFF
_SEED = 42


@functools.cache
def label(bucket: int) -> int:
    """Return the int32 whose Spark hash is `bucket`.

    >>> label(0), label(1)
    (-1693959553, -1910889132)
    >>> spark_hash(label(7))
    7
    """
    h = _unfinish(bucket & _MASK) ^ 4
    h = ((h - 0xE6546B64) * pow(5, -1, 2**32)) & _MASK
    k = _rotate(h, 32 - 13) ^ _SEED
    k = (k * pow(0x1B873593, -1, 2**32)) & _MASK
    k = (_rotate(k, 32 - 15) * pow(0xCC9E2D51, -1, 2**32)) & _MASK
    return _signed(k)


def spark_hash(value: int) -> int:
    """Hash an int as Spark's `hash` function does.

    >>> spark_hash(1)
    -559580957
    """
    k = _rotate((value & _MASK) * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
    h = (_rotate(k ^ _SEED, 13) * 5 + 0xE6546B64) & _MASK ^ 4
    h = (h ^ h >> 16) * 0x85EBCA6B & _MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & _MASK
    return _signed(h ^ h >> 16)


def _unfinish(h: int) -> int:
    h ^= h >> 16
    h = (h * pow(0xC2B2AE35, -1, 2**32)) & _MASK
    h ^= h >> 13 ^ h >> 26
    h = (h * pow(0x85EBCA6B, -1, 2**32)) & _MASK
    return h ^ h >> 16


def _rotate(x: int, by: int) -> int:
    return (x << by | x >> (32 - by)) & _MASK


def _signed(x: int) -> int:
    return x - 2**32 if x >= 2**31 else x
