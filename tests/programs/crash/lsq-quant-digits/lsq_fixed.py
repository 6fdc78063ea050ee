import torch
import torch.nn as nn
import torch.nn.functional as F


class LSQ(torch.autograd.Function):
    """Learned step size quantisation, one step size per output channel."""

    @staticmethod
    def forward(ctx, w, step, qn, qp):
        s = step.view(-1, 1)
        ctx.save_for_backward(w, step)
        ctx.range = (qn, qp)
        return (w / s).round().clamp(qn, qp) * s

    @staticmethod
    def backward(ctx, grad):
        w, step = ctx.saved_tensors
        qn, qp = ctx.range
        scale = 1.0 / (w.size(1) * qp) ** 0.5
        v = w / step.view(-1, 1)
        low, high = v < qn, v > qp
        middle = ~(low | high)
        grad_w = grad * middle
        d_step = torch.where(low, torch.full_like(v, qn), torch.where(high, torch.full_like(v, qp), v.round() - v))
        grad_step = (grad * d_step).sum(1) * scale
        return grad_w, grad_step, None, None


class QLinear(nn.Linear):
    def __init__(self, in_features, out_features, bits=4):
        super().__init__(in_features, out_features)
        self.qn, self.qp = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        self.step = nn.Parameter(torch.ones(out_features))
        self.quantize = False

    @torch.no_grad()
    def init_step(self):
        self.step.copy_(2 * self.weight.abs().mean(1) / self.qp ** 0.5)
        self.quantize = True

    def forward(self, x):
        w = LSQ.apply(self.weight, self.step, self.qn, self.qp) if self.quantize else self.weight
        return F.linear(x, w, self.bias)


def enable_quantization(model):
    for m in model.modules():
        if isinstance(m, QLinear):
            m.init_step()
