"""Training that goes where computed masks send it, as people write it: masked_training.py DEVICE prints, for each program, the
operators of its steps, forward, backward and optimizer, and what was decided in them.

Each program is a function that makes a model and returns its step. Numbers come from the CPU's generator, so that both
devices have the same. Optimizers and the norm of gradients go tensor by tensor, because their default differs by device.
"""
import copy
import sys

import torch
from recorded import print_step
from torch import nn
from torch.nn import functional as F

DEVICE = sys.argv[1]


def data(*sizes):
    return torch.randn(*sizes).to(DEVICE)


def labels(count, *sizes):
    return torch.randint(count, sizes).to(DEVICE)


def trained(model, lr=0.1):
    model.to(DEVICE)
    return model, torch.optim.SGD(model.parameters(), lr=lr, foreach=False)


def update(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def padded_attention():
    """As in Hugging Face's models: a padding mask that hides nothing is dropped."""
    model, optimizer = trained(nn.ModuleDict({name: nn.Linear(8, 8) for name in ("query", "key", "value", "out")}))

    def step(number):
        mask = (torch.arange(6)[None] < torch.tensor([6, 6 if number != 1 else 4])[:, None]).to(DEVICE)
        bias = None
        if not mask.all():
            bias = torch.zeros(2, 1, 6, device=DEVICE).masked_fill(~mask[:, None], torch.finfo(torch.float32).min)
        x = data(2, 6, 8)
        scores = model["query"](x) @ model["key"](x).transpose(1, 2) / 8 ** 0.5
        if bias is not None:
            scores = scores + bias
        out = model["out"](scores.softmax(-1) @ model["value"](x))
        update(optimizer, F.mse_loss(out[mask], torch.zeros_like(out[mask])))
        return bias is not None, int(mask.sum())
    return step


def boxes_of_positives():
    """A detector's losses: boxes count for anchors with an object only, and not at all where there is none."""
    model, optimizer = trained(nn.Linear(8, 5))

    def step(number):
        out, objects, boxes = model(data(24, 8)), labels(3, 24), data(24, 4)
        positive = objects > (0 if number != 1 else 2)
        loss = F.binary_cross_entropy_with_logits(out[:, 0], positive.float())
        rows = torch.nonzero(positive).squeeze(1)
        if rows.numel():
            loss = loss + F.smooth_l1_loss(out[rows, 1:], boxes[rows], reduction="sum") / rows.numel()
        update(optimizer, loss)
        return rows.tolist()
    return step


def hard_negatives():
    """SSD's mining: three negatives for each positive, those with the largest losses."""
    model, optimizer = trained(nn.Linear(8, 4))

    def step(number):
        target = labels(4, 32) * (torch.rand(32) < 0.2).to(DEVICE)
        losses = F.cross_entropy(model(data(32, 8)), target, reduction="none")
        positive = target > 0
        count = min(3 * int(positive.sum()), int((~positive).sum()))
        if count == 0:
            return "none"
        hard, where = losses.masked_fill(positive, -1).topk(count)
        update(optimizer, (losses[positive].sum() + hard.sum()) / positive.sum())
        return where.tolist()
    return step


def dropped_tokens():
    """Tokens below the mean norm leave; the layer runs on as many as are left."""
    model, optimizer = trained(nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 8)))

    def step(number):
        x = data(3, 10, 8)
        norm = x.norm(dim=-1)
        kept = (norm > norm.mean()).nonzero(as_tuple=True)
        out = x.index_put(kept, model(x[kept]))
        update(optimizer, out.pow(2).mean())
        return len(kept[0])
    return step


def routed_experts():
    """A mixture of experts: each runs on the tokens that were routed to it, up to its capacity, and not where none was."""
    model, optimizer = trained(nn.ModuleList([nn.Linear(8, 4), *(nn.Linear(8, 8) for _ in range(4))]))

    def step(number):
        x = data(7 if number != 1 else 2, 8)
        gate, choice = model[0](x).softmax(-1).topk(2)
        out, loads = torch.zeros_like(x), []
        for expert in range(4):
            token, which = torch.where(choice == expert)
            loads.append(token.numel())
            if token.numel() == 0:
                continue
            if token.numel() > 3:
                best = gate[token, which].argsort(descending=True)[:3]
                token, which = token[best], which[best]
            out = out.index_add(0, token, model[expert + 1](x[token]) * gate[token, which, None])
        update(optimizer, (out - x).pow(2).mean())
        return loads
    return step


