"""A model that runs, and is afterwards as it was."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from gradwright.loops.accumulation.aside import Aside


@contextmanager
def untouched(model: nn.Module) -> Iterator[None]:
    """After the block `.grad`, buffers and random numbers are what they were before.

    Within it the parameters begin without gradients.
    """
    parameters = list(model.parameters())
    buffers = [
        (module, name, buffer, None if buffer is None else buffer.clone())
        for module in model.modules()
        for name, buffer in module._buffers.items()
    ]
    devices = {parameter.device for parameter in parameters if parameter.device.type == "cuda"}
    aside = Aside(parameters)
    try:
        with torch.random.fork_rng(devices=sorted(devices, key=str)):
            yield
    finally:
        aside.put_back()
        for module, name, buffer, values in buffers:
            module._buffers[name] = buffer
            if buffer is not None and values is not None:
                buffer.data.copy_(values)  # .data: graphs that saved it may still be used
