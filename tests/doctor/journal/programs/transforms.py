"""torch.func, forward mode, scripts, checkpoints, hooks, sparse and nested tensors."""

# mypy: ignore-errors

import torch
from torch import nn
from torch.func import functional_call, grad, jacrev, jvp, vmap
from torch.nn.attention.flex_attention import flex_attention
from torch.utils.checkpoint import checkpoint


@torch.jit.script
def scripted(x):
    return torch.relu(x) * 2


def loss_of(parameters, x):
    return functional_call(net, parameters, (x,)).pow(2).sum()


net = nn.Linear(3, 2)
parameters = dict(net.named_parameters())
x = torch.randn(4, 3)
for _ in range(6):
    per_sample = vmap(grad(loss_of), in_dims=(None, 0))(parameters, x)
    print(per_sample["weight"].double().sum().item().hex())
    print(jacrev(loss_of)(parameters, x)["bias"].tolist())
    print(jvp(torch.sin, (x,), (x,))[1].sum().item().hex())
    print(scripted(x).sum().item().hex())
    for reentrant in (True, False):
        y = checkpoint(net, x.requires_grad_(), use_reentrant=reentrant)
        y.sum().backward()
    print(torch.autograd.functional.hessian(lambda v: (v**3).sum(), torch.ones(2)).tolist())
    query = torch.randn(1, 1, 4, 8)
    print(flex_attention(query, query, query).sum().item().hex())
    print(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged).shape[0])
    print(nn.Embedding(5, 2, sparse=True)(torch.tensor([1, 2])).sum().backward())
traced = torch.jit.trace(net, x.detach())
print(traced(x).sum().item().hex(), [n.op for n in torch.fx.symbolic_trace(net).graph.nodes])
exported = torch.export.export(net, (x.detach(),))
print([node.op for node in exported.graph.nodes])
