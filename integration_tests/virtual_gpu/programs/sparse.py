"""Training with sparse matrices: sparse.py DEVICE NODES EDGES WIDTH.

Prints a line "KIND NUMBERS" for each kind of product, with what it gave, and one for each step of a graph network. The
same seed makes the same graph on every device.
"""
import sys

import torch
from torch import nn

DEVICE, NODES, EDGES, WIDTH = sys.argv[1], *map(int, sys.argv[2:])


def say(kind, *numbers):
    print(kind, *(f"{float(number):.5g}" for number in numbers))


class Convolution(nn.Module):
    """A layer of a graph network: neighbours' features, each by the weight of its edge."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) / inputs ** 0.5)

    def forward(self, adjacency, x):
        return torch.sparse.mm(adjacency, x @ self.weight)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = Convolution(WIDTH, WIDTH), Convolution(WIDTH, 3)

    def forward(self, adjacency, x):
        return self.last(adjacency, self.first(adjacency, x).relu())


torch.manual_seed(0)
# Edges in no order, one of them twice: PyTorch adds the two up.
places = torch.randperm(EDGES) * (NODES * NODES // EDGES)
places[0] = places[1]
edges = torch.stack([places // NODES, places % NODES])
features, labels = torch.randn(NODES, WIDTH), torch.randint(3, (NODES,))
network = Network().to(DEVICE)
x, y = features.to(DEVICE), labels.to(DEVICE)
coo = torch.sparse_coo_tensor(edges.to(DEVICE), torch.rand(EDGES).to(DEVICE), (NODES, NODES))
csr = coo.coalesce().to_sparse_csr()
print("numbers", coo.coalesce()._nnz())

optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for step, adjacency in enumerate((coo, coo.coalesce(), csr)):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(network(adjacency, x), y)
    loss.backward()
    optimizer.step()
    say("step", loss)

with torch.no_grad():
    say("matmul", (csr @ x).sum(), (coo @ x).square().sum())
    say("vector", (csr @ x[:, 0]).sum(), torch.mv(coo.coalesce(), x[:, 1]).sum())
    say("addmm", torch.sparse.addmm(x, coo, x, beta=2, alpha=3).sum(), torch.addmm(x, csr, x).sum())
    say("sampled", torch.sparse.sampled_addmm(csr, x, x.t()).values().sum())
    both = torch.sparse.mm(coo, coo)
    print("product", both._nnz())
    say("product", torch.sparse.sum(both))
    say("dense", coo.to_dense().sum(), csr.to_dense().sum())

# Gradients of an embedding that are sparse, and optimizers that add them to what is dense.
for kind in (torch.optim.SparseAdam, torch.optim.SGD, torch.optim.Adagrad):
    torch.manual_seed(1)
    table = nn.Embedding(NODES, WIDTH, sparse=True)
    rows = torch.randint(NODES, (WIDTH, 4)).to(DEVICE)
    table = table.to(DEVICE)
    optimizer = kind(table.parameters(), lr=0.1)
    for step in range(2):
        optimizer.zero_grad()
        loss = table(rows).square().sum()
        loss.backward()
        optimizer.step()
    say("embedding", loss, table.weight.grad.coalesce().values().sum())

weighted = coo.coalesce().requires_grad_()
torch.sparse.mm(weighted, x).square().sum().backward()
say("gradient", weighted.grad.coalesce().values().sum())
compressed = csr.detach().requires_grad_()
torch.sparse.mm(compressed, x).square().sum().backward()
say("gradient", compressed.grad.to_dense().sum())
