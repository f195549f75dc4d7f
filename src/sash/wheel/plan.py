"""How a range is answered: the optimiser's choice, its cost, and what it rejected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sash.wheel.errors import length_text, time_text

if TYPE_CHECKING:
    from sash._core import WheelAnswers

__all__ = ["Plan", "Segment", "explained"]


class Segment(NamedTuple):
    """Slots of one level, side by side."""

    level: str
    slots: int
    start: int
    end: int


class Plan(NamedTuple):
    """A plan for a range: ``strategy``, its cost in combines, its segments in time order, and what was rejected.

    Strategies: ``empty``, ``prefix``, ``landmark``, ``single``, ``combined``, ``inverse``.

    >>> from sash import agg
    >>> from sash.wheel import Wheel
    >>> w = Wheel(agg.max(), unit="s", grain="1m", levels=("1h", "1d"))
    >>> _ = w.advance_to(172_800)
    >>> plan = w.explain(60, 172_800)
    >>> plan.strategy, plan.slots, plan.combines
    ('combined', 83, 82)
    """

    aggregation: str
    start: int
    end: int
    strategy: str
    combines: int
    segments: tuple[Segment, ...]
    rejected: tuple[tuple[str, int | None, str], ...]  # (strategy, combines or None, the slots it reads or why it does not apply)
    text: str

    @property
    def slots(self) -> int:
        """How many slots the plan reads."""
        return sum(segment.slots for segment in self.segments)

    def __str__(self) -> str:
        return self.text


def _slots(segments: tuple[Segment, ...]) -> str:
    """Count slots by level, the coarsest first."""
    counts: dict[str, int] = {}
    for segment in segments:
        counts[segment.level] = counts.get(segment.level, 0) + segment.slots
    order = sorted(counts, key=lambda level: -next((s.end - s.start) // s.slots for s in segments if s.level == level))
    return ", ".join(f"{level} x {counts[level]:,}" for level in order)


def explained(wheel: WheelAnswers, start: Any, end: Any, clamp: bool) -> Plan:
    """Plan a range as query() would, and say so."""
    unit = wheel._unit
    levels = wheel._levels()
    chosen, considered, first, last = wheel._plans(start, end, clamp)
    origin = wheel._origin()
    grain = levels[0][0]

    def segments(cover: list[tuple[int, int, int, int]]) -> tuple[Segment, ...]:
        return tuple(Segment(length_text(levels[k][0], unit), slots, origin + a * grain, origin + b * grain) for k, a, b, slots in cover)

    def told(name: str, cover: list[Any], after: list[Any]) -> str:
        match name:
            case "empty":
                return "nothing lies between the two ends"
            case "landmark":
                return "everything, from the open slots of all levels"
            case "inverse":
                parts = [f"before: {_slots(segments(cover))}"] if cover else []
                parts += [f"after: {_slots(segments(after))}"] if after else []
                return "the landmark without " + "; ".join(parts or ["anything"])
        return _slots(segments(cover))

    inverts = wheel.aggregation.invertible and wheel.aggregation.commutative
    absent = {
        "prefix": "no level with prefixes holds it with both ends on its slots",
        "landmark": "the range is not the whole wheel",
        "single": "no level holds it with both ends on its slots",
        "combined": "some of it is held by no level in slots that fit",
        "inverse": "what lies around it is held by no level in slots that fit"
        if inverts
        else f"{wheel.aggregation.name} is not invertible and commutative",
    }
    name, _, combines, cover, after = chosen
    pieces = segments(cover) + segments(after)
    lines = [(name, f"{told(name, cover, after)}", f"{combines:,}", "   <- chosen")]
    rejected: list[tuple[str, int | None, str]] = []
    for other, works, cost, its_cover, its_after in considered:
        if other == name or (other == "combined" and len(its_cover) == 1):
            continue
        applies = works and (other != "inverse" or inverts)
        why = told(other, its_cover, its_after) if applies else absent[other]
        if applies and other == "inverse" and cost < combines:
            why += " (only where inverting is exact, or hinted)"
        rejected.append((other, cost if applies else None, why))
        lines.append((other, why, f"{cost:,}" if applies else "", ""))
    width = max(len(line[1]) for line in lines)
    head = (
        f"{wheel.aggregation.name} over [{time_text(first, unit)}, {time_text(last, unit)})"
        f"    {combines:,} combines for {(last - first) // grain:,} grains of {length_text(grain, unit)}"
    )
    body = [f"  {n:<10} {what:<{width}}  {cost:>10}{mark}".rstrip() for n, what, cost, mark in lines]
    return Plan(wheel.aggregation.name, first, last, name, combines, pieces, tuple(rejected), "\n".join([head, *body]))
