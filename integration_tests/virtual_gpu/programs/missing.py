"""A function of a library that has no stand-in fails as an unsupported one does, every time, and says its name once."""
import torch

for _ in range(2):
    try:
        torch.triangular_solve(torch.ones(4, 2, device="cuda"), torch.eye(4, device="cuda").to_sparse_csr())
    except RuntimeError as error:
        print(type(error).__name__)
