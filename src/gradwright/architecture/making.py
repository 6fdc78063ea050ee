"""Modules that a user gives, and modules that a user's callables make."""

from collections.abc import Callable, Sequence

from torch import nn

MakeModule = Callable[[], nn.Module]
"""Makes one new module per call."""

MakeGate = Callable[[int], nn.Module]
"""Makes one new gate per call, with so many outputs."""


def check_module(name: str, module: object) -> None:
    """Raises `TypeError` if `module` is not a module."""
    if isinstance(module, nn.Module):
        return
    advice = " Call it: this module is made once." if callable(module) else ""
    raise TypeError(f"`{name}` needs to be an `nn.Module`: got {_described(module)}.{advice}")


def check_number(name: str, number: int, least: int = 1) -> None:
    """Raises `ValueError` if `number` is below `least`, `TypeError` if it is no integer."""
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(f"`{name}` needs to be an integer: got {_described(number)}.")
    if number < least:
        raise ValueError(f"`{name}` needs to be {least} or more: got {number}.")


def check_list(name: str, values: Sequence[object]) -> None:
    """Raises an error if `values` is no list, or an empty one."""
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise TypeError(f"`{name}` needs to be a list: got {_described(values)}.")
    if not values:
        raise ValueError(f"`{name}` needs at least one entry: got an empty list.")


def make_modules(name: str, maker: MakeModule, count: int) -> list[nn.Module]:
    """`count` modules, each from its own call of `maker`.

    Raises:
        TypeError: `maker` is a module or is not callable, or what it returns is no module.
        ValueError: two calls returned the same module.
    """
    check_maker(name, maker, "lambda: ...")
    return _all_new(name, [maker() for _ in range(count)])


def make_gates(name: str, maker: MakeGate, widths: Sequence[int]) -> list[nn.Module]:
    """One gate per width, each from its own call of `maker`; raises as `make_modules`."""
    check_maker(name, maker, "lambda n: nn.Linear(..., n)")
    return _all_new(name, [maker(width) for width in widths])


def check_maker(name: str, maker: object, example: str) -> None:
    """Raises `TypeError` if `maker` is no callable that makes modules."""
    if isinstance(maker, nn.Module):
        raise TypeError(
            f"`{name}` needs a callable that makes a module: got a {type(maker).__name__}. "
            f"Several are needed, and one module would be shared by all. Write `{name}={example}`."
        )
    if not callable(maker):
        raise TypeError(
            f"`{name}` needs a callable that makes a module: got {_described(maker)}. "
            f"Write `{name}={example}`."
        )


def _all_new(name: str, made: list[nn.Module]) -> list[nn.Module]:
    for module in made:
        if not isinstance(module, nn.Module):
            raise TypeError(f"`{name}` needs to return an `nn.Module`: got {_described(module)}.")
    if len(set(map(id, made))) < len(made):
        raise ValueError(
            f"`{name}` returned the same {type(made[0]).__name__} in two calls, so its weights "
            "would be shared. Make the module inside the callable."
        )
    return made


def _described(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return f"{value!r}, of type {type(value).__name__}"
