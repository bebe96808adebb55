"""Charts as SVG text. Knows shapes on a page; what they mean is the chart's business."""

from __future__ import annotations

from xml.sax.saxutils import escape

from .chart import Chart


def draw(chart: Chart) -> str:
    """The chart as an SVG document.

    >>> from votive.train import chart, svg
    >>> svg.draw(chart.build([chart.Curve("loss", [1, 2], [2.0, 1.0])]))[:4]
    '<svg'
    """
    x, y = chart.x, chart.y
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {chart.width} {chart.height}" '
        f'width="{chart.width}" height="{chart.height}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="{chart.width / 2:g}" y="22" text-anchor="middle" font-size="15">{escape(chart.title)}</text>',
    ]
    for value, label in y.ticks:
        at = y.place(value)
        parts.append(f'<path d="M{x.start:g} {at:.1f}H{x.end:g}" stroke="#ddd"/>')
        parts.append(f'<text x="{x.start - 6:g}" y="{at + 4:.1f}" text-anchor="end">{label}</text>')
    for value, label in x.ticks:
        at = x.place(value)
        parts.append(f'<path d="M{at:.1f} {y.start:g}v5" stroke="#888"/>')
        parts.append(f'<text x="{at:.1f}" y="{y.start + 20:g}" text-anchor="middle">{label}</text>')
    parts.append(f'<path d="M{x.start:g} {y.start:g}H{x.end:g}" stroke="#888"/>')
    middle = (x.start + x.end) / 2
    parts.append(f'<text x="{middle:g}" y="{chart.height - 8}" text-anchor="middle">{escape(chart.x_name)}</text>')
    for curve, colour in chart.curves:
        points = [(x.place(a), y.place(b)) for a, b in zip(curve.xs, curve.ys)]
        line = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        look = 'stroke-width="1" stroke-opacity=".3"' if curve.faint else 'stroke-width="2"'
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" {look}/>')
        if curve.marked:
            parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in points]
    parts += _legend(chart)
    return "\n".join([*parts, "</svg>", ""])


def _legend(chart: Chart) -> list[str]:
    parts = []
    for i, (name, colour) in enumerate({c.name: colour for c, colour in chart.curves}.items()):
        top = chart.y.end + 14 + 18 * i
        right = chart.x.end
        parts.append(f'<path d="M{right - 24:g} {top - 4:g}h20" stroke="{colour}" stroke-width="3"/>')
        parts.append(f'<text x="{right - 30:g}" y="{top:g}" text-anchor="end">{escape(name)}</text>')
    return parts
