#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Draw loss curves, as examples/strategies.c writes them, into an SVG file.

    draw_curves.py OUT.svg LABEL=FILE.csv...

A file has a line for each step: its number, a comma, the loss. Curves that lie on one another are drawn in their order, each thinner than
the one before, so that all are seen.
"""
import sys
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 420, 60, 20, 20, 50
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")


def read(path):
    points = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                step, loss = line.split(",")
                points.append((int(step), float(loss)))
            except ValueError:
                raise SystemExit(f"draw_curves.py: {path}:{number}: a step, a comma and a loss are expected") from None
    if not points:
        raise SystemExit(f"draw_curves.py: {path} has no steps")
    return points


def draw(curves):
    last = max(points[-1][0] for _, points in curves)
    most = max(loss for _, points in curves for _, loss in points)

    def x(step):
        return LEFT + (WIDTH - LEFT - RIGHT) * step / last

    def y(loss):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * loss / most

    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">'
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
    for i in range(6):
        loss, step = most * i / 5, last * i // 5
        yield f'<line x1="{LEFT}" y1="{y(loss):.1f}" x2="{WIDTH - RIGHT}" y2="{y(loss):.1f}" stroke="#dddddd"/>'
        yield f'<text x="{LEFT - 8}" y="{y(loss) + 4:.1f}" text-anchor="end">{loss:.2f}</text>'
        yield f'<text x="{x(step):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{step}</text>'
    yield f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">step</text>'
    yield f'<text x="16" y="{HEIGHT / 2 - 20}" text-anchor="middle" transform="rotate(-90 16 {HEIGHT / 2 - 20})">mean loss</text>'
    for i, (label, points) in enumerate(curves):
        colour, width = COLOURS[i % len(COLOURS)], max(1.0, 2.0 * len(curves) - 2.0 * i)
        line = " ".join(f"{x(step):.1f},{y(loss):.1f}" for step, loss in points)
        yield f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-linejoin="round"/>'
        yield f'<line x1="{WIDTH - 250}" y1="{TOP + 14 + 18 * i}" x2="{WIDTH - 225}" y2="{TOP + 14 + 18 * i}" stroke="{colour}" stroke-width="{width}"/>'
        yield f'<text x="{WIDTH - 217}" y="{TOP + 18 + 18 * i}">{escape(label)}</text>'
    yield "</svg>"


def main():
    if len(sys.argv) < 3 or sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip())
        return 0 if "--help" in sys.argv or "-h" in sys.argv else 2
    curves = []
    for argument in sys.argv[2:]:
        label, found, path = argument.partition("=")
        if not found:
            raise SystemExit(f"draw_curves.py: {argument}: LABEL=FILE.csv is expected")
        try:
            curves.append((label, read(path)))
        except OSError as error:
            raise SystemExit(f"draw_curves.py: {path}: {error.strerror}") from None
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write("\n".join(draw(curves)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
