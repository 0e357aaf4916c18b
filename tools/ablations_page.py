"""docs/results.md's section on the paper's claims, from benchmarks/results/ablations.json.

    python tools/ablations_page.py --take DIR   first takes over what `primexmc compare --recipe ... --out DIR` left
    python tools/ablations_page.py              writes the section, and its drawings into docs/charts/
    python tools/ablations_page.py --check      says with its exit code whether they are as the file has them

What stands between `<!-- claims -->` and `<!-- end -->` is written by this script. The rule that judges a claim stands
in src/primexmc/compare/verdicts.py, the claims in the recipes.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from results_page import cell, line

from primexmc.compare.charts import STEP, curve, recipe_charts
from primexmc.compare.details import DETAILS, read_details
from primexmc.compare.entries import Entry, entries_of
from primexmc.compare.experiment import load_experiment
from primexmc.compare.report import drawn
from primexmc.compare.verdicts import Finding, find, with_course

ROOT = Path(__file__).resolve().parents[1]
RUNS, PAGE, CHARTS = ROOT / "benchmarks" / "results" / "ablations.json", ROOT / "docs" / "results.md", "charts"
RECIPES = (
    "field", "loss-terms", "components", "pool", "positive-sampling", "free-vectors", "margins", "centroids", "network",
    "queries-per-label",
)  # fmt: skip
MEASURES = ("P@1", "P@5", "nDCG@5", "PSP@1", "PSP@5", "R@100")
VERDICTS = ("holds", "undecided", "does not hold")
COURSE = (1, 2, 3, 5, 10)
PART = re.compile(r"(<!-- claims -->\n).*?(<!-- end -->)", re.DOTALL)
NOT_RUN = "Not run yet: `primexmc compare DATA --recipe {} --preset static-ablation --seeds 2`.\n"


class Runs:
    """Rows, what validation said on the way, and which rows are a recipe's on a data set."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.curves, self.recipes = content.get("curves", {}), content.get("recipes", {})
        shared = content.get("settings", {})
        rows = [row | {"settings": shared | row["settings"]} for row in content.get("rows", [])]
        self.rows = [with_course(row, {"curve": self.curves.get(row["key"], [])}) for row in rows]

    def of(self, recipe: str) -> list[dict[str, Any]]:
        """In the recipe's order."""
        by_key = {row["key"]: row for row in self.rows}
        keys = [key for keys in self.recipes.get(recipe, {}).get("keys", {}).values() for key in keys]
        return [by_key[key] for key in keys if key in by_key]

    def details(self, entry: Entry) -> list[dict[str, Any]]:
        return [{"curve": self.curves.get(row["key"], [])} for row in entry.rows]

    def command(self, recipe: str, data: str) -> str:
        """What makes a recipe's rows on a data set: any row's command but for the method."""
        rows = [row for row in self.of(recipe) if row["data"] == data]
        words = re.sub(r"--recipe \S+", f"--recipe {recipe}", rows[0]["command"].partition(" --methods ")[0])
        return f"    {words} --seeds {len({row['seed'] for row in rows})}\n"


def taken(directory: Path) -> dict[str, Any]:
    """What the page needs of a comparison's directory."""
    rows = json.loads((directory / "field.json").read_text(encoding="utf-8"))
    curves = {row["key"]: read_details(directory, row["key"]).get("curve", []) for row in rows}
    found = {name: read_details(directory, f"recipe-{name}") for name in RECIPES}
    recipes = {name: {"keys": one["keys"]} for name, one in found.items() if one}
    assert recipes, f"{directory} has no recipes in {DETAILS}: unpack the archive whole"
    shared = dict(item for item in rows[0]["settings"].items() if all(item in row["settings"].items() for row in rows))
    own = [row | {"settings": {k: v for k, v in row["settings"].items() if k not in shared}} for row in rows]
    curves = {key: points for key, points in curves.items() if points}
    return {"settings": shared, "recipes": recipes, "curves": curves, "rows": own}


def section(runs: Runs) -> tuple[str, dict[str, str]]:
    """The text, and drawings by file name."""
    drawings: dict[str, str] = {}
    findings = {recipe: _findings(runs, recipe) for recipe in RECIPES}
    parts = [_overview(runs, findings)]
    for recipe in RECIPES:
        parts.append(f"### {load_experiment(recipe).title}\n")
        if not runs.of(recipe):
            parts.append(NOT_RUN.format(recipe))
            continue
        parts.append(_claims(findings[recipe]))
        for data in dict.fromkeys(row["data"] for row in runs.of(recipe)):
            entries = entries_of([row for row in runs.of(recipe) if row["data"] == data])
            parts += [_rows(entries), _course(runs, entries), runs.command(recipe, data)]
            parts.append(_charts(runs, recipe, data, entries, drawings))
    parts.append(_costs(runs))
    return "\n".join(part for part in parts if part), drawings


def _findings(runs: Runs, recipe: str) -> list[Finding]:
    return find(load_experiment(recipe).claims, runs.of(recipe), runs.rows)


def _overview(runs: Runs, findings: Mapping[str, Sequence[Finding]]) -> str:
    if not runs.rows:
        return "None of them is judged here yet.\n"
    every = [finding for found in findings.values() for finding in found]
    commits, devices = ({str(row.get(name, "-")) for row in runs.rows} for name in ("commit", "device"))
    made = f"{len(runs.rows)} trainings on {', '.join(sorted(devices))}, commit {', '.join(sorted(commits))}"
    lines = _head(["data", *VERDICTS])
    for data in dict.fromkeys(finding.data for finding in every):
        verdicts = [finding.verdict for finding in every if finding.data == data]
        lines.append(line([data, *(str(verdicts.count(verdict)) for verdict in VERDICTS)]))
    return "\n".join([f"{made}. Of the claims below so many hold:", "", *lines, ""])


