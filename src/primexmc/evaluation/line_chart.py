"""A small line chart as inline SVG: few lines, named at the right edge, coloured by the page's style sheet."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

Points = Sequence[tuple[float, float]]

WIDTH, HEIGHT = 440, 260
LEFT, RIGHT, TOP, BOTTOM = 40, 78, 14, 40
LABEL_GAP = 17  # between names at the right end
LETTER = 8.3  # about as wide is a letter of a name
COLOURS = 8
LONGEST_NAME = 24


def line_chart(
    title: str, lines: Mapping[str, Points], *, x_name: str, from_zero: bool = False, log_x: bool = False
) -> str:
    """The chart with its title for screen readers; an empty string where no line has a point.

    With `log_x` a tick is a power of ten; what is not above 0 lies at 1.
    """
    lines = {name: sorted((_place(x, log_x), y) for x, y in points) for name, points in lines.items() if points}
    if not lines:
        return ""
    x_ticks = nice_ticks([x for points in lines.values() for x, _ in points], whole=True)
    y_ticks = nice_ticks([y for points in lines.values() for _, y in points] + [0.0] * from_zero)
    frame = _Frame(x_ticks, y_ticks, RIGHT if len(lines) < 3 else _room(lines), len(lines))
    middle = (LEFT + WIDTH - frame.right) / 2
    names = _spread([frame.y(points[-1][1]) for points in lines.values()], frame.bottom)
    spoken = escape(_spoken(title, lines, x_name))
    return "".join(
        [
            f'<svg viewBox="0 0 {WIDTH} {frame.height}" role="img" aria-label="{spoken}">',
            *(_y_tick(frame, tick, y_ticks) for tick in y_ticks),
            *(_x_tick(frame, tick, log_x) for tick in x_ticks),
            f'<text class="tick" x="{middle}" y="{frame.height - 4}" text-anchor="middle">{escape(x_name)}</text>',
            *(_line(frame, i, name, points, names[i]) for i, (name, points) in enumerate(lines.items())),
            "</svg>",
        ]
    )


def nice_ticks(values: Sequence[float], *, whole: bool = False, about: int = 4) -> list[float]:
    """Round numbers that enclose the values, 1, 2 or 5 times a power of ten apart."""
    low, high = min(values), max(values)
    raw = (high - low) / about or max(abs(high), 1.0) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * 0.999)
    step = max(1.0, round(step)) if whole else step
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [number * step for number in range(first, max(last, first + 1) + 1)]


class _Frame:
    """From values to places on the drawing."""

    def __init__(self, x_ticks: Sequence[float], y_ticks: Sequence[float], right: float, num_lines: int) -> None:
        self.right, self.height = right, max(HEIGHT, TOP + BOTTOM + LABEL_GAP * num_lines)
        self.bottom = self.height - BOTTOM
        self.x_low, self.x_high = x_ticks[0], x_ticks[-1]
        self.y_low, self.y_high = y_ticks[0], y_ticks[-1]

    def x(self, value: float) -> float:
        return LEFT + (value - self.x_low) / (self.x_high - self.x_low) * (WIDTH - LEFT - self.right)

    def y(self, value: float) -> float:
        return self.bottom - (value - self.y_low) / (self.y_high - self.y_low) * (self.bottom - TOP)


def _y_tick(frame: _Frame, tick: float, ticks: Sequence[float]) -> str:
    y = frame.y(tick)
    decimals = max(0, -math.floor(math.log10(ticks[1] - ticks[0]) + 1e-9))
    return (
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - frame.right}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text class="tick" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:.{decimals}f}</text>'
    )


def _x_tick(frame: _Frame, tick: float, log_x: bool) -> str:
    shown = f"{10**tick:,.0f}" if log_x else f"{tick:.0f}"
    return f'<text class="tick" x="{frame.x(tick):.1f}" y="{frame.bottom + 18}" text-anchor="middle">{shown}</text>'


def _place(x: float, log_x: bool) -> float:
    return math.log10(max(x, 1.0)) if log_x else x


def _room(lines: Mapping[str, Points]) -> float:
    """Right of the drawing, for the longest name."""
    return 14 + LETTER * min(LONGEST_NAME, max(map(len, lines)))


def _line(frame: _Frame, number: int, name: str, points: Points, name_y: float) -> str:
    path = " ".join(f"{frame.x(x):.1f},{frame.y(y):.1f}" for x, y in points)
    x, y = points[-1]
    return (
        f'<g class="series s{number % COLOURS}"><polyline points="{path}"/>'
        f'<circle cx="{frame.x(x):.1f}" cy="{frame.y(y):.1f}" r="3"/>'
        f'<text x="{WIDTH - frame.right + 9:.0f}" y="{name_y + 4:.1f}">{escape(_short(name))}</text></g>'
    )


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def _spread(places: Sequence[float], lowest: float) -> list[float]:
    """The same places, moved apart where names would lie on each other, and held between top and bottom."""
    moved = list(places)
    for i in sorted(range(len(places)), key=lambda i: -places[i]):
        moved[i] = min(moved[i], lowest)
        lowest = moved[i] - LABEL_GAP
    highest = float(TOP)
    for i in sorted(range(len(places)), key=lambda i: moved[i]):
        moved[i] = max(moved[i], highest)
        highest = moved[i] + LABEL_GAP
    return moved


def _spoken(title: str, lines: Mapping[str, Points], x_name: str) -> str:
    ends = "; ".join(f"{name} from {points[0][1]:.3g} to {points[-1][1]:.3g}" for name, points in lines.items())
    return f"{title} by {x_name}: {ends}."
