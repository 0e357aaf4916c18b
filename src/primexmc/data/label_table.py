"""The table of labels: uid and name, and what the encoder reads of each."""

from __future__ import annotations

from ..errors import UserError
from .corpus import Labels
from .fields import as_text, say_textless_labels
from .sources import Table
from .texts import TextsBuilder

LABEL_COLUMNS = ("uid", "name", "title", "text", "content")


def read_label_table(table: Table) -> Labels:
    """Every row is a label. Without uid its name stands in; without text, name and content make the text."""
    name_column = next((column for column in ("name", "title") if column in table.columns), None)
    if name_column is None and "uid" not in table.columns:
        listed = ", ".join(table.columns)
        raise UserError(f"{table.place}: no column uid, name or title; its columns are {listed}.")
    uids, names, texts = TextsBuilder(), TextsBuilder(), TextsBuilder()
    seen: dict[str, int] = {}
    for line, row in table.rows:
        place = table.at(line)
        uid, name = (as_text(row.get(key), key, place).strip() for key in ("uid", name_column or "uid"))
        uid = uid or name
        if not uid:
            raise UserError(f"{place}: a label with neither uid nor name.")
        if seen.setdefault(uid, line) != line:
            raise UserError(f'{place}: label uid "{uid}" was already on {table.unit} {seen[uid]}; uids must differ.')
        uids.add(uid)
        names.add(name)
        text = as_text(row.get("text"), "text", place).strip()
        texts.add(text or f"{name} {as_text(row.get('content'), 'content', place).strip()}".strip())
    if not seen:
        raise UserError(f"{table.place}: no labels in it; expected one a line below the header.")
    labels = Labels(uids.finish(), names.finish(), texts.finish())
    say_textless_labels(labels, table.place)
    return labels
