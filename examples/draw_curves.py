#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draw loss curves as one SVG: examples/draw_curves.py OUT.svg LABEL=FILE.csv ...

Each line of a file is STEP,LOSS, as `strategies --curve FILE` writes it. Curves are drawn in the order in which they are given, each
narrower than the one before it, so that those that lie on each other are all seen.
"""
import argparse
import math
import pathlib
import sys
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 860, 480
LEFT, RIGHT, TOP, BOTTOM = 64, 20, 20, 52  # margins around the plot
COLOURS = ["#1f4e79", "#e08214", "#5aae61", "#b2182b", "#9970ab", "#35978f", "#bf812d", "#666666"]
WIDEST, NARROWEST = 11.0, 1.5  # strokes
POINTS_MAX, CURVES_MAX = 1_000_000, 64


class Mistake(Exception):
    """What the caller can mend; the text says where it is."""


def read_point(line, place):
    fields = line.split(",")
    if len(fields) != 2:
        raise Mistake(f"{place}: {len(fields)} fields, and a line is STEP,LOSS")
    try:
        step, loss = float(fields[0]), float(fields[1])
    except ValueError:
        raise Mistake(f"{place}: {line.strip()!r} is not two numbers") from None
    if not (math.isfinite(step) and math.isfinite(loss)):
        raise Mistake(f"{place}: {line.strip()!r} is not finite")
    return step, loss


def read_curve(path):
    points = []
    try:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if number > POINTS_MAX:
                    raise Mistake(f"{path}:{number}: more than {POINTS_MAX} lines")
                points.append(read_point(line, f"{path}:{number}"))
                if number > 1 and points[-1][0] <= points[-2][0]:
                    raise Mistake(f"{path}:{number}: step {points[-1][0]:g} does not come after {points[-2][0]:g}")
    except (OSError, UnicodeDecodeError) as error:
        raise Mistake(f"{path}: {error.strerror if isinstance(error, OSError) else error}") from None
    if not points:
        raise Mistake(f"{path}: no line")
    return points


def ticks(low, high):
    """Round numbers, some five of them, from `low` to `high`."""
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * each for each in (1, 2, 5, 10) if power * each >= rough * 0.999)
    return [index * step for index in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


class Plot:
    """From steps and losses to places in the picture."""

    def __init__(self, curves):
        steps = [step for _, points in curves for step, _ in points]
        losses = [loss for _, points in curves for _, loss in points]
        self.low = (min(0.0, min(steps)), min(0.0, min(losses)))
        self.high = tuple(max(most, low + 1e-9) for most, low in zip((max(steps), max(losses) * 1.05), self.low))

    def x(self, step):
        return LEFT + (step - self.low[0]) / (self.high[0] - self.low[0]) * (WIDTH - LEFT - RIGHT)

    def y(self, loss):
        return HEIGHT - BOTTOM - (loss - self.low[1]) / (self.high[1] - self.low[1]) * (HEIGHT - TOP - BOTTOM)


def text(x, y, words, anchor="middle", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(words)}</text>'


def axes(plot):
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    for tick in ticks(plot.low[0], plot.high[0]):
        yield f'<line class="grid" x1="{plot.x(tick):.1f}" y1="{TOP}" x2="{plot.x(tick):.1f}" y2="{bottom + 5}"/>'
        yield text(plot.x(tick), bottom + 20, f"{tick:g}")
    for tick in ticks(plot.low[1], plot.high[1]):
        yield f'<line class="grid" x1="{LEFT - 5}" y1="{plot.y(tick):.1f}" x2="{right}" y2="{plot.y(tick):.1f}"/>'
        yield text(LEFT - 10, plot.y(tick) + 4, f"{tick:g}", "end")
    yield f'<path class="axis" d="M{LEFT} {TOP} V{bottom} H{right}"/>'
    yield text((LEFT + right) / 2, HEIGHT - 12, "step")
    middle = (TOP + bottom) / 2
    yield text(18, middle, "loss", more=f' transform="rotate(-90 18 {middle:.1f})"')


def stroke(index, count):
    return WIDEST if count == 1 else WIDEST - (WIDEST - NARROWEST) * index / (count - 1)


def style(index, count):
    return f'stroke="{COLOURS[index % len(COLOURS)]}" stroke-width="{stroke(index, count):.1f}"'


def legend(labels):
    left, top = WIDTH - RIGHT - 24 - 8 * max(len(label) for label in labels) - 50, TOP + 10
    yield (f'<rect x="{left}" y="{top}" width="{WIDTH - RIGHT - 10 - left}" height="{20 * len(labels) + 12}" '
           'fill="white" stroke="#bbbbbb"/>')
    for index, label in enumerate(labels):
        y = top + 16 + 20 * index
        yield f'<line x1="{left + 10}" y1="{y}" x2="{left + 46}" y2="{y}" {style(index, len(labels))}/>'
        yield text(left + 56, y + 4, label, "start")


def draw(curves):
    plot = Plot(curves)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
             'font-family="sans-serif" font-size="13">',
             "<style>.grid { stroke: #dddddd } .axis { stroke: #333333; fill: none } polyline { fill: none; stroke-linejoin: round }</style>",
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', *axes(plot)]
    for index, (_, points) in enumerate(curves):
        places = " ".join(f"{plot.x(step):.1f},{plot.y(loss):.1f}" for step, loss in points)
        lines.append(f'<polyline {style(index, len(curves))} points="{places}"/>')
    return "\n".join([*lines, *legend([label for label, _ in curves]), "</svg>\n"])


def named(argument):
    label, equals, path = argument.partition("=")
    if not (label and equals and path):
        raise argparse.ArgumentTypeError(f"{argument!r} is not LABEL=FILE.csv")
    return label, path


def main():
    parser = argparse.ArgumentParser(usage="%(prog)s OUT.svg LABEL=FILE.csv ...", description=__doc__.partition("\n\n")[2])
    parser.add_argument("out", metavar="OUT.svg", type=pathlib.Path, help="what is written")
    parser.add_argument("curves", metavar="LABEL=FILE.csv", type=named, nargs="+", help="a curve, and its name in the legend")
    arguments = parser.parse_args()
    try:
        if len(arguments.curves) > CURVES_MAX:
            raise Mistake(f"{len(arguments.curves)} curves, and {CURVES_MAX} are the most")
        picture = draw([(label, read_curve(path)) for label, path in arguments.curves])
        arguments.out.write_text(picture, encoding="utf-8")
    except Mistake as mistake:
        sys.exit(f"draw_curves.py: {mistake}")
    except OSError as error:
        sys.exit(f"draw_curves.py: {error.filename}: {error.strerror}")


if __name__ == "__main__":
    main()
