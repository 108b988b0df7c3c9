#include "cli/attach/torch_calls.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "cli/attach/call_stub.h"

namespace rfinject::cli {
namespace {

// A program calls some hundred functions of libtorch.
constexpr size_t kMostSlots = 4096;

bool IsOfTorch(const Mapping& mapping) {
  const std::string_view name = FileName(mapping.path);
  return name.starts_with("libtorch") || name.starts_with("libc10");
}

// Puts the addresses back that are still ours.
void PutBack(const Asked& asked, const std::vector<CallSlot>& slots, uint64_t entries) {
  for (size_t i = 0; i < slots.size(); ++i) {
    uint64_t now = 0;
    if (!asked.memory.Read(slots[i].at, &now, sizeof now) || now != entries + i * kStubEntry) continue;
    (void)asked.memory.Write(slots[i].at, &slots[i].function, sizeof now);
  }
}

// The memory behind StubData: three texts, each with a zero behind it (an argument of settings has more of them).
std::string TextsOf(const LibraryCall& call, uint64_t at, StubData* data) {
  std::string texts;
  const auto add = [&](std::string_view text) {
    const uint64_t begin = at + texts.size();
    texts.append(text);
    texts += '\0';
    return begin;
  };
  data->path = add(call.path);
  data->name = add(call.name);
  data->argument = call.argument != nullptr ? add(*call.argument) : 0;
  return texts;
}

}  // namespace

TorchCalls FindTorchCalls(const ReadMemory& read, const std::vector<Mapping>& mappings) {
  TorchCalls calls;
  for (const Mapping* library :
       {FindFile(mappings, {"libc.so", "libc-2", "ld-musl"}), FindFile(mappings, {"libdl.so", "libdl-2"})}) {
    if (library == nullptr || calls.open != 0) continue;
    calls.open = FindFunction(read, library->begin, "dlopen");
    calls.find = FindFunction(read, library->begin, "dlsym");
    calls.error = FindFunction(read, library->begin, "dlerror");
  }
  if (calls.open == 0 || calls.find == 0 || calls.error == 0) return {};
  for (const Mapping& object : mappings) {
    // Torch's own objects call each other wherever they are, also with their locks held.
    if (object.offset != 0 || !object.path.starts_with('/') || IsOfTorch(object)) continue;
    for (const CallSlot& slot : FindCallSlots(read, object.begin)) {
      const Mapping* const place = MappingAt(mappings, slot.at);
      const Mapping* const target = MappingAt(mappings, slot.function);
      if (place == nullptr || target == nullptr || place->path != object.path || slot.at % sizeof slot.at != 0)
        continue;
      if (target->executable && IsOfTorch(*target) && calls.slots.size() < kMostSlots) calls.slots.push_back(slot);
    }
  }
  return calls;
}

absl::Status CallByTorchCalls(const Asked& asked, const TorchCalls& calls, const LibraryCall& call,
                              absl::Duration patience) {
  StubData data{};
  SetVectors(&data);
  if (data.vectors_size == 0) return Refuse(asked.pid, "runs on a processor without XSAVE");
  data.process = asked.own_number;
  data.open = calls.open, data.find = calls.find, data.error = calls.error;
  std::vector<uint64_t> functions;
  for (const CallSlot& slot : calls.slots) functions.push_back(slot.function);
  const uint64_t data_size = (sizeof data + TextsOf(call, 0, &data).size() + kPage) / kPage * kPage;
  const uint64_t code_size = StubSize() + functions.size() * kStubEntry;

  const absl::StatusOr<uint64_t> memory =
      OnStoppedThread(asked, [&](StoppedThread& thread, absl::Time deadline) -> absl::StatusOr<uint64_t> {
        absl::StatusOr<uint64_t> at = MapMemory(asked, thread, data_size, PROT_READ | PROT_WRITE, deadline);
        if (!at.ok()) return at;
        const absl::StatusOr<uint64_t> code = MapMemory(asked, thread, code_size, PROT_READ | PROT_EXEC, deadline);
        if (!code.ok()) return absl::ResourceExhaustedError("it may have no memory that is code (SELinux's execmem)");
        const std::string texts = TextsOf(call, *at + sizeof data, &data);
        const std::string stub = MakeStub(*at, functions);
        const uint64_t entries = data.entries = *code + StubSize();
        bool written = asked.memory.Write(*at, &data, sizeof data) &&
                       asked.memory.Write(*at + sizeof data, texts.data(), texts.size()) &&
                       asked.memory.Write(*code, stub.data(), stub.size());
        for (size_t i = 0; written && i < calls.slots.size(); ++i) {
          const uint64_t entry = entries + i * kStubEntry;
          written = asked.memory.Write(calls.slots[i].at, &entry, sizeof entry);
        }
        if (written) return at;
        PutBack(asked, calls.slots, entries);
        return absl::InternalError("its memory cannot be written");
      });
  if (!memory.ok()) return memory.status();
  const auto take_back = [&] {
    constexpr int32_t kYes = 1;
    (void)asked.memory.Write(*memory + offsetof(StubData, taken_back), &kYes, sizeof kYes);
  };
  absl::Status status = WaitForAnswer(
      asked, *memory, patience, take_back, [] {},
      absl::StrCat("none of its threads called libtorch within ", absl::FormatDuration(patience),
                   " (they sleep, wait or compute; --wait SECONDS waits longer)"));
  uint64_t entries = 0;
  if (asked.memory.Read(*memory + offsetof(StubData, entries), &entries, sizeof entries))
    PutBack(asked, calls.slots, entries);
  return status;
}

}  // namespace rfinject::cli
