// File: tensor_reader.h
//
// TensorReader finds the tensors that a module is called with and reads their shapes. The GIL is held. It runs Python
// code of torch's, never of the user's while a QuietTorch lives, and leaves no exception set.
#ifndef RFINJECT_INJECTOR_PYTHON_TENSOR_READER_H_
#define RFINJECT_INJECTOR_PYTHON_TENSOR_READER_H_

#include <string>
#include <vector>

#include "injector/python/call_frame.h"
#include "injector/python/python_api.h"
#include "injector/python/ref.h"

namespace rfinject {

class TensorReader {
 public:
  explicit TensorReader(const PythonApi& python)
      : python_(python),
        tensor_class_(ImportedModule(python, "torch").Attribute("Tensor")),
        shape_(tensor_class_.InClass("shape")),
        dtype_(tensor_class_.InClass("dtype")) {}
  // False when this torch has no class torch.Tensor; nothing else may be called then.
  bool ready() const { return tensor_class_.IsInstance(python_.PyType_Type); }

  // The first tensor in `object`, which is a tensor or a tuple, a list or a dict of such, `depth` levels deep.
  Ref FirstTensor(PyObject* object, int depth) const;
  // The first tensor among the arguments of a call, or one level below them. `direct`, where it is not null, receives
  // whether it is an argument itself.
  Ref FirstArgument(const CallArguments& arguments, bool* direct = nullptr) const;

  // Appends the sizes of a tensor to `shape`. False when one is not a plain number (a symbolic shape), or there is no
  // shape to be had.
  bool ReadShape(const Ref& tensor, std::vector<long long>& shape) const;

  // Whether the tensor is of a floating-point type.
  bool IsFloating(const Ref& tensor) const {
    return dtype_.Get(tensor.get()).Attribute("is_floating_point").IsTrue();
  }

  // "f32[8,3,224,224]", or "" when it cannot be told.
  std::string Describe(const Ref& tensor) const;

 private:
  const PythonApi& python_;
  Ref tensor_class_;
  Ref shape_, dtype_;  // descriptors of torch's own, which a class below torch.Tensor cannot stand in front of
};

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_TENSOR_READER_H_
