"""Training loops as the usual frameworks write them, all on "cuda": loops.py trainer | closure | recipe."""
import io
import sys

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from block import Block

DEVICE = torch.device("cuda")


class Gpt(nn.Module):
    def __init__(self, words=100, width=64):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, input_ids, labels):
        x = self.embed(input_ids)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        logits = self.head(self.norm(x))
        return nn.functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())


def batches(count):
    tokens = torch.randint(0, 100, (4 * count, 17))
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(tokens), 4, num_workers=1, pin_memory=True)


def trainer():
    """Accumulated gradients, mixed precision, clipping, a schedule, an evaluation, a checkpoint of the state."""
    model = Gpt().to(DEVICE)
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}])
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (step + 1))
    total = torch.tensor(0.0, device=DEVICE)
    for i, (tokens,) in enumerate(batches(6)):
        tokens = tokens.to(DEVICE, non_blocking=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(input_ids=tokens[:, :-1], labels=tokens[:, 1:]) / 2
        loss.backward()
        total += loss.detach()
        if i % 2 == 1:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    model.eval()
    with torch.inference_mode():
        for (tokens,) in batches(1):
            total += model(tokens[:, :-1].to(DEVICE), tokens[:, 1:].to(DEVICE))
    state = {name: value.cpu() for name, value in model.state_dict().items()}
    print("loss is a number", total.item() == total.item(), len(state))


def closure():
    """The optimizer calls the forward and the backward itself, with a scaler beside."""
    torch.manual_seed(3)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(8, 10)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    images, labels = torch.randn(8, 3, 32, 32).to(DEVICE), torch.randint(0, 10, (8,)).to(DEVICE)

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(step)


def mixed(batch):
    """Two images become one, and so do their labels: what a loader's workers do."""
    images, labels = torch.utils.data.default_collate(batch)
    shares = nn.functional.one_hot(labels, 10).float()
    return 0.7 * images + 0.3 * images.roll(1, 0), 0.7 * shares + 0.3 * shares.roll(1, 0)


def recipe():
    """Images as recipes train them: smoothed labels, a scaler, clipping, an average of weights, accuracies, a resume."""
    model = nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.SiLU(), nn.AdaptiveAvgPool2d(1),
                          nn.Flatten(), nn.Dropout(0.2), nn.Linear(8, 10)).to(DEVICE)
    average = torch.optim.swa_utils.AveragedModel(
        model, device=DEVICE, avg_fn=lambda old, new, count: 0.9 * old + 0.1 * new, use_buffers=True)
    optimizer = torch.optim.RMSprop(model.parameters(), 0.01, momentum=0.9, weight_decay=1e-5)
    warm_up = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=2)
    schedule = torch.optim.lr_scheduler.SequentialLR(
        optimizer, [warm_up, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)], [2])
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    scaler = torch.amp.GradScaler("cuda")
    data = torch.utils.data.TensorDataset(torch.rand(32, 3, 32, 32), torch.randint(0, 10, (32,)))
    loader = torch.utils.data.DataLoader(data, 8, shuffle=True, num_workers=1, pin_memory=True, collate_fn=mixed)
    for _ in range(2):
        for images, labels in loader:
            images, labels = images.to(DEVICE, non_blocking=True), labels.to(DEVICE, non_blocking=True)
            with torch.autocast("cuda"):
                loss = criterion(model(images), labels)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            average.update_parameters(model)
            loss.item()
        schedule.step()
    for network in (model, average):
        network.eval()
        with torch.inference_mode():
            for images, labels in torch.utils.data.DataLoader(data, 16):
                output = network(images.to(DEVICE))
                _, best = output.topk(5, 1)
                best.t().eq(labels.to(DEVICE)).flatten().sum(dtype=torch.float32).item()
    saved = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scaler": scaler.state_dict()}, saved)
    saved.seek(0)
    model.load_state_dict(torch.load(saved, map_location="cpu")["model"])


{"trainer": trainer, "closure": closure, "recipe": recipe}[sys.argv[1]]()
torch.cuda.synchronize()
print("loop ok")
