import torch


def rmse(pred, target):
    return torch.sqrt(torch.mean((pred - target) ** 2)).item()


def evaluate(model, loader, best, groups=4):
    """Returns (rmse, best, report). The per-group report is only made for a new best model."""
    model.eval()
    torch.set_grad_enabled(False)
    preds, targets = [], []
    for x, y in loader:
        preds.append(model(x))
        targets.append(y)
    preds, targets = torch.cat(preds), torch.cat(targets)

    score = rmse(preds, targets)
    if score >= best:
        return score, best, None

    order = targets.argsort()
    report = {}
    for g, idx in enumerate(order.chunk(groups)):
        report[f"q{g + 1}"] = round(rmse(preds[idx], targets[idx]), 3)
    torch.set_grad_enabled(True)
    return score, score, report
