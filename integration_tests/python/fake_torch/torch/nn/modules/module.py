class Module:
    def __init__(self):
        self.__dict__["_modules"] = {}
        self.__dict__["_parameters"] = {}
        self.__dict__["_forward_hooks"] = {}
        self.training = True

    def __setattr__(self, name, value):
        if isinstance(value, Module):
            self._modules[name] = value
        else:
            object.__setattr__(self, name, value)

    def __getattr__(self, name):
        if name in self.__dict__.get("_modules", {}):
            return self._modules[name]
        raise AttributeError(name)

    def _call_impl(self, *args, **kwargs):
        return self.forward(*args, **kwargs)

    __call__ = _call_impl