def rare_classes():
    """A curriculum: a class that the batch lacks is left out of the weights, and a rare one is repeated."""
    model, optimizer = trained(nn.Linear(8, 4))

    def step(number):
        x, y = data(12, 8), labels(4 if number else 2, 12)
        counts = torch.bincount(y, minlength=4)
        rare = ((counts > 0) & (counts < 3)).nonzero().flatten()
        for label in rare.tolist():
            x, y = torch.cat([x, x[y == label]]), torch.cat([y, y[y == label]])
        weight = torch.where(counts > 0, counts.sum() / counts.clamp(min=1), 0.0)
        update(optimizer, F.cross_entropy(model(x), y, weight=weight))
        return counts.tolist(), len(y)
    return step


def skipped_updates():
    """A step whose gradients' norm is too large or no number is left out."""
    model, optimizer = trained(nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)))

    def step(number):
        x = data(6, 8) * (1, 1, float("nan"))[number]
        optimizer.zero_grad()
        model(x).pow(2).mul(1 if number != 1 else 1e4).mean().backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=False)
        if not torch.isfinite(norm) or norm > 100:
            return "skipped"
        optimizer.step()
        return round(norm.item(), 3)
    return step


def restored_weights():
    """A loss that explodes brings the last good weights back, with half the rate."""
    model, optimizer = trained(nn.Linear(4, 1), lr=1.0)
    good = [copy.deepcopy(model.state_dict())]

    def step(number):
        loss = model(data(8, 4) * (1 if number != 1 else 1e30)).pow(2).mean()
        if not torch.isfinite(loss):
            model.load_state_dict(good[0])
            optimizer.param_groups[0]["lr"] *= 0.5
            return "restored"
        good[0] = copy.deepcopy(model.state_dict())
        update(optimizer, loss)
        return round(loss.item(), 3)
    return step


def teacher_forcing():
    """A decoder that is fed the truth or its own words, by the toss of a coin, until all sentences have ended."""
    model, optimizer = trained(nn.ModuleList([nn.Embedding(5, 8), nn.Linear(16, 8), nn.Linear(8, 5)]))

    def step(number):
        target = labels(5, 3, 6)
        state, word = torch.zeros(3, 8, device=DEVICE), target[:, 0]
        ended = torch.zeros(3, dtype=torch.bool, device=DEVICE)
        loss = state.sum()
        for i in range(1, 6):
            state = model[1](torch.cat([model[0](word), state], 1)).tanh()
            scores = model[2](state)
            if (~ended).any():
                loss = loss + F.cross_entropy(scores[~ended], target[~ended, i])
            word = target[:, i] if torch.rand(()) < 0.5 else scores.argmax(-1)
            ended = ended | (word == 0)
            if ended.all():
                break
        update(optimizer, loss)
        return i, ended.tolist()
    return step


def policy_epochs():
    """PPO's passes over one batch, which end when the policy has gone too far."""
    model, optimizer = trained(nn.Linear(6, 3), lr=1.0)

    def step(number):
        seen, actions, gains = data(16, 6), labels(3, 16), data(16)
        before = torch.distributions.Categorical(logits=model(seen)).log_prob(actions).detach()
        for epoch in range(6):
            ratio = torch.distributions.Categorical(logits=model(seen)).log_prob(actions) - before
            if (ratio.exp() - 1 - ratio).mean() > 0.1:
                break
            ratio = ratio.exp()
            update(optimizer, -torch.min(ratio * gains, ratio.clamp(0.8, 1.2) * gains).mean())
        return epoch
    return step


for program in (padded_attention, boxes_of_positives, hard_negatives, dropped_tokens, routed_experts, rare_classes, skipped_updates,
                restored_weights, teacher_forcing, policy_epochs):
    torch.manual_seed(1)
    train = program()
    for i in range(3):
        print_step(program.__name__, i, train)