def _claims(findings: Sequence[Finding]) -> str:
    """A line a claim, all data sets beside each other."""
    if not findings:
        return "No claim can be judged: that takes two seeds of both methods.\n"
    datasets = list(dict.fromkeys(finding.data for finding in findings))
    lines = _head(["claim", "difference of", *datasets])
    for claim in dict.fromkeys(finding.claim for finding in findings):
        of_data = {finding.data: finding for finding in findings if finding.claim == claim}
        cells = [_verdict(of_data[data]) if data in of_data else "–" for data in datasets]
        lines.append(line([claim.says, f"{claim.measure}, {claim.better} − {claim.than}", *cells]))
    return "\n".join([*lines, ""])


def _verdict(finding: Finding) -> str:
    within = "" if finding.claim.within is None else f"; within {finding.claim.within:g}"
    return f"{finding.difference:+.1f} (chance {finding.noise:.1f}{within}): **{finding.verdict}**"


def _rows(entries: Sequence[Entry]) -> str:
    lines = _head([entries[0].data, "seeds", *MEASURES, "training, s"])
    for entry in entries:
        cells = [cell(entry, name) for name in (*MEASURES, "train_s")]
        lines.append(line([entry.name, str(len(entry.rows)), *cells]))
    return "\n".join([*lines, ""])


def _course(runs: Runs, entries: Sequence[Entry]) -> str:
    """P@1 on validation after some epochs, where it was looked at."""
    courses = {entry.name: dict(curve(runs.details(entry), "epoch", "P@1")) for entry in entries}
    epochs = [epoch for epoch in COURSE if any(epoch in course for course in courses.values())]
    if not epochs:
        return ""
    lines = [
        line(["P@1 on validation after", *(f"{epoch} epochs" for epoch in epochs)]),
        line(["---"] * (1 + len(epochs))),
    ]
    for name, course in courses.items():
        lines.append(line([name, *(f"{course[epoch]:.1f}" if epoch in course else "–" for epoch in epochs)]))
    return "\n".join([*lines, ""])


def _charts(runs: Runs, recipe: str, data: str, entries: Sequence[Entry], drawings: dict[str, str]) -> str:
    shown = {}
    for caption, svg in recipe_charts(entries, drawn(load_experiment(recipe)), runs.details):
        name = re.sub(r"[^a-z0-9]+", "-", f"{recipe} {data} {caption.split()[0]}".lower()) + ".svg"
        drawings[name], shown[caption] = _standalone(svg), f"![{caption}, {data}]({CHARTS}/{name})"
    return "\n".join([*_head(list(shown)), line(list(shown.values())), ""]) if shown else ""


def _costs(runs: Runs) -> str:
    """After the paper's Appendix E: what a step of each method encodes and multiplies."""
    parts = ["### What a step costs (after the paper's Appendix E)\n"]
    for data in dict.fromkeys(row["data"] for row in runs.of("field")):
        entries = entries_of([row for row in runs.of("field") if row["data"] == data])
        names = [name for name in STEP if any(entry.mean(name) is not None for entry in entries)]
        lines = [
            line([data, *(STEP[name].removesuffix(", million") for name in names)]),
            line(["---"] * (1 + len(names))),
        ]
        for entry in entries:
            means = [entry.mean(name) for name in names]
            lines.append(line([entry.name, *("–" if mean is None else f"{mean:,.0f}" for mean in means)]))
        parts += ["\n".join([*lines, ""]), runs.command("field", data)]
    return "\n".join(parts) if len(parts) > 1 else ""


def _head(names: Sequence[str]) -> list[str]:
    return [line(names), line(["---"] * len(names))]


def _standalone(svg: str) -> str:
    """A file of its own: it brings the colours and rules that a page of ours has for it."""
    css = resources.files("primexmc.evaluation").joinpath("report.css").read_text(encoding="utf-8")
    roots = re.findall(
        r"^(?::root \{.*?^\}|@media \(prefers-color-scheme: dark\) \{.*?^\})", css, re.DOTALL | re.MULTILINE
    )
    rules = [rule for rule in css.splitlines() if rule.startswith(("svg .", "svg p", "svg c", ".s0", ".s4"))]
    style = "\n".join([*roots, "svg { background: var(--paper); font-family: sans-serif; }", *rules])
    return (
        svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1).replace(
            ">", f"><style>\n{style}\n</style>", 1
        )
        + "\n"
    )


def main(arguments: Sequence[str]) -> int:
    if "--take" in arguments:
        content = taken(Path(arguments[arguments.index("--take") + 1]))
        RUNS.write_text(_as_json(content), encoding="utf-8")
    content = json.loads(RUNS.read_text(encoding="utf-8")) if RUNS.exists() else {}
    text, drawings = section(Runs(content))
    page = PAGE.read_text(encoding="utf-8")
    new = PART.sub(lambda match: match[1] + text + match[2], page)
    folder = PAGE.parent / CHARTS
    there = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.svg")}
    if "--check" in arguments:
        return int(new != page or there != drawings)
    PAGE.write_text(new, encoding="utf-8")
    for name in there.keys() - drawings.keys():
        (folder / name).unlink()
    for name, drawing in drawings.items():
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(drawing, encoding="utf-8")
    return 0


def _as_json(content: Mapping[str, Any]) -> str:
    """A line a row, as in field.json."""
    rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in content["rows"])
    rest = {name: content[name] for name in ("settings", "recipes", "curves")}
    return json.dumps(rest, ensure_ascii=False)[:-1] + ', "rows": [\n' + rows + "\n]}\n"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
