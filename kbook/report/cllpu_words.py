"""How the chapters of protocol B name settings, models and measures, and the one order in which they stand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd
from pandas.api.types import is_numeric_dtype

from kbook.corpora.languages import LANGUAGES
from kbook.corpora.units import SETTINGS
from kbook.report.published import MARK, Published, published
from kbook.scoring.accessibility import EM, JUDGE, ROUGE_L, SIMILARITY
from kbook.scoring.membership import LOSS, MIN_K_PERCENT, MIN_K_PLUS, ZLIB

REFERENCES = {"base": "Base", "original": "Original", "retrain": "Retrain"}
UNLEARNED = {
    "ga": "GA",
    "gd": "GD",
    "npo": "NPO",
    "simnpo": "SimNPO",
    "baldro_npo": "BalDRO-NPO",
    "baldro_simnpo": "BalDRO-SimNPO",
}
TITLES = REFERENCES | UNLEARNED
"""Method → its name in the paper, in the order of the paper's tables."""
SETTING_NAMES = dict(zip(SETTINGS, ("common goal", "language-conditioned"), strict=True))
PAPER_SETTINGS = dict(zip(SETTINGS, ("common", "conditioned"), strict=True))
"""Setting → how the columns of the published tables begin."""
MEASURE_NAMES = {
    EM: "EM",
    ROUGE_L: "ROUGE-L",
    SIMILARITY: "S",
    JUDGE: "judge",
    LOSS: "Loss",
    MIN_K_PERCENT: "Min-K%",
    MIN_K_PLUS: "Min-K%++",
    ZLIB: "Zlib",
}
TARGET, NEIGHBOUR = ROLE_NAMES = ("target", "neighbour")
"""What the roles forget and retain hold, as figures name it."""
SCOPES = ("source", "cross")
_ROLES = {"forget": TARGET, "retain": NEIGHBOUR}
_ORDERS = {
    "setting": tuple(SETTING_NAMES.values()),
    "method": tuple(TITLES.values()),
    "role": ROLE_NAMES,
    "measure": tuple(MEASURE_NAMES.values()),
    "source": LANGUAGES,
    "language": LANGUAGES,
    "demanded": LANGUAGES,
}


def title(method: str) -> str:
    """A method as the paper writes it; another one keeps its own name."""
    return TITLES.get(method, method)


def worded(frame: pd.DataFrame) -> pd.DataFrame:
    """Write settings, methods, roles and measures in words, and put the rows into the order of the book.

    Columns are sorted by from left to right, as far as the frame has them: setting, method, role, measure, source,
    language. Names that the book does not know come last, in their order; a column of numbers sorts nothing.
    """
    words = {"setting": SETTING_NAMES, "method": TITLES, "role": _ROLES, "measure": MEASURE_NAMES}
    frame = frame.reset_index(drop=True)
    named = frame.assign(**{c: frame[c].map(lambda x, w=w: w.get(x, x)) for c, w in words.items() if c in frame})
    columns = [column for column in _ORDERS if column in named and not is_numeric_dtype(named[column])]
    keys = named.assign(**{column: _places(named[column], _ORDERS[column]) for column in columns})
    return named.loc[keys.sort_values(columns, kind="stable").index].reset_index(drop=True)


def unlearned(frame: pd.DataFrame) -> pd.DataFrame:
    """Leave out the models that no unlearning made."""
    return frame[~frame["method"].isin((*REFERENCES, *REFERENCES.values()))].reset_index(drop=True)


def listed(names: Iterable[str]) -> str:
    """Names in a sentence; "none" where there are none."""
    return ", ".join(dict.fromkeys(names)) or "none"


def published_part(name: str, columns: dict[str, str]) -> Published:
    """A published table with some of its columns, under the names that ours have.

    Args:
        name: of the table.
        columns: column of the table without its mark → name for readers; label columns keep theirs.

    Missing: rows without any of these numbers are left out.
    """
    table = published(name)
    marked = {f"{column}{MARK}": f"{words}{MARK}" for column, words in columns.items()}
    labels = [column for column in table.frame.columns if not str(column).endswith(MARK)]
    chosen = table.frame[[*labels, *marked]].rename(columns=marked).dropna(subset=list(marked.values()), how="all")
    return Published(table.name, chosen.reset_index(drop=True), table.source, table.cite)


def _places(names: pd.Series, order: Sequence[str]) -> pd.Series:
    seen = (*order, *(name for name in names.drop_duplicates() if name not in order))
    return names.map({name: place for place, name in enumerate(seen)})
