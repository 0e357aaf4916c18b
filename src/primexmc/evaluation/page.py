"""A page of results: one HTML file without script, font or link out, and the pieces that several pages share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources

Bars = Sequence[tuple[str, float]]  # name and percent


def page(title: str, sections: Sequence[str]) -> str:
    """The whole file; the sections are HTML, the title is text."""
    style = resources.files(__package__).joinpath("report.css").read_text(encoding="utf-8")
    content = "\n".join(section for section in sections if section)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>
{style}</style>
</head>
<body>
<main>
{content}
<footer>Written by primexmc. All metrics in percent.</footer>
</main>
</body>
</html>
"""


def section(name: str, title: str, content: str, level: int = 2) -> str:
    """Nothing where there is no content; `name` is its id."""
    if not content:
        return ""
    return f'<section aria-labelledby="{name}"><h{level} id="{name}">{escape(title)}</h{level}>\n{content}</section>'


def table(label: str, head: Sequence[str], rows: Mapping[str, Sequence[str]], ours: Sequence[str] = ()) -> str:
    """Names in the first column, cells as made by `cell`; on a narrow screen it scrolls by itself."""
    columns = "".join(f"<th scope='col'>{escape(name)}</th>" for name in head)
    lines = "".join(
        f"<tr{marked(name in ours)}><th scope='row'>{escape(name)}</th>{''.join(cells)}</tr>"
        for name, cells in rows.items()
    )
    return f"""<div class="scroll" role="region" aria-label="{escape(label)}" tabindex="0"><table class="wide">
<thead><tr>{columns}</tr></thead><tbody>{lines}</tbody></table></div>"""


def cell(value: float | None, best: float) -> str:
    """One number of a table, the best of its column strong."""
    if value is None:
        return "<td>–</td>"
    shown = f"{value:.1f}"
    return f"<td class='best'>{shown}</td>" if shown == f"{best:.1f}" and best > 0 else f"<td>{shown}</td>"


def bars(values: Bars, ours: Sequence[str]) -> str:
    """A bar for each, as long as it has percent."""
    items = "".join(f"<li{marked(name in ours)}>{_bar(name, value)}</li>" for name, value in values)
    return f"<ul class='bars'>{items}</ul>"


def figure(caption: str, svg: str) -> str:
    return f"<figure><figcaption>{escape(caption)}</figcaption>{svg}</figure>" if svg else ""


def marked(is_ours: bool) -> str:
    return " class='ours'" if is_ours else ""


def _bar(name: str, percent: float) -> str:
    fill = f"<span class='track'><span class='fill' style='width:{percent:.1f}%'></span></span>"
    return f"<span>{escape(name)}</span><span class='value'>{percent:.1f}</span>{fill}"
