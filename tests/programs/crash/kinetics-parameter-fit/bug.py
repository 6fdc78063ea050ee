import torch

torch.manual_seed(2)


def simulate(rates, start, times):
    """Explicit Euler for A -> B -> C."""
    k1, k2 = rates
    state, path, now = start, [start], times[0]
    for t in times[1:]:
        dt = t - now
        a, b, c = state
        state = torch.stack([a - dt * k1 * a, b + dt * (k1 * a - k2 * b), c + dt * k2 * b])
        path.append(state)
        now = t
    return torch.stack(path)


def calibrate(measured, start, times, stages=3):
    log_rates = torch.zeros(2, requires_grad=True)
    solver = torch.optim.LBFGS([log_rates], lr=0.5, max_iter=8, line_search_fn="strong_wolfe")
    for stage in range(stages):
        rates = log_rates.exp()

        def objective():
            solver.zero_grad()
            misfit = (simulate(rates, start, times) - measured).pow(2).mean()
            misfit.backward()
            return misfit

        before = solver.step(objective)
        print(f"stage {stage} loss {before.item():.6f} rates {log_rates.exp().tolist()}")
    return log_rates.exp().detach()


times = torch.linspace(0, 4, 60)
start = torch.tensor([1.0, 0.0, 0.0])
with torch.no_grad():
    measured = simulate(torch.tensor([0.7, 1.6]), start, times)
    measured = measured + 0.005 * torch.randn_like(measured)
calibrate(measured, start, times)
