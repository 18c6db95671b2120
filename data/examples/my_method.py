"""A method of one's own, for `kbook run kbench_your_method`: forgetting by task arithmetic.

Copy this file, change it, and name it wherever a method is expected, as in
``kbook run kbench_method_panel -p 'methods=["data/examples/my_method.py::TaskVector"]'``.
"""

from typing import Any

import torch
from pydantic import Field

from kbook.methods.weights import Contrast, Material, TrainedMethod, Training
from kbook.models.likelihood import token_loss


class TaskVectorParameters(Training):
    """Settings; each has a default, a range and a meaning, which tables and errors repeat."""

    scale: float = Field(1.0, ge=0, le=100, description="how far to go the other way")


class TaskVector(TrainedMethod):
    """Learn the forget documents even better, then go from the start the same way back.

    With theta0 the start and theta1 the weights after training on the forget documents, the edited model is
    ``theta0 - scale * (theta1 - theta0)``. No retain document is read: what keeps other people in place is only that
    the difference has little to do with them.
    """

    name, title = "task_vector", "Task vector"
    source = "Ilharco et al. 2212.04089, negation; all weights, AdamW"
    Parameters = TaskVectorParameters
    settings: TaskVectorParameters

    def loss(self, model: Any, item: Contrast) -> torch.Tensor:
        """What one step minimises: the loss per token on a batch of forget documents."""
        return token_loss(model, item.forget)

    @torch.no_grad()
    def finished(self, trained: Any, material: Material) -> Any:
        """From the trained model to the one that is deployed."""
        for new, old in zip(trained.parameters(), material.start.model.parameters(), strict=True):
            new.copy_(old - self.settings.scale * (new - old))
        return trained
