"""A tensor subclass hears of every torch function: also of those that a watcher calls."""

# mypy: ignore-errors

import torch


class Heard(torch.Tensor):
    calls: list[str] = []  # noqa: RUF012

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(getattr(func, "__name__", str(func)))
        return super().__torch_function__(func, types, args, kwargs or {})


weight = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([weight], lr=0.1)
for _ in range(6):
    data = torch.arange(3.0).as_subclass(Heard)
    loss = ((data * weight).exp() - 1).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(Heard.calls)
