// cuDNN's graph interface (cudnn_backend.h): descriptors keep the attributes that they are told, engine heuristics
// fill descriptors that the caller made before, and the execution of a plan launches one kernel for the graph's
// operation.
#include <cudnn.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "virtual_gpu/libraries/cudnn_descriptors.h"
#include "virtual_gpu/libraries/launch.h"

using namespace rfinject::virtual_gpu;

namespace {

struct GraphDescriptor;
using Content = std::shared_ptr<GraphDescriptor>;

struct Attribute {
  int64_t count = 0;
  std::string bytes;                 // of plain values
  std::vector<Content> descriptors;  // of CUDNN_TYPE_BACKEND_DESCRIPTOR
};

// A handle of the caller's is a pointer to a shared pointer: the caller may destroy a descriptor that another one
// uses.
struct GraphDescriptor {
  cudnnBackendDescriptorType_t kind;
  std::map<int, Attribute> attributes;

  Content Get(int attribute, size_t index = 0) const {
    const auto at = attributes.find(attribute);
    if (at == attributes.end() || index >= at->second.descriptors.size()) return nullptr;
    return at->second.descriptors[index];
  }
  int64_t Integer(int attribute, int64_t otherwise) const {
    const auto at = attributes.find(attribute);
    int64_t value = otherwise;
    if (at != attributes.end() && at->second.bytes.size() >= sizeof value) {
      memcpy(&value, at->second.bytes.data(), sizeof value);
    }
    return value;
  }
};

Content& ContentOf(cudnnBackendDescriptor_t handle) { return *static_cast<Content*>(handle); }

size_t BytesOf(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
      return 8;
    case CUDNN_TYPE_FRACTION:
      return 16;
    case CUDNN_TYPE_BOOLEAN:
      return sizeof(bool);
    case CUDNN_TYPE_CHAR:
      return 1;
    default:
      return 4;  // enumerations, floats, 32-bit integers
  }
}

// How many engines heuristics list; benchmark mode tries them in this order.
constexpr int64_t kEngines = 3;

// Writes the engine configurations that a heuristic found into the descriptors that the caller made for them.
void FillEngines(const GraphDescriptor& heuristic, int64_t wanted, int64_t* count, void* values) {
  if (values == nullptr || wanted == 0) {
    *count = kEngines;
    return;
  }
  auto* handles = static_cast<cudnnBackendDescriptor_t*>(values);
  *count = std::min(wanted, kEngines);
  for (int64_t i = 0; i < *count; ++i) {
    auto engine = std::make_shared<GraphDescriptor>(GraphDescriptor{CUDNN_BACKEND_ENGINE_DESCRIPTOR, {}});
    Attribute& index = engine->attributes[CUDNN_ATTR_ENGINE_GLOBAL_INDEX];
    index.count = 1;
    index.bytes.assign(reinterpret_cast<const char*>(&i), sizeof i);
    Attribute& graph = engine->attributes[CUDNN_ATTR_ENGINE_OPERATION_GRAPH];
    graph.count = 1;
    graph.descriptors = {heuristic.Get(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)};
    Attribute& configured = ContentOf(handles[i])->attributes[CUDNN_ATTR_ENGINECFG_ENGINE];
    configured.count = 1;
    configured.descriptors = {std::move(engine)};
  }
}

struct TensorInfo {
  int64_t elements = 1;
  int64_t outermost = 1;  // its first extent: of filters, how many there are
  int64_t type = CUDNN_DATA_FLOAT;
};

TensorInfo TensorOf(const Content& tensor) {
  TensorInfo info;
  if (tensor == nullptr) return info;
  if (const auto at = tensor->attributes.find(CUDNN_ATTR_TENSOR_DIMENSIONS); at != tensor->attributes.end()) {
    for (size_t i = 0; i + sizeof(int64_t) <= at->second.bytes.size(); i += sizeof(int64_t)) {
      int64_t extent = 0;
      memcpy(&extent, at->second.bytes.data() + i, sizeof extent);
      info.elements *= extent;
      if (i == 0) info.outermost = extent;
    }
  }
  if (const auto at = tensor->attributes.find(CUDNN_ATTR_TENSOR_DATA_TYPE);
      at != tensor->attributes.end() && at->second.bytes.size() >= sizeof(int32_t)) {
    int32_t type = 0;
    memcpy(&type, at->second.bytes.data(), sizeof type);
    info.type = type;
  }
  return info;
}

const char* TypeWord(int64_t type) {
  switch (type) {
    case CUDNN_DATA_HALF:
      return "f16";
    case CUDNN_DATA_BFLOAT16:
      return "bf16";
    case CUDNN_DATA_DOUBLE:
      return "f64";
    default:
      return "f32";
  }
}

// A graph of several operations gets the name of the one that has most to do.
struct Operation {
  cudnnBackendDescriptorType_t kind;
  const char* word;
  int result;  // the attribute that holds it
  // For convolutions: what corresponds to the images, the filters and their result; 0 elsewhere.
  int images = 0, filters = 0, convolved = 0;
};
constexpr Operation kOperations[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, "fprop", CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, "dgrad",
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, "wgrad",
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, "matmul", CUDNN_ATTR_OPERATION_MATMUL_CDESC},
    {CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR, "norm_forward", CUDNN_ATTR_OPERATION_NORM_FWD_YDESC},
    {CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR, "norm_backward", CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, "reduction", CUDNN_ATTR_OPERATION_REDUCTION_YDESC},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "pointwise", CUDNN_ATTR_OPERATION_POINTWISE_YDESC},
};

