import torch
from torch import nn


class FastSigmoid(torch.autograd.Function):
    """Heaviside forward, fast-sigmoid surrogate backward."""

    @staticmethod
    def forward(ctx, u):
        ctx.save_for_backward(u)
        return (u > 0).to(u.dtype)

    @staticmethod
    def backward(ctx, grad):
        (u,) = ctx.saved_tensors
        return grad / (1.0 + 10.0 * u.abs()) ** 2


class StatefulLayer(nn.Module):
    def __init__(self, state_names):
        super().__init__()
        self.state_names = state_names
        for name in state_names:
            self.register_buffer(name, torch.zeros(0), persistent=False)

    def is_state_initialised(self):
        return all(getattr(self, n).numel() > 0 for n in self.state_names)

    def init_state(self, batch, units):
        for name in self.state_names:
            setattr(self, name, torch.zeros(batch, units))

    def reset_states(self):
        """Reset the state/buffers of the layer."""
        if self.is_state_initialised():
            for buffer in self.buffers():
                buffer.zero_()


class LIF(StatefulLayer):
    def __init__(self, tau=8.0, threshold=1.0):
        super().__init__(["v_mem"])
        self.alpha = 1.0 - 1.0 / tau
        self.threshold = threshold

    def forward(self, current):            # current: (time, batch, units)
        steps, batch, units = current.shape
        if not self.is_state_initialised() or self.v_mem.shape[0] != batch:
            self.init_state(batch, units)
        v, spikes = self.v_mem, []
        for t in range(steps):
            v = self.alpha * v + current[t]
            s = FastSigmoid.apply(v - self.threshold)
            v = v - self.threshold * s.detach()
            spikes.append(s)
        self.v_mem = v
        return torch.stack(spikes)


def reset_net(net):
    for m in net.modules():
        if isinstance(m, StatefulLayer):
            m.reset_states()
