"""Training whose loss has factorisations, eigenvalues and singular values: linear_algebra.py N.

Prints a line for each step, and what small matrices of known values give.
"""
import sys

import torch
from torch import nn

N = int(sys.argv[1])


class Whitening(nn.Module):
    """A layer whose weights are a symmetric, positive matrix."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(N, N) / N ** 0.5)

    def forward(self, x):
        matrix = self.weight @ self.weight.t() + torch.eye(N, device=x.device)
        lower = torch.linalg.cholesky(matrix)
        white = torch.linalg.solve_triangular(lower, x.t(), upper=False).t()
        values = torch.linalg.eigh(matrix).eigenvalues
        left, singular, right = torch.linalg.svd(self.weight, full_matrices=False)
        _, _, upper = torch.linalg.lu(matrix)
        return white, values.log().sum() + singular.sum() + upper.diagonal().sum() + 0 * (left @ right).sum()


torch.manual_seed(0)
whiten = Whitening().cuda()
optimizer = torch.optim.SGD(whiten.parameters(), lr=0.01)
for step in range(3):
    optimizer.zero_grad()
    white, spectrum = whiten(torch.randn(16, N, device="cuda"))
    (white.pow(2).mean() + spectrum).backward()
    optimizer.step()
    print("step", step)

matrix = torch.diag(torch.arange(1.0, N + 1)).cuda()
mixed = torch.tensor([[0.0, 2, 3, 1], [4, 5, 6, 2], [7, 8, 1, 3], [1, 2, 1, 9]])
factors = torch.linalg.lu(mixed.cuda())
print("lu", all(torch.equal(got.cpu(), expected) for got, expected in zip(factors, torch.linalg.lu(mixed))))
print("values", torch.linalg.eigvalsh(matrix)[-1].item(), torch.linalg.svdvals(matrix)[0].item(),
      torch.linalg.cholesky(matrix)[-1, -1].item() ** 2, torch.linalg.solve(matrix, matrix).trace().item())

# Least squares, of one system and of several; eigenvalues of a matrix that is not symmetric, which are complex.
tall, right = torch.randn(3, 12, 5), torch.randn(3, 12, 2)
expected = torch.linalg.lstsq(tall, right).solution
several = torch.linalg.lstsq(tall.cuda(), right.cuda()).solution.cpu()
one = torch.linalg.lstsq(tall[0].cuda(), right[0].cuda()).solution.cpu()
print("least squares", torch.allclose(several, expected, atol=1e-5), torch.allclose(one, expected[0], atol=1e-5))
values, vectors = torch.linalg.eig(mixed.cuda())
print("eig", values.dtype, tuple(values.shape), tuple(vectors.shape), tuple(torch.linalg.eigvals(mixed.cuda()).shape))
