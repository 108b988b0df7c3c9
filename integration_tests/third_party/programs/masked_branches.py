"""Programs in small that go where computed values send them: what is kept, how often, and whether to step at all."""
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda", init_scale=1024.0)
for i in range(6):
    x, y = torch.randn(32, 16).cuda(), torch.randint(4, (32,)).cuda()
    kept = x.abs().mean(1) > 0.7
    if not kept.any():
        continue
    losses = nn.functional.cross_entropy(net(x[kept]), y[kept], reduction="none")
    hard = losses.topk(max(1, int(0.5 * len(losses)))).values
    loss = hard.mean()
    if not torch.isfinite(loss):
        raise SystemExit("not finite")
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    print(i, int(kept.sum()), len(hard), scaler.get_scale())
