#include "injector/python/tensor_reader.h"

#include <string_view>
#include <utility>

namespace rfinject {

Ref TensorReader::FirstTensor(PyObject* object, int depth) const {
  Ref self = Ref::Borrow(python_, object);
  if (!self || self.IsNone()) return {};
  if (self.IsInstance(tensor_class_.get())) return self;
  if (depth == 0) return {};
  for (const Ref& part : self.Parts()) {
    if (Ref found = FirstTensor(part.get(), depth - 1)) return found;
  }
  return {};
}

Ref TensorReader::FirstArgument(const CallArguments& arguments, bool* direct) const {
  for (PyObject* value : Values(python_, arguments)) {
    Ref found = FirstTensor(value, 1);
    if (!found) continue;
    if (direct != nullptr) *direct = found.get() == value;
    return found;
  }
  return {};
}

bool TensorReader::ReadShape(const Ref& tensor, std::vector<long long>& shape) const {
  Ref size = shape_.Get(tensor.get());
  if (!size.IsInstance(python_.PyTuple_Type)) return false;
  for (const Ref& part : size.Parts()) {
    const long long extent = part.Integer(-1);
    if (extent < 0) return false;
    shape.push_back(extent);
  }
  return true;
}

std::string TensorReader::Describe(const Ref& tensor) const {
  if (!tensor) return {};
  std::vector<long long> shape;
  if (!ReadShape(tensor, shape)) return {};
  std::string dtype = dtype_.Get(tensor.get()).Text();
  constexpr std::string_view kPrefix = "torch.";
  if (dtype.compare(0, kPrefix.size(), kPrefix) == 0) dtype.erase(0, kPrefix.size());
  for (const auto& [torch_name, name] : {std::pair<std::string_view, std::string_view>{"bfloat", "bf"},
                                         {"float", "f"},
                                         {"uint", "u"},
                                         {"int", "i"},
                                         {"complex", "c"}}) {
    if (dtype.compare(0, torch_name.size(), torch_name) != 0) continue;
    dtype.replace(0, torch_name.size(), name);
    break;
  }
  std::string text = dtype + "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ',';
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

}  // namespace rfinject
