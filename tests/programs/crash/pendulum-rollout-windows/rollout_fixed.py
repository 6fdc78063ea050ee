import torch


def midpoint(field, state, dt):
    half = state + 0.5 * dt * field(state)
    return state + dt * field(half)


def windows(field, state, span=4, dt=0.1):
    """Integrates for ever and yields the path piece by piece."""
    while True:
        path = []
        for _ in range(span):
            state = midpoint(field, state, dt)
            path.append(state)
        yield torch.stack(path)
        state = state.detach()