// Every element of what a convolution makes is a sum over one filter, and both gradients multiply the same pairs.
void DescribeConvolution(const GraphDescriptor& operation, const Operation& known, Shape* shape) {
  if (known.filters == 0) return;
  const TensorInfo images = TensorOf(operation.Get(known.images));
  const TensorInfo filters = TensorOf(operation.Get(known.filters));
  const TensorInfo convolved = TensorOf(operation.Get(known.convolved));
  if (filters.outermost == 0) return;
  const int64_t in_a_filter = filters.elements / filters.outermost;
  shape->flop = 2 * static_cast<double>(convolved.elements) * static_cast<double>(in_a_filter);
  shape->bytes = static_cast<double>(images.elements + filters.elements + convolved.elements) *
                 static_cast<double>(ElementBytes(images.type));
}

void LaunchGraph(const GraphDescriptor& graph, int64_t engine, CUstream stream) {
  const char* word = "graph";
  TensorInfo result;
  Shape shape;
  const auto operations = graph.attributes.find(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  if (operations != graph.attributes.end()) {
    for (const Operation& known : kOperations) {
      const auto& list = operations->second.descriptors;
      const auto at = std::find_if(list.begin(), list.end(), [&](const Content& operation) {
        return operation != nullptr && operation->kind == known.kind;
      });
      if (at == list.end()) continue;
      word = known.word;
      result = TensorOf((*at)->Get(known.result));
      DescribeConvolution(**at, known, &shape);
      break;
    }
  }
  char name[128];
  snprintf(name, sizeof name, "standin_cudnn_%s_%s_%s_engine%d", ChipWord(), word, TypeWord(result.type),
           static_cast<int>(engine));
  shape.blocks = Blocks(result.elements, int64_t{128} * 64);
  LaunchStandin(name, shape, stream);
}

}  // namespace

RFINJECT_STANDIN cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t kind,
                                                            cudnnBackendDescriptor_t* descriptor) {
  return Set(descriptor, new Content(std::make_shared<GraphDescriptor>(GraphDescriptor{kind, {}})));
}
RFINJECT_STANDIN cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete static_cast<Content*>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}
RFINJECT_STANDIN cudnnStatus_t cudnnBackendInitialize(cudnnBackendDescriptor_t) { return CUDNN_STATUS_SUCCESS; }
RFINJECT_STANDIN cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t) { return CUDNN_STATUS_SUCCESS; }

RFINJECT_STANDIN cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                                        cudnnBackendAttributeName_t name,
                                                        cudnnBackendAttributeType_t type, int64_t count,
                                                        const void* values) {
  Attribute attribute;
  attribute.count = count;
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    const auto* handles = static_cast<const cudnnBackendDescriptor_t*>(values);
    for (int64_t i = 0; i < count; ++i) {
      attribute.descriptors.push_back(handles[i] != nullptr ? ContentOf(handles[i]) : nullptr);
    }
  } else {
    attribute.bytes.assign(static_cast<const char*>(values), BytesOf(type) * static_cast<size_t>(count));
  }
  ContentOf(descriptor)->attributes[name] = std::move(attribute);
  return CUDNN_STATUS_SUCCESS;
}

RFINJECT_STANDIN cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const handle,
                                                        cudnnBackendAttributeName_t name,
                                                        cudnnBackendAttributeType_t type, int64_t wanted,
                                                        int64_t* count, void* values) {
  const GraphDescriptor& descriptor = *ContentOf(handle);
  int64_t unused = 0;
  if (count == nullptr) count = &unused;
  const auto answer = [&](auto value) {
    *count = 1;
    if (values != nullptr && wanted >= 1) memcpy(values, &value, sizeof value);
    return CUDNN_STATUS_SUCCESS;
  };
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      FillEngines(descriptor, wanted, count, values);
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
#if CUDNN_VERSION >= 90200
    // Callers skip attention's engines when these do not say how much workspace they need.
    case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
#endif
      return answer(int64_t{0});
#if CUDNN_VERSION >= 90200
    case CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED:
      return answer(int32_t{0});
#endif
    case CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT:
      return answer(kEngines);
    default:
      break;
  }
  const auto at = descriptor.attributes.find(name);
  if (at == descriptor.attributes.end()) {
    *count = 0;
    return CUDNN_STATUS_SUCCESS;
  }
  const Attribute& attribute = at->second;
  *count = attribute.count;
  if (values == nullptr) return CUDNN_STATUS_SUCCESS;
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    auto* handles = static_cast<cudnnBackendDescriptor_t*>(values);
    for (size_t i = 0; i < attribute.descriptors.size() && i < static_cast<size_t>(wanted); ++i) {
      if (handles[i] != nullptr && attribute.descriptors[i] != nullptr)
        *ContentOf(handles[i]) = *attribute.descriptors[i];
    }
  } else {
    memcpy(values, attribute.bytes.data(),
           std::min(attribute.bytes.size(), BytesOf(type) * static_cast<size_t>(wanted)));
  }
  return CUDNN_STATUS_SUCCESS;
}

RFINJECT_STANDIN cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                                   cudnnBackendDescriptor_t) {
  const Content configuration = ContentOf(plan)->Get(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const Content engine = configuration != nullptr ? configuration->Get(CUDNN_ATTR_ENGINECFG_ENGINE) : nullptr;
  if (engine == nullptr) return CUDNN_STATUS_BAD_PARAM;
  const Content graph = engine->Get(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
  if (graph == nullptr) return CUDNN_STATUS_BAD_PARAM;
  LaunchGraph(*graph, engine->Integer(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 0), handle->stream);
  return CUDNN_STATUS_SUCCESS;
}
