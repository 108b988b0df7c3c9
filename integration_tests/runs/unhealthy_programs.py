"""Five small programs whose backward does work that no layer's forward explains, each in a process of its own: each must
raise an alarm.

    unhealthy_programs.py      prints "NAME PID" for each; the traces are named after the process ids
"""
import torch
import torch.nn.functional as F
from torch import nn

from healthy_programs import mlp, run_all, train

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


class Product(torch.autograd.Function):
    """A product whose backward does its own work `times` times."""

    @staticmethod
    def forward(ctx, x, weight, times):
        ctx.save_for_backward(x, weight)
        ctx.times = times
        return x @ weight

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        for _ in range(ctx.times):
            of_x, of_weight = gradient @ weight.t(), x.t() @ gradient
        return of_x, of_weight, None


class Layer(nn.Module):
    def __init__(self, times):
        super().__init__()
        self.times, self.weight = times, nn.Parameter(torch.ones(64, 64))

    def forward(self, x):
        return Product.apply(x, self.weight, self.times)


@program
def a_backward_that_does_its_work_thrice():
    train(nn.Sequential(nn.Linear(64, 64), Layer(3)), torch.ones(32, 64))


@program
def a_hook_that_multiplies_the_gradient():
    net = mlp(64, 64, 64)
    big = torch.ones(64, 256)

    def loss(out):
        out.register_hook(lambda gradient: (gradient @ big @ big.t()) * 0 + gradient)
        return out.pow(2).mean()

    train(net, torch.ones(32, 64), loss=loss)


class Convolution(torch.autograd.Function):
    """Searches for its gradient: each weight's is computed for four batches of noise as well."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return F.conv2d(x, weight, padding=1)

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        total = 0
        for _ in range(5):
            total = total + torch.nn.grad.conv2d_weight(x, weight.shape, gradient, padding=1)
        return torch.nn.grad.conv2d_input(x.shape, weight, gradient, padding=1), total


class Convolving(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8, 8, 3, 3))

    def forward(self, x):
        return Convolution.apply(x, self.weight)


@program
def a_convolution_that_samples_its_gradient():
    train(nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), Convolving()), torch.ones(4, 3, 16, 16))


@program
def an_inverse_by_iteration_in_the_backward():
    class Implicit(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(weight)
            return x @ weight

        @staticmethod
        def backward(ctx, gradient):
            (weight,) = ctx.saved_tensors
            for _ in range(10):
                gradient = gradient @ weight * 0.01
            return gradient, weight * 0

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.eye(64))

        def forward(self, x):
            return Implicit.apply(x, self.weight)

    train(Net(), torch.ones(32, 64))


@program
def a_gradient_that_is_whitened_in_a_layer():
    class Whitened(nn.Linear):
        def forward(self, x):
            y = super().forward(x)
            y.register_hook(lambda gradient: torch.linalg.multi_dot([gradient, gradient.t(), gradient]))
            return y

    train(nn.Sequential(Whitened(16, 16), nn.ReLU(), Whitened(16, 4)), torch.ones(256, 16))


if __name__ == "__main__":
    run_all(PROGRAMS)
