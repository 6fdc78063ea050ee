"""Names of tensors, as their modules call them."""

from collections.abc import Iterable

import torch


def names_of_tensors(modules: Iterable[tuple[str, torch.nn.Module]]) -> dict[int, str]:
    """Map `id(tensor)` to the dotted name of each parameter and buffer.

    `modules` pairs a prefix (the user's variable) with a module; the first name given to a
    tensor stays, so tied weights keep the name that was registered first.
    """
    names: dict[int, str] = {}
    for prefix, module in modules:
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            names.setdefault(id(tensor), f"{prefix}.{name}" if prefix else name)
    return names
