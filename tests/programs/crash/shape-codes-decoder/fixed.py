import torch
from torch import nn
from codes_fixed import make_codes

torch.manual_seed(47)
SHAPES, POINTS = 12, 64


class Decoder(nn.Module):
    """Signed distance of a point to the shape described by a code."""

    def __init__(self, code=6, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(code + 2, width), nn.Softplus(beta=10),
                                 nn.Linear(width, width), nn.Softplus(beta=10), nn.Linear(width, 1))

    def forward(self, code, point):
        code = code.unsqueeze(1).expand(-1, point.shape[1], -1)
        return self.net(torch.cat([code, point], dim=-1)).squeeze(-1)


def ellipses():
    point = 2 * torch.rand(SHAPES, POINTS, 2) - 1
    axes = 0.3 + 0.5 * torch.rand(SHAPES, 1, 2)
    return point, (point / axes).norm(dim=-1) - 1


point, distance = ellipses()
decoder, codes = Decoder(), make_codes(SHAPES, 6)
groups = {"decoder": (lambda: list(decoder.parameters()), 3e-3), "codes": (lambda: [codes], 1e-2)}
for name, (params, rate) in groups.items():
    optim = torch.optim.Adam(params(), lr=rate)
    for step in range(40):
        loss = (decoder(codes.detach() if name == "decoder" else codes, point) - distance).abs().mean()
        optim.zero_grad()
        loss.backward()
        optim.step()
        if step % 20 == 0:
            print(f"{name} step {step} loss {loss.item():.4f}")
