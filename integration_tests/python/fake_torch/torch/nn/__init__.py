from .modules.module import Module


class Parameter:
    pass


class Identity(Module):
    def forward(self, x):
        return x


class Linear(Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        from torch import Tensor
        self._parameters["weight"] = Tensor(outputs, inputs)
        self.outputs = outputs

    def forward(self, x):
        return type(x)(x.shape[0], self.outputs)
