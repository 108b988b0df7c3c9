"""Just enough of torch's outside for the library to attach to: modules, parameters, tensors with shapes, the scopes
that optimizers open. There is no libtorch behind it, so that interpreters without a torch of their own can try the way in."""

__version__ = "0.0.fake"


class Tensor:
    # Descriptors of C's, as torch's own are.
    __slots__ = ("shape", "dtype", "requires_grad", "__dict__", "__weakref__")

    def __init__(self, *shape):
        self.shape = tuple(shape)
        self.dtype = "torch.float32"
        self.requires_grad = False

    def numel(self):
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    def element_size(self):
        return 4


from . import _C, autograd, nn, version

__all__ = ["_C", "autograd", "nn", "version"]
