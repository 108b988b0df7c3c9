"""What the changes of `rfinject try` stand on. It runs in the user's program, and only there where `try` asked for it.

The command puts a line in front of it that sets OPTIONS, and behind it a line use(NAME, VALUE, SOURCE) for each change.
A change is a file beside this one, of at most 40 lines, whose first line says what it changes and whose line "# write: "
says what a person would write into the program. Its code sees the names below, and `change`, which it reports to:

    change.made(text, edit)   the program now does what it did not before; edit: what a function of edits.py says
                              of the program's text, which does the same, or what returns that; None: there is none
    change.already(text)      the program does that by itself
    change.nothing(text)      there is nothing here that it could change
"""
import functools
import inspect
import os
import sys
import types

torch = sys.modules["torch"]
HERE = os.getcwd()
TORCH = os.path.dirname(torch.__file__)


def write(*words):
    """Adds a line to the report that the command reads: words with tabs between them. Processes of one program write the
    same file."""
    line = "\t".join(str(word).replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
                     for word in (os.getpid(),) + words)
    descriptor = os.open(OPTIONS["report"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, (line + "\n").encode("utf-8", "backslashreplace"))
    finally:
        os.close(descriptor)


class Change:
    def __init__(self, name, value):
        self.name, self.value, self.said = name, value, set()

    def say(self, state, text, edit=None):
        if (state, text) not in self.said:
            self.said.add((state, text))
            edit = edit() if callable(edit) else edit
            write("change", self.name, state, text, "edited" if edit is not None and add_edit(edit) else "")

    def made(self, text="", edit=None):
        self.say("made", text, edit)

    def already(self, text=""):
        self.say("already", text)

    def nothing(self, text):
        self.say("nothing", text)


# --- Where in the program.


def place():
    """File and line of the innermost frame that is neither torch's nor ours; ("", 0) where there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(("<", TORCH)):
            return os.path.abspath(name), frame.f_lineno
        frame = frame.f_back
    return "", 0


def stack():
    """The program's frames, the outermost first: what tells each from all others that are running, its file, its line."""
    frames, frame = [], sys._getframe(1)
    while frame is not None:
        frames.append((id(frame), frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return frames[::-1]


def at(where):
    """"train.py:31", for people."""
    name, line = where
    if not name:
        return "somewhere"
    return "{}:{}".format(os.path.relpath(name, HERE) if name.startswith(HERE + os.sep) else os.path.basename(name), line)


# --- Moments of the program.

_root_functions, _known, _quiet_calls = [], set(), [0]
_backward_functions, _step_functions = [], []
# Whether torch.compile traces what runs, where torch can tell.
_is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)
# After so many calls without a new model, new ones are no longer looked for: a hook on every module has a cost.
_CALLS_WITHOUT_NEW = 8


def on_root(function):
    """function(model, arguments) before the first call of each outermost module; it may return a tuple of
    other arguments."""
    _root_functions.append(function)


def before_backward(function):
    """function(loss) before each backward pass of a tensor; it returns the tensor that the pass begins with."""
    _backward_functions.append(function)


def _look_for_roots():
    handle = None

    def before_module(module, arguments):
        if _is_compiling():  # what counts calls would be compiled anew for each of them
            return None
        if id(module) in _known:
            if id(module) in _roots:
                _quiet_calls[0] += 1
                if _quiet_calls[0] >= _CALLS_WITHOUT_NEW:
                    handle.remove()
            return None
        if isinstance(module, torch.jit.ScriptModule) or next(module.parameters(), None) is None:
            return None  # what has no weights is a loss, or makes images ready
        _quiet_calls[0] = 0
        _known.update(id(part) for part in module.modules())
        _roots[id(module)] = module  # kept, so that its id stays its own
        if type(module).__name__ == "OptimizedModule":
            handle.remove()  # what is compiled must not see hooks come and go
        for function in _root_functions:
            changed = function(module, arguments)
            if isinstance(changed, tuple):
                arguments = changed
        return arguments

    handle = torch.nn.modules.module.register_module_forward_pre_hook(before_module)


_roots = {}


def around(model, before, after=None):
    """Calls before(model, arguments), which may return other arguments, before each call of the model from the next one
    on, and after(model, arguments, result) behind each."""
    model.register_forward_pre_hook(before)
    if after is not None:
        model.register_forward_hook(after)


def around_roots(before, after=None):
    """The same for each outermost module, from its first call on."""
    def begin(model, arguments):
        around(model, before, after)
        return before(model, arguments)

    on_root(begin)


def on_construct(cls, function):
    """function(instance, arguments) whenever one of this class is made; it may change the dict of arguments."""
    original = cls.__init__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def init(self, *args, **kwargs):
        try:
            bound = signature.bind(self, *args, **kwargs)
        except TypeError:
            return original(self, *args, **kwargs)  # which says what is wrong
        if id(self) in _under_construction:  # a subclass of torch's own calls this one
            return original(self, *args, **kwargs)
        _under_construction.add(id(self))
        try:
            function(self, bound.arguments)
            return original(*bound.args, **bound.kwargs)
        finally:
            _under_construction.discard(id(self))

    cls.__init__ = init


_under_construction = set()


def around_step(function):
    """function(optimizer, step) in the place of each optimizer's step, which step() takes."""
    original = torch.optim.Optimizer.__init__

    @functools.wraps(original)
    def init(self, *args, **kwargs):
        original(self, *args, **kwargs)
        inside = []

        def changed(self, *args, **kwargs):
            own = functools.partial(type(self).step, self, *args, **kwargs)
            if inside or args or kwargs:  # called by a gradient scaler, or with a closure
                return own()
            inside.append(True)
            try:
                return function(self, own)
            finally:
                inside.pop()

        self.step = types.MethodType(changed, self)  # a method, as schedulers of the learning rate expect

    torch.optim.Optimizer.__init__ = init


def optimizers_with(option):
    """torch's optimizers that have this option."""
    classes = [cls for cls in vars(torch.optim).values()
               if isinstance(cls, type) and issubclass(cls, torch.optim.Optimizer)]
    return [cls for cls in classes if option in inspect.signature(cls.__init__).parameters]


def parameters_of(arguments):
    """The parameters that an optimizer is given; a generator among the arguments is made a list."""
    arguments["params"] = list(arguments["params"])
    found = []
    for item in arguments["params"]:
        if isinstance(item, dict):
            item["params"] = [item["params"]] if isinstance(item["params"], torch.Tensor) else list(item["params"])
            found += item["params"]
        else:
            found.append(item[1] if isinstance(item, tuple) else item)
    return found


def device_of(model):
    """"cuda", "cpu": where the model's first parameter lies."""
    first = next(model.parameters(), None)
    return first.device.type if first is not None else "cpu"


def units():
    """Which of "tf32", "fp16", "bf16" the GPU's tensor cores take: that of an estimate, else the one that is here."""
    if OPTIONS["units"] is not None:
        return OPTIONS["units"]
    if not torch.cuda.is_available():
        return []
    major = torch.cuda.get_device_capability()[0]
    return ["tf32", "fp16", "bf16"] if major >= 8 else ["fp16"] if major == 7 else []


def half_type(device):
    """The type that autocast takes on "cuda" or "cpu": "bfloat16", "float16", "" where tensor cores have neither."""
    return "bfloat16" if device == "cpu" or "bf16" in units() else "float16" if "fp16" in units() else ""


def autocast_now(device):
    """Whether autocast is switched on for "cuda" or "cpu", and its type."""
    if hasattr(torch, "get_autocast_dtype"):  # torch 2.4
        return torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)
    if device == "cpu":
        return torch.is_autocast_cpu_enabled(), torch.get_autocast_cpu_dtype()
    return torch.is_autocast_enabled(), torch.get_autocast_gpu_dtype()


def leave_autocast(context):
    """Ends an autocast of ours. One of the program's may have begun before and have ended by now; then everything is already
    as it was before that one, and an exit would bring back what is over."""
    if autocast_now(context.device) == (True, context.fast_dtype):
        context.__exit__(None, None, None)
    elif torch.autocast_decrement_nesting() == 0:
        torch.clear_autocast_cache()


def in_autocast():
    """Whether the program is in any autocast, one that is switched off included."""
    depth = torch.autocast_increment_nesting()
    torch.autocast_decrement_nesting()
    return depth > 1


def option_change(option, value, classes, why_not=lambda instance, arguments: "", instead_of=(), framework=None):
    """The change that gives an option to whatever of these classes is made. instead_of: options that exclude it.
    framework: (function, option, value), those of a framework's that makes the instance."""
    change = _current[-1]

    def construct(instance, arguments):
        where = place()
        name = type(instance).__name__
        if arguments.get(option) == value:
            return change.already("{} at {}".format(name, at(where)))
        given = option in arguments
        reason = why_not(instance, arguments)
        if reason:
            return change.nothing("{} at {}: {}".format(name, at(where), reason))
        for other in instead_of:
            arguments.pop(other, None)
        arguments[option] = value
        edit = edit_argument(where, name, option, repr(value), given, instead_of)
        if edit is None and framework is not None:
            edit = edit_option(framework[0], framework[1], repr(framework[2]))
        change.made("{} at {}".format(name, at(where)), edit)

    for cls in classes:
        on_construct(cls, construct)


# --- What the command has asked for, beside changes.


def _guard():
    """Ends a program that writes outside of its folder, before it does: what lies there is not copied on writing."""
    import tempfile
    home = os.path.expanduser("~")
    allowed = [os.path.realpath(path) for path in (
        HERE, tempfile.gettempdir(), "/dev", "/proc", home + "/.cache", home + "/.triton", home + "/.nv",
        os.environ.get("MPLCONFIGDIR") or home + "/.config/matplotlib",
        os.environ.get("XDG_CACHE_HOME") or "/dev", os.environ.get("TORCHINDUCTOR_CACHE_DIR") or "/dev",
        os.environ.get("TRITON_CACHE_DIR") or "/dev", os.path.dirname(OPTIONS["report"]))]
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

    def check(path):
        if isinstance(path, (str, bytes, os.PathLike)):
            real = os.path.realpath(os.fsdecode(path))
            if not any(real == folder or real.startswith(folder + os.sep) for folder in allowed):
                write("outside", real)
                raise PermissionError("rfinject try: the program writes {}, which is outside of its folder".format(real))

    def hook(event, arguments):
        if event == "open":
            if isinstance(arguments[2], int) and arguments[2] & writing:
                check(arguments[0])
        elif event == "os.mkdir" and any(
                folder.startswith(os.path.realpath(os.fsdecode(arguments[0])) + os.sep) for folder in allowed):
            pass  # on the way to what may be written
        elif event in ("os.remove", "os.rmdir", "os.mkdir", "os.truncate", "shutil.rmtree"):
            check(arguments[0])
        elif event in ("os.rename", "os.link", "os.symlink", "shutil.move"):
            check(arguments[1])

    sys.addaudithook(hook)
    original = torch.save  # opens files in C++, which raises no audit event

    @functools.wraps(original)
    def save(thing, f, *args, **kwargs):
        check(f)
        return original(thing, f, *args, **kwargs)

    torch.save = save


def _report_exceptions():
    before = sys.excepthook

    def hook(kind, value, traceback):
        write("exception", "{}: {}".format(kind.__name__, str(value).split("\n")[0][:300]))
        before(kind, value, traceback)

    sys.excepthook = hook


def _seed():
    import random
    random.seed(OPTIONS["seed"])
    torch.manual_seed(OPTIONS["seed"])
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(OPTIONS["seed"])


def _perturb(model, _):
    """Multiplies each weight by 1 + 2^-8 or 1 - 2^-8, half of bfloat16's last place: what rounding alone does to a loss."""
    own = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.is_floating_point() and weight.device.type == "cpu":
                sign = torch.randint(0, 2, weight.shape, generator=own, dtype=weight.dtype) * 2 - 1
                weight.mul_(1 + sign * 2.0 ** -8)


def _watch_backward():
    original = torch.Tensor.backward
    seen = [0]

    @functools.wraps(original)
    def backward(self, *args, **kwargs):
        if OPTIONS["losses"]:
            if seen[0] == OPTIONS["losses"]:
                raise SystemExit(0)
            seen[0] += 1
            write("loss", repr(float(self.detach().sum())))
        loss = self
        for function in _backward_functions:
            loss = function(loss)
        return original(loss, *args, **kwargs)

    torch.Tensor.backward = backward


_current = []


def use(name, value, source):
    """Runs a change's file."""
    _current.append(Change(name, value))
    space = dict(globals(), change=_current[-1], value=value)
    exec(compile(source, "<rfinject change {}>".format(name), "exec"), space)


def begin():
    """Called behind all changes."""
    if OPTIONS["guard"]:
        _guard()
    _report_exceptions()
    if OPTIONS["seed"] is not None:
        _seed()
    if OPTIONS["perturb"]:
        on_root(_perturb)
    if _root_functions:
        _look_for_roots()
    if _backward_functions or OPTIONS["losses"]:
        _watch_backward()
