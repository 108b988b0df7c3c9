#include "cli/testing/message_mutator.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/reflection.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "gpus/counters.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::cli::testing {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using Random = std::mt19937_64;

constexpr int kMaxElements = 64;

size_t Below(Random& random, size_t limit) { return static_cast<size_t>(random() % limit); }

uint64_t Number(Random& random) {
  static constexpr auto kLimits =
      std::to_array<uint64_t>({0, 1, 0x7F, 0xFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF,
                               0x8000000000000000, 0xFFFFFFFFFFFFFFFF, 1'000'000'000, 1'700'000'000'000'000'000});
  switch (random() % 4) {
    case 0:
      return kLimits[Below(random, kLimits.size())];
    case 1:
      return random() >> (random() % 64);
    default:
      return random() % 9;
  }
}

double Real(Random& random) {
  static constexpr auto kReals = std::to_array<double>(
      {0, -0.0, 1, -1, 1e-300, 1e300, std::numeric_limits<double>::infinity(),
       -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN(), 1e-9, 32});
  return kReals[Below(random, kReals.size())];
}

// What means something to a reader of traces, or to a terminal, a browser or a spreadsheet.
std::vector<std::string> Texts() {
  std::vector<std::string> texts = {
      "",
      "ns",
      "byte",
      "layer4.1.conv2",
      "h.7.attn.proj",
      "f32[8,3,224,224] f32[64,3,7,7]",
      "bf16[64,128] f16[128,32]",
      "A100-SXM4-40GB",
      "H100-SXM5-80GB",
      "V100-SXM2-16GB",
      "GA100",
      "GV100",
      "float16",
      "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
      "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float> >(int)",
      "Memcpy HtoD (Pageable -> Device)",
      "ResNet",
      "train.py",
      "0123456789abcdef0123456789abcdef",
      "</script><script>alert(1)</script>",
      "\"'&<>]]>",
      "=cmd|' /C calc'!A0",
      "\x1b]0;title\x07\x1b[31m",
      "\342\200\256desrever",  // right-to-left override
      "\xff\xfe\x80",
      std::string(1, '\0'),
      "a\tb\nc\rd",
      "../../../../etc/passwd",
      std::string(3000, 'x'),
      "fp32=18.5T, dram=1.36 TB/s,bf16_tc=271e12",
      "step_time>+5%",
      "oi<-0.5%",
      "A100-SXM4-40GB,gpu,memory_share,0.9,,,by hand\n",
  };
  for (const std::string_view one :
       {kMetricTime, kMetricModelFlop, kMetricDramBytes, kMetricCompulsoryBytes, kVirtualGpuCollector,
        kSimulatedDevice, kDramReadMetric, kDramWriteMetric, kGpuTimeMetric, kGpuCyclesMetric, kL2BytesMetric,
        kL1BytesMetric, kSmClockMetric, kTensorInstructionsMetric}) {
    texts.emplace_back(one);
  }
  texts.insert(texts.end(), kMetricFlop.begin(), kMetricFlop.end());
  for (const FlopTerm& one : kScalarFlop) texts.emplace_back(one.metric);
  for (const char* const one : {"convolution",
                                "convolution_backward",
                                "addmm",
                                "mm",
                                "bmm",
                                "linear",
                                "add_",
                                "mul",
                                "relu",
                                "_softmax",
                                "native_batch_norm",
                                "native_batch_norm_backward",
                                "native_layer_norm",
                                "_foreach_add_",
                                "_fused_adam_",
                                "_amp_update_scale_",
                                "_scaled_dot_product_flash_attention",
                                "copy_",
                                "_to_copy",
                                "fill_",
                                "embedding",
                                "nll_loss_forward",
                                "max_pool2d_with_indices",
                                "_thnn_fused_lstm_cell",
                                "linalg_vector_norm"}) {
    texts.push_back(std::string("aten::") + one);
  }
  return texts;
}

std::string Text(const std::string& before, Random& random) {
  static const auto* const kTexts = new std::vector<std::string>(Texts());
  std::string text = before;
  switch (random() % 4) {
    case 0:
      if (!text.empty()) text[Below(random, text.size())] = static_cast<char>(random());
      return text;
    case 1:
      return text.substr(0, Below(random, text.size() + 1));
    default:
      return (*kTexts)[Below(random, kTexts->size())];
  }
}

// Sets one value: the field, or the element `at` of it (-1: a new one).
void Set(Message* message, const FieldDescriptor* field, int at, Random& random) {
  const Reflection& reflection = *message->GetReflection();
  const auto put = [&](auto set, auto set_element, auto add, auto value) {
    if (!field->is_repeated()) {
      (reflection.*set)(message, field, value);
    } else if (at >= 0) {
      (reflection.*set_element)(message, field, at, value);
    } else {
      (reflection.*add)(message, field, value);
    }
  };
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return put(&Reflection::SetInt32, &Reflection::SetRepeatedInt32, &Reflection::AddInt32,
                 static_cast<int32_t>(Number(random)));
    case FieldDescriptor::CPPTYPE_INT64:
      return put(&Reflection::SetInt64, &Reflection::SetRepeatedInt64, &Reflection::AddInt64,
                 static_cast<int64_t>(Number(random)));
    case FieldDescriptor::CPPTYPE_UINT32:
      return put(&Reflection::SetUInt32, &Reflection::SetRepeatedUInt32, &Reflection::AddUInt32,
                 static_cast<uint32_t>(Number(random)));
    case FieldDescriptor::CPPTYPE_UINT64:
      return put(&Reflection::SetUInt64, &Reflection::SetRepeatedUInt64, &Reflection::AddUInt64, Number(random));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return put(&Reflection::SetDouble, &Reflection::SetRepeatedDouble, &Reflection::AddDouble, Real(random));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return put(&Reflection::SetFloat, &Reflection::SetRepeatedFloat, &Reflection::AddFloat,
                 static_cast<float>(Real(random)));
    case FieldDescriptor::CPPTYPE_BOOL:
      return put(&Reflection::SetBool, &Reflection::SetRepeatedBool, &Reflection::AddBool, random() % 2 == 0);
    case FieldDescriptor::CPPTYPE_ENUM:
      // One more than there are, too: what a newer version may have written.
      return put(&Reflection::SetEnumValue, &Reflection::SetRepeatedEnumValue, &Reflection::AddEnumValue,
                 static_cast<int>(Below(random, static_cast<size_t>(field->enum_type()->value_count()) + 1)));
    case FieldDescriptor::CPPTYPE_STRING: {
      std::string before;
      if (!field->is_repeated()) {
        before = reflection.GetString(*message, field);
      } else if (at >= 0) {
        before = reflection.GetRepeatedString(*message, field, at);
      }
      return put(&Reflection::SetString, &Reflection::SetRepeatedString, &Reflection::AddString,
                 Text(before, random));
    }
    case FieldDescriptor::CPPTYPE_MESSAGE: {
      Message* const child = !field->is_repeated() ? reflection.MutableMessage(message, field)
                             : at >= 0             ? reflection.MutableRepeatedMessage(message, field, at)
                                                   : reflection.AddMessage(message, field);
      const Descriptor& type = *child->GetDescriptor();
      for (int i = 0; i < type.field_count(); ++i) {
        if (random() % 2 == 0 && type.field(i)->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
          Set(child, type.field(i), -1, random);
        }
      }
      return;
    }
  }
}

// A message in `message`, or itself: going down from it, each child as likely as staying. Most messages of a trace
// are children of one, so about all are as likely.
Message* Choose(Message* message, Random& random) {
  while (true) {
    const Descriptor& type = *message->GetDescriptor();
    const Reflection& reflection = *message->GetReflection();
    const auto children = [&](const FieldDescriptor* field) -> size_t {
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return 0;
      if (field->is_repeated()) return static_cast<size_t>(reflection.FieldSize(*message, field));
      return reflection.HasField(*message, field) ? 1 : 0;
    };
    size_t count = 0;
    for (int i = 0; i < type.field_count(); ++i) count += children(type.field(i));
    size_t at = Below(random, count + 1);
    if (at == count) return message;
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor* const field = type.field(i);
      if (const size_t more = children(field); at >= more) {
        at -= more;
        continue;
      }
      message = field->is_repeated() ? reflection.MutableRepeatedMessage(message, field, static_cast<int>(at))
                                     : reflection.MutableMessage(message, field);
      break;
    }
  }
}

