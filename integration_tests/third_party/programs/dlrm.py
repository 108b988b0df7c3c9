"""Recommendation: embedding bags, a bottom and a top network, and the dot products between them, as DLRM has them."""
import torch
from counted import counted
from torch import nn


class Dlrm(nn.Module):
    def __init__(self, tables=8, rows=10000, width=32):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum", sparse=False) for _ in range(tables))
        self.bottom = nn.Sequential(nn.Linear(13, 128), nn.ReLU(), nn.Linear(128, width), nn.ReLU())
        pairs = (tables + 1) * tables // 2
        self.top = nn.Sequential(nn.Linear(pairs + width, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, dense, indices, offsets):
        dense = self.bottom(dense)
        rows = torch.stack([dense, *(table(i, o) for table, i, o in zip(self.tables, indices, offsets))], 1)
        products = torch.bmm(rows, rows.transpose(1, 2))
        i, j = torch.tril_indices(rows.shape[1], rows.shape[1], -1, device=rows.device)
        return self.top(torch.cat([products[:, i, j], dense], 1)).squeeze(1)


BATCH = 256
model = Dlrm().cuda()
optimizer = torch.optim.Adagrad(model.parameters(), lr=1e-2)
for i in range(5):
    dense, clicked = torch.randn(BATCH, 13).cuda(), torch.randint(2, (BATCH,)).float().cuda()
    indices = [torch.randint(10000, (BATCH * 4,)).cuda() for _ in model.tables]
    offsets = [torch.arange(0, BATCH * 4, 4).cuda() for _ in model.tables]
    with counted(i):
        loss = nn.functional.binary_cross_entropy_with_logits(model(dense, indices, offsets), clicked)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print("loss", loss.item())
