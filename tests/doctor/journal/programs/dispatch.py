"""A wrapper subclass hears of every operator, also of those that only look at it."""

# mypy: ignore-errors

import torch
from torch.utils._pytree import tree_map


class Wrapped(torch.Tensor):
    calls: list[str] = []  # noqa: RUF012

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            dtype=inner.dtype,
            device=inner.device,
            dispatch_sizes_strides_policy="sizes",
            dispatch_device=True,
            dispatch_layout=True,
        )

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(str(func))
        peeled = tree_map(lambda x: x.inner if isinstance(x, Wrapped) else x, (args, kwargs or {}))
        result = func(*peeled[0], **peeled[1])
        return tree_map(lambda x: cls(x) if isinstance(x, torch.Tensor) else x, result)


for _ in range(3):
    data = Wrapped(torch.arange(4.0))
    print((data * 2 + 1).inner.tolist())
    data.add_(1)
print(Wrapped.calls)
