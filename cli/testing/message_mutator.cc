#include "cli/testing/message_mutator.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/reflection.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

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

std::string Text(const std::string& before, Random& random) {
  static const auto* const kTexts = new std::vector<std::string>{
      "",
      "rf.time",
      "rf.flop.model",
      "rf.bytes.dram",
      "rf.bytes.compulsory",
      "rf.flop.fp32",
      "rf.flop.fp16_tc",
      "rf.flop.tf32_tc",
      "dram__bytes_read.sum",
      "dram__bytes_write.sum",
      "gpu__time_duration.sum",
      "ns",
      "byte",
      "aten::convolution",
      "f32[8,3,224,224] f32[64,3,7,7]",
      "A100-SXM4-40GB",
      "H100-SXM5-80GB",
      "GA100",
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
      "layer4.1.conv2",
  };
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
      std::string text = Text(before, random);
      if (!field->is_repeated()) {
        reflection.SetString(message, field, std::move(text));
      } else if (at >= 0) {
        reflection.SetRepeatedString(message, field, at, std::move(text));
      } else {
        reflection.AddString(message, field, std::move(text));
      }
      return;
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

void Collect(Message* message, std::vector<Message*>* all) {
  all->push_back(message);
  std::vector<const FieldDescriptor*> fields;
  const Reflection& reflection = *message->GetReflection();
  reflection.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      Collect(reflection.MutableMessage(message, field), all);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(*message, field); ++i) {
      Collect(reflection.MutableRepeatedMessage(message, field, i), all);
    }
  }
}

void ChangeRepeated(Message* message, const FieldDescriptor* field, Random& random) {
  const Reflection& reflection = *message->GetReflection();
  const int size = reflection.FieldSize(*message, field);
  if (size == 0) return Set(message, field, -1, random);
  const int at = static_cast<int>(Below(random, static_cast<size_t>(size)));
  switch (random() % 5) {
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
    default:
      Set(message, field, at, random);
  }
}

void ChangeOnce(Message* message, Random& random) {
  std::vector<Message*> all;
  Collect(message, &all);
  Message* const chosen = all[Below(random, all.size())];
  // Two of one kind: one becomes the other.
  if (random() % 8 == 0) {
    const Message* const other = all[Below(random, all.size())];
    if (other != chosen && other->GetDescriptor() == chosen->GetDescriptor()) return chosen->CopyFrom(*other);
  }
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
