import torch
import torch.nn as nn
import torch.nn.functional as F


class STFTLoss(nn.Module):
    def __init__(self, n_fft, hop, complex_weight=0.0):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.complex_weight = complex_weight
        self.register_buffer("window", torch.hann_window(n_fft))

    def spec(self, x):
        return torch.stft(x, self.n_fft, self.hop, window=self.window, return_complex=True)

    def forward(self, pred, target):
        P, T = self.spec(pred), self.spec(target)
        p_mag, t_mag = P.abs().clamp(min=1e-5), T.abs().clamp(min=1e-5)
        sc = torch.norm(t_mag - p_mag) / torch.norm(t_mag)
        loss = sc + F.l1_loss(p_mag.log(), t_mag.log())
        if self.complex_weight > 0:
            loss = loss + self.complex_weight * torch.mean((P - T).abs() ** 2)
        return loss


class MultiResolutionSTFTLoss(nn.Module):
    def __init__(self, fft_sizes=(64, 128), complex_weight=0.0):
        super().__init__()
        self.losses = nn.ModuleList(STFTLoss(n, n // 4, complex_weight) for n in fft_sizes)

    def forward(self, pred, target):
        return sum(l(pred, target) for l in self.losses) / len(self.losses)
