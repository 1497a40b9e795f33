#!/usr/bin/env python3
"""chart.py - draws a sweep: samples/s against workers, with error bars, in light and dark.

usage: bench/chart.py ROWS.json CHART.svg [TITLE]     ROWS.json: loaderbench --format json, one batch size and type

Bars show samples_per_s_low to samples_per_s_high, the dashed line the ceiling. Later epochs are drawn; of a sweep with --cache none, all.
Exit status: 0 written, 1 the machine was busy, or there is no cell to draw; the chart stays as it is.
"""
import html
import json
import math
import sys

WIDTH, HEIGHT = 640, 316
LEFT, RIGHT, TOP, BOTTOM = 64, 620, 64, 262
STYLE = """
 text{font:13px system-ui,sans-serif;fill:#57606a} .title{font-weight:600;font-size:15px;fill:#1f2328} .value{fill:#1f2328;text-anchor:middle}
 .end{text-anchor:end} .middle{text-anchor:middle} .grid{stroke:#d0d7de} .line{fill:none;stroke-width:2} .bar{fill:none;stroke-width:1.5}
 .off{stroke:#0969da} .on{stroke:#bc4c00} circle.off{fill:#0969da} circle.on{fill:#bc4c00} .ceiling{stroke:#8c959f;stroke-dasharray:5 4;fill:none;stroke-width:1.5}
 @media (prefers-color-scheme:dark){text{fill:#9198a1} .title,.value{fill:#f0f6fc} .grid{stroke:#3d444d} .off{stroke:#4493f8} .on{stroke:#f0883e}
  circle.off{fill:#4493f8} circle.on{fill:#f0883e}}
"""


def read(path):
    """The machine, the advice, and the cells that were measured."""
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    kinds = {row["kind"]: row for row in rows if row["kind"] != "cell"}
    cells = [row for row in rows if row["kind"] == "cell" and not row["error"] and not row["skipped"]]
    if kinds["advice"]["busy"]:
        sys.exit(f"chart.py: {path}: {kinds['advice']['verdict']}")
    if not cells:
        sys.exit(f"chart.py: {path}: no cell was measured")
    same = [cell for cell in cells if all(cell[key] == cells[0][key] for key in ("batch_size", "dtype", "cache", "device"))]
    return kinds["machine"], same


def short(value):
    unit, letter = next((u, c) for u, c in ((1e6, " M"), (1e3, " k"), (1, "")) if value >= u or u == 1)
    return f"{value / unit:.3g}{letter}"


def scale(most):
    """The step between two lines of the grid, and the top one."""
    power = 10 ** math.floor(math.log10(most / 4))
    step = power * next(digits for digits in (1, 2, 2.5, 5, 10) if most / 4 <= digits * power)
    return step, step * math.ceil(most * 1.05 / step)


def text(x, y, content, kind=""):
    return f'<text x="{x:.0f}" y="{y:.0f}" class="{kind}">{html.escape(content)}</text>'


def series(cells, pin, x, y):
    """One line of marks with error bars; AUTO stands apart from the line."""
    mine = [cell for cell in cells if cell["pin_memory"] == pin]
    kind = "on" if pin == "on" else "off"
    points = [f"{x(cell):.1f},{y(cell['samples_per_s']):.1f}" for cell in mine if not cell["auto"]]
    out = [f'<polyline class="line {kind}" points="{" ".join(points)}"/>']
    for cell in mine:
        at, low, high = x(cell), y(cell["samples_per_s_low"]), y(cell["samples_per_s_high"])
        out.append(f'<path class="bar {kind}" d="M{at:.1f} {low:.1f}V{high:.1f}M{at - 5:.1f} {low:.1f}h10M{at - 5:.1f} {high:.1f}h10"/>')
        out.append(f'<circle class="{kind}" cx="{at:.1f}" cy="{y(cell["samples_per_s"]):.1f}" r="4"/>')
        out.append(text(at, high - 8, short(cell["samples_per_s"]), "value"))
    return out


def draw(machine, cells, what):
    places = sorted({(cell["auto"], cell["workers"]) for cell in cells})
    step, top = scale(max(max(cell["samples_per_s_high"], cell["ceiling_samples_per_s"] or 0) for cell in cells))

    def x(cell):
        return LEFT + (RIGHT - LEFT) * (places.index((cell["auto"], cell["workers"])) + 0.5) / len(places)

    def y(value):
        return BOTTOM - (BOTTOM - TOP) * value / top

    pins = sorted({cell["pin_memory"] for cell in cells})
    title = f"{what}: samples/s"
    out = [text(LEFT, 24, title, "title"),
           text(LEFT, 44, f"{machine['date'][:10]}, {machine['cpus']} CPUs, {machine['cpu']}, batches of {cells[0]['batch_size']}, commit {machine['commit'][:12]}")]
    for index in range(round(top / step) + 1):
        out.append(f'<path class="grid" d="M{LEFT} {y(index * step):.1f}H{RIGHT}"/>')
        out.append(text(LEFT - 8, y(index * step) + 4, short(index * step), "end"))
    for auto, workers in places:
        cell = {"auto": auto, "workers": workers}
        out.append(text(x(cell), BOTTOM + 20, f"auto ({workers})" if auto else str(workers), "middle"))
    line = [f"{x(cell):.1f},{y(cell['ceiling_samples_per_s']):.1f}" for cell in cells
            if not cell["auto"] and cell["pin_memory"] == pins[0] and cell["ceiling_samples_per_s"]]
    out.append(f'<polyline class="ceiling" points="{" ".join(line)}"/>')
    for pin in pins:
        out += series(cells, pin, x, y)
    words = "workers; bars: interval of the repeats; dashed: a bare loop doing the same work"
    out.append(text(LEFT, BOTTOM + 44, words + ("; orange: page-locked" if len(pins) > 1 else "")))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">\n'
            f"<title>{html.escape(title)}</title>\n<style>{STYLE}</style>\n" + "\n".join(out) + "\n</svg>\n")


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    machine, cells = read(sys.argv[1])
    chart = draw(machine, cells, sys.argv[3] if len(sys.argv) == 4 else machine["dataset_name"])
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(chart)


if __name__ == "__main__":
    main()
