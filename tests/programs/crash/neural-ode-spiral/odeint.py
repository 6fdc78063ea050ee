import torch


def _euler_step(func, t, h, y):
    y += h * func(t, y)
    return y


def _midpoint_step(func, t, h, y):
    half = y + 0.5 * h * func(t, y)
    return y + h * func(t + 0.5 * h, half)


SOLVERS = {"euler": _euler_step, "midpoint": _midpoint_step}


def odeint(func, y0, t, method="midpoint", substeps=2):
    """Fixed-step solver; returns the states at the times in t, shape (len(t), *y0.shape)."""
    step = SOLVERS[method]
    y = y0.clone()
    solution = [y.clone()]
    for t0, t1 in zip(t[:-1], t[1:]):
        h = (t1 - t0) / substeps
        for k in range(substeps):
            y = step(func, t0 + k * h, h, y)
        solution.append(y.clone())
    return torch.stack(solution)