void ChangeRepeated(Message* message, const FieldDescriptor* field, Random& random) {
  const Reflection& reflection = *message->GetReflection();
  const int size = reflection.FieldSize(*message, field);
  if (size == 0) return Set(message, field, -1, random);
  const int at = static_cast<int>(Below(random, static_cast<size_t>(size)));
  switch (random() % 6) {
    case 0:
      if (size < kMaxElements) Set(message, field, -1, random);
      return;
    case 1:
      reflection.SwapElements(message, field, at, size - 1);
      return reflection.RemoveLast(message, field);
    case 2:
      return reflection.SwapElements(message, field, at, static_cast<int>(Below(random, static_cast<size_t>(size))));
    case 3:
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && size < kMaxElements) {
        Message* const copy = reflection.AddMessage(message, field);
        copy->CopyFrom(reflection.GetRepeatedMessage(*message, field, at));
        return;
      }
      [[fallthrough]];
    case 4:  // two of one kind: one becomes the other
      if (const int other = static_cast<int>(Below(random, static_cast<size_t>(size)));
          field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && other != at) {
        reflection.MutableRepeatedMessage(message, field, at)
            ->CopyFrom(reflection.GetRepeatedMessage(*message, field, other));
        return;
      }
      [[fallthrough]];
    default:
      Set(message, field, at, random);
  }
}

void ChangeOnce(Message* message, Random& random) {
  Message* const chosen = Choose(message, random);
  const Descriptor& type = *chosen->GetDescriptor();
  if (type.field_count() == 0) return;
  const FieldDescriptor* const field =
      type.field(static_cast<int>(Below(random, static_cast<size_t>(type.field_count()))));
  if (field->is_repeated()) return ChangeRepeated(chosen, field, random);
  if (random() % 6 == 0) return chosen->GetReflection()->ClearField(chosen, field);
  Set(chosen, field, -1, random);
}

}  // namespace

void MutateMessage(Message* message, Random& random) {
  for (uint64_t n = 1 + random() % 4; n > 0; --n) ChangeOnce(message, random);
}

}  // namespace rfinject::cli::testing
