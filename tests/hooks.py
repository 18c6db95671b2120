"""Which hooks stand on a model's modules."""

from kbook.models.bases import Base


def hooked(base: Base) -> list[str]:
    """Names of the modules with a forward hook, those aside that transformers leaves where states were asked for."""
    return [
        name
        for name, module in base.model.named_modules()
        for hook in (*module._forward_hooks.values(), *module._forward_pre_hooks.values())
        if not getattr(hook, "__module__", "").startswith("transformers.")
    ]
