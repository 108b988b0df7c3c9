#include "injector/python_calibration.h"

#include <cxxabi.h>

#include "injector/python/ref.h"
#include "injector/torch/calibrator.h"

namespace rfinject {
namespace {

// The script tells what it does before it does it, in lines of words, through tell(); peek() is the next sequence
// number. torch is taken from sys.modules: an import statement would wait for torch's own import, which is running.
constexpr char kScript[] = R"python(
import sys
torch = sys.modules['torch']
F32, F64, F16, BF16 = torch.float32, torch.float64, torch.float16, torch.bfloat16
NUMBER = {F32: 6, F64: 7, F16: 5, BF16: 15, torch.int64: 4, torch.bool: 11}

def zeros(*sizes, dtype=F32, device='cpu', grad=False):
    # empty() on "meta": zeros() would import half of torch's Python there.
    make = torch.empty if device == 'meta' else torch.zeros
    return make(sizes, dtype=dtype, device=device, requires_grad=grad)

def words(*values):
    return ' '.join(str(int(v)) for v in values)

def tell_tensor(t):
    meta = t.device.type == 'meta'
    offset = t.storage_offset()
    data = 0 if meta else t.data_ptr() - offset * t.element_size()
    tell('tensor ' + words(t._cdata, NUMBER[t.dtype], meta, data, offset, t.numel(), t.dim(), *t.size(), *t.stride()))

def node(make):
    number = peek()
    tell('expect-sequence')
    y = make()
    function = y.grad_fn
    tell('node %d %d %s' % (id(function), number, type(function).__name__))
    return y, function, number

def nodes():
    x = zeros(2, grad=True)
    kept = [node(lambda: x * 2), node(lambda: x * 3)]
    kept.append(node(lambda: kept[-1][0] * 4))
    kept.append(node(lambda: kept[-1][0] + 1))
    with torch.no_grad():
        tell('expect-no-sequence')
        x * 2
    other = zeros(3, grad=True)
    kept.append(node(lambda: other * 2))
    for y, function, number in kept[0], kept[-1]:
        accumulate = function.next_functions[0][0]
        if hasattr(accumulate, 'variable'):
            tell('accumulate ' + words(id(accumulate), accumulate.variable._cdata))
    for y, function, number in kept[:4]:
        tell('backward %d' % number)
        function(zeros(2))

def operands():
    a, b, c, d = zeros(3, 5, 7), zeros(3, 5, 7), zeros(4, 6), zeros(4, 6)
    big = zeros(2, 3, 2, 2, 3, 2)
    for t in (a, b, c, zeros(5, 3, dtype=F64).t(), zeros(11, dtype=torch.int64), zeros(2, 2, dtype=torch.bool),
              zeros(9, 2, dtype=BF16), zeros(3, 1, dtype=F16).expand(3, 4), big, big.permute(5, 4, 3, 2, 1, 0),
              a[1], zeros(19)[13:], zeros(3, 5, device='meta'), zeros(7, dtype=F64, device='meta'), zeros(2, 2, 2, 2, 3)):
        tell_tensor(t)
    if hasattr(torch, '_efficientzerotensor'):
        nothing = torch._efficientzerotensor((2, 3), dtype=F32, device='cpu')
        tell('zeros %d' % nothing._cdata)
    T = lambda t: 'T%d' % t._cdata
    tell('expect aten::add %s %s I3' % (T(a), T(b)))
    torch.add(a, b, alpha=3)
    tell('expect aten::add_ %s %s I1 > %s' % (T(c), T(d), T(c)))
    c.add_(d)
    tell('expect aten::add %s %s D2.5' % (T(c), T(d)))
    torch.add(c, d, alpha=2.5)
    tell('expect aten::add %s %s D0.25' % (T(a), T(b)))
    torch.add(a, b, alpha=0.25)
    tell('expect aten::sum %s L0,2 B1 N' % T(a))
    torch.sum(a, (0, 2), True)
    tell('expect aten::sum %s L1 B0 N' % T(c))
    torch.sum(c, (1,), False)
    tell('expect aten::cat M%d,%d I1' % (c._cdata, d._cdata))
    torch.cat((c, d), 1)
    e = zeros(1, 6)
    tell('expect aten::cat M%d,%d,%d I0' % (c._cdata, e._cdata, d._cdata))
    torch.cat((c, e, d), 0)
    out = zeros(4, 6)
    tell('expect aten::mul %s %s %s > %s' % (T(c), T(d), T(out), T(out)))
    torch.mul(c, d, out=out)
    tell('expect aten::add_ %s %s I5 > %s' % (T(a), T(b), T(a)))
    a.add_(b, alpha=5)

def run():
    with torch.inference_mode(False):
        with torch.enable_grad():
            nodes()
        if wanted:
            with torch.no_grad():
                operands()
    tell('done')
run()
)python";

// Set under the GIL, while the script runs.
Calibrator* g_calibrator = nullptr;
const PythonApi* g_trial_python = nullptr;

// The interpreter's frames lie between the script and us, and no exception may pass through them. Instead the script
// ends, and with it the calibration.
template <typename Function>
PyObject* Guarded(Function function) {
  try {
    return function(*g_trial_python);
  } catch (::abi::__forced_unwind&) {
    throw;  // the thread is being cancelled
  } catch (...) {
    g_trial_python->PyErr_SetNone(static_cast<PyObject*>(g_trial_python->PyExc_Exception));
    return nullptr;
  }
}

PyObject* PythonTell(PyObject*, PyObject* text) {
  return Guarded([text](const PythonApi& python) {
    if (const char* line = python.PyUnicode_AsUTF8(text); line != nullptr) {
      g_calibrator->Tell(line);
    } else {
      python.PyErr_Clear();
    }
    return NewNone(python);
  });
}

PyObject* PythonPeek(PyObject*, PyObject*) {
  return Guarded([](const PythonApi& python) { return python.PyLong_FromUnsignedLongLong(g_calibrator->Peek()); });
}

// These live as long as the interpreter, because function objects point to them.
PyMethodDef g_tell_method = {"tell", PythonTell, kMethO, nullptr};
PyMethodDef g_peek_method = {"peek", PythonPeek, kMethNoArgs, nullptr};

}  // namespace

CalibrationResult CalibrateByPython(const TorchSymbols& symbols, bool operands) {
  const PythonApi& python = *GetPython();
  CalibrationResult result;
  if (!symbols.can_calibrate()) {
    result.missing = "functions of libtorch not found: " + symbols.missing;
    return result;
  }
  Calibrator calibrator(symbols);
  struct Unset {
    ~Unset() { g_calibrator = nullptr; }
  } unset;
  g_calibrator = &calibrator;
  g_trial_python = &python;
  std::string error;
  {
    const CalibratorCallbacks callbacks(&calibrator, symbols, operands);
    const Ref tell(python, python.PyCFunction_NewEx(&g_tell_method, nullptr, nullptr));
    const Ref peek(python, python.PyCFunction_NewEx(&g_peek_method, nullptr, nullptr));
    const Ref wanted(python, python.PyLong_FromLong(operands ? 1 : 0));
    const PythonNames names = {{"tell", tell.get()}, {"peek", peek.get()}, {"wanted", wanted.get()}};
    if (!RunPython(python, kScript, &error, names)) calibrator.Fail();
  }
  calibrator.Finish(operands, error.c_str(), &result);
  return result;
}

}  // namespace rfinject
