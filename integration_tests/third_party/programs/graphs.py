"""Graph networks of PyTorch Geometric on a random graph.

    graphs.py gcn|gat|sage
"""
import sys

import torch
import torch_geometric as pyg
from counted import counted

LAYERS = {"gcn": pyg.nn.GCNConv, "gat": pyg.nn.GATConv, "sage": pyg.nn.SAGEConv}


class Net(torch.nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.first, self.second = layer(64, 128), layer(128, 7)

    def forward(self, x, edges):
        x = torch.nn.functional.dropout(self.first(x, edges).relu(), training=self.training)
        return self.second(x, edges).log_softmax(1)


graph = pyg.data.Data(x=torch.randn(2000, 64), y=torch.randint(7, (2000,)),
                      edge_index=pyg.utils.to_undirected(torch.randint(2000, (2, 6000)))).to("cuda")
graph.train_mask = torch.rand(2000, device="cuda") < 0.5
model = Net(LAYERS[sys.argv[1]]).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for i in range(6):
    with counted(i):
        optimizer.zero_grad()
        out = model(graph.x, graph.edge_index)
        loss = torch.nn.functional.nll_loss(out[graph.train_mask], graph.y[graph.train_mask])
        loss.backward()
        optimizer.step()
model.eval()
print("accuracy", (model(graph.x, graph.edge_index).argmax(1) == graph.y).float().mean().item(), "in training",
      int(graph.train_mask.sum()))
