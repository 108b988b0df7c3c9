"""Programs that branch on values: branches.py DEVICE prints, for each, the operators of its steps and what it decided.

The numbers come from the CPU's generator, so that both devices have the same.
"""
import sys

import torch
from recorded import print_steps

DEVICE = sys.argv[1]


def data(*sizes):
    return torch.randn(*sizes).to(DEVICE)


def guard(step):
    loss = data(4, 4).pow(2).mean() if step != 2 else torch.tensor(float("inf")).to(DEVICE)
    if not torch.isfinite(loss):
        return "skipped"
    return float((loss * 2 > 1).item())


def mask_is_dropped(step):
    mask = torch.ones(2, 6, dtype=torch.bool, device=DEVICE)
    if step == 1:
        mask[1, 3:] = False
    x = data(2, 6, 8)
    if mask.all():
        return tuple(x.mean(1).shape)
    return tuple((x * mask[..., None]).sum(1).div(mask.sum(1)[:, None]).shape)


def rows_by_mask(step):
    x = data(10, 3)
    kept = x[x[:, 0] > 0]
    return len(kept) if step else kept.sum().item() > 0


def unique_classes(step):
    labels = torch.randint(0, 4, (12,)).to(DEVICE)
    total = 0
    for label in torch.unique(labels):
        total += (labels == label).nonzero().shape[0]
    return total


def early_stop(step):
    value = torch.tensor(8.0).to(DEVICE)
    rounds = 0
    while value > 1:
        value = value / 2 if rounds % 2 == 0 else value - 0.25
        rounds += 1
    return rounds


def top_scores(step):
    scores = data(20)
    best, where = scores.topk(5)
    return where.tolist() if best[0] > best[-1] else None


def scaler(step):
    scale = torch.tensor(1024.0).to(DEVICE)
    growth = torch.zeros((), dtype=torch.int32).to(DEVICE)
    found = torch.zeros(()).to(DEVICE)
    gradients = [data(3), data(2)]
    if step == 1:
        gradients[0][1] = float("nan")
    torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, scale.reciprocal())
    torch._amp_update_scale_(scale, growth, found, 2.0, 0.5, 1)
    return "skipped" if found.item() else scale.item()


def distribution(step):
    policy = torch.distributions.Categorical(logits=data(4, 3))
    actions = torch.tensor([0, 1, 2, 0]).to(DEVICE)
    ratio = (policy.log_prob(actions) - policy.log_prob(actions).detach()).exp()
    clipped = (ratio - 1).abs() > 0.2
    return bool(clipped.any()), policy.entropy().min().item() > 0


def buckets(step):
    lengths = torch.randint(1, 9, (6,)).to(DEVICE)
    order = torch.argsort(lengths, descending=True)
    return [int(n) for n in lengths[order].cumsum(0)][step], torch.repeat_interleave(order, lengths).shape[0]


def learns(step):
    torch.manual_seed(step)
    layer = torch.nn.Linear(4, 1).to(DEVICE)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1, foreach=False)  # the default differs by device
    x, y = data(16, 4), data(16, 1)
    before = None
    for _ in range(6):
        optimizer.zero_grad()
        loss = (layer(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
        if before is not None and loss < before:
            layer.weight.grad.zero_()
        before = loss.detach()
    return round(before.item(), 3)


print_steps(guard, mask_is_dropped, rows_by_mask, unique_classes, early_stop, top_scores, scaler, distribution, buckets, learns)
