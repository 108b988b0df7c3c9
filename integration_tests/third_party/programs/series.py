"""Time series: an LSTM and a small transformer that forecast.

    series.py lstm|transformer
"""
import sys

import torch
from counted import counted
from torch import nn


class Forecaster(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        if kind == "lstm":
            self.body = nn.LSTM(8, 128, num_layers=2, batch_first=True, dropout=0.1)
        else:
            layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True, norm_first=True)
            self.embed, self.body = nn.Linear(8, 128), nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(128, 1)

    def forward(self, x):
        if self.kind == "lstm":
            return self.head(self.body(x)[0][:, -1])
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=x.device)
        return self.head(self.body(self.embed(x), mask=mask, is_causal=True)[:, -1])


model = Forecaster(sys.argv[1]).cuda()
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
for i in range(6):
    x, y = torch.randn(64, 96, 8).cuda(), torch.randn(64, 1).cuda()
    with counted(i):
        loss = nn.functional.huber_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.5)
        optimizer.step()
    schedule.step(loss.item())
print("loss", loss.item())
