"""The test harness library (harness.cc) as Python functions, and modules entered by global hooks."""

import collections
import contextlib
import ctypes
import os

Op = collections.namedtuple('Op', 'name phase layer node op inputs outputs')
Where = collections.namedtuple('Where', 'phase layer node op')

_library = None


def library():
    global _library
    if _library is None:
        _library = ctypes.PyDLL(os.environ['RFINJECT_TORCH_HARNESS'])
        for name in ('bind', 'site', 'owner', 'take', 'diagnostics'):
            getattr(_library, 'test_' + name).restype = ctypes.c_char_p
        _library.test_owner.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
        _library.test_site_loop.argtypes = [ctypes.c_uint64]
        _library.test_layer_loop.argtypes = [ctypes.c_uint64]
        for name in ('steps', 'repairs', 'exits'):
            getattr(_library, 'test_' + name).restype = ctypes.c_uint64
        _library.test_layer.argtypes = [ctypes.c_char_p]
    return _library


def bind(ops=True, python=True):
    """The capabilities as a set of words, and what is missing."""
    words, missing = library().test_bind(int(ops), int(python)).decode().split(':', 1)
    return set(words.split()), missing.strip()


def site():
    return Where(*library().test_site().decode().split('|'))


def owner(thread, sequence):
    return library().test_owner(thread, sequence).decode()


def take():
    """The operators since the last call, each an Op."""
    return [Op(*line.split('|')) for line in library().test_take().decode().splitlines()]


def diagnostics():
    return library().test_diagnostics().decode()


@contextlib.contextmanager
def layer(path):
    library().test_enter(library().test_layer(path.encode()))
    try:
        yield
    finally:
        library().test_leave()


def name_modules(**roots):
    """Gives every module of the roots a layer; the root's own is its keyword."""
    for root_name, root in roots.items():
        for path, module in root.named_modules():
            module.__dict__['_layer'] = library().test_layer((root_name + '.' + path if path else root_name).encode())


def watch_modules():
    """Takes the place of the injector's call slot: these tests are about what happens below the modules."""
    import torch
    call = torch.nn.Module.__call__

    def watched(module, *args, **kwargs):
        layer = module.__dict__.get('_layer')
        if layer is None:
            return call(module, *args, **kwargs)
        library().test_enter(layer)
        try:
            return call(module, *args, **kwargs)
        finally:
            library().test_leave()

    torch.nn.Module.__call__ = watched
