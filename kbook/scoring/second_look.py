"""What stands beside the verdicts of a table: two observers who see more than OR(all), and the other matcher."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kbook.scoring.cells import Reading
from kbook.scoring.disagreement import Disagreement, compare_matchers
from kbook.scoring.inference import Bootstrap
from kbook.scoring.observers import Beside, Seen, verdicts_beside
from kbook.scoring.panel import Panel
from kbook.scoring.sources import Reasons
from kbook.scoring.stitching import seen_by_stitching, stitched
from kbook.scoring.third_party import registry_of, seen_by_third_party, third_party


@dataclass(frozen=True, eq=False)
class SecondLook:
    """Figures beside those of a panel; none of them is counted in it.

    Args:
        seen: what each observer sees in each cell.
        labels: the labels that each observer would give.
        differences: where the two matchers disagree.
        panels: name of the matcher → the same cells, judged with it.
    """

    seen: tuple[Seen, ...]
    labels: tuple[Beside, ...]
    differences: Disagreement
    panels: dict[str, Panel]


def look_again(
    panel: Panel, readings: Sequence[Reading], rule: str, how: Bootstrap, not_applicable: Reasons | None = None
) -> SecondLook:
    """Look at the cells of a panel through other eyes.

    Args:
        panel: the judged cells.
        readings: the same cells as they were read, in the same order as `panel.cells`.
        rule: name of the matcher of the panel.
        how: the bootstrap.
        not_applicable: as in `panel.judge`.

    Missing: a row without text adds nothing to what OR(all) counts.
    Source: protocol A §2, the two matchers; §4, third-party disclosure; the limitations that the paper names.
    """
    cells, registry = dict(zip(readings, panel.cells, strict=True)), registry_of(readings)
    others = [seen_by_third_party(scores, third_party(reading, registry)) for reading, scores in cells.items()]
    together = [seen_by_stitching(scores, stitched(reading, scores, rule)) for reading, scores in cells.items()]
    labels = [*verdicts_beside(panel, others), *verdicts_beside(panel, together)]
    differences = compare_matchers(readings)
    panels = differences.panels(how, not_applicable)
    return SecondLook((*others, *together), tuple(labels), differences, panels)
