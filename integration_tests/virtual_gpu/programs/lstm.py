"""cuDNN's recurrent layers: both directions, two layers, dropout."""
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(100, 64)
        self.lstm = torch.nn.LSTM(64, 128, 2, batch_first=True, bidirectional=True, dropout=0.1)
        self.head = torch.nn.Linear(256, 100)

    def forward(self, tokens):
        return self.head(self.lstm(self.embed(tokens))[0])


model = Model().cuda()
optimizer = torch.optim.Adam(model.parameters())
tokens = torch.randint(0, 100, (8, 16)).cuda()
for _ in range(3):
    loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("lstm ok")
