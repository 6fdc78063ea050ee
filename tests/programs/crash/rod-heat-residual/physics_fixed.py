import torch


def derivative(u, x):
    return torch.autograd.grad(u.sum(), x, create_graph=True)[0]


def residual(field, x, t, diffusivity):
    u = field(x, t)
    u_t = derivative(u, t)
    u_x = derivative(u, x)
    return u_t - diffusivity * derivative(u_x, x)
