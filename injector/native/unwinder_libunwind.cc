// The unwinder over libunwind. libunwind is told that it looks at another process, whose memory and tables we hand to
// it. So it reads memory, maps files and takes the loader's lock only through the functions below. It still uses the
// memory pools of its parser (64 KiB of its own, then mmap). Their mutexes are never contended, because g_busy lets
// in one thread at a time.

#include <libunwind.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "injector/native/objects.h"
#include "injector/native/unwinder.h"

// In libunwind, but not in its public header.
extern "C" int _Ux86_64_dwarf_search_unwind_table(unw_addr_space_t space, unw_word_t ip, unw_dyn_info_t* info,
                                                  unw_proc_info_t* result, int need_unwind_info, void* argument);

namespace rfinject {
namespace {

constexpr size_t kObjects = 24;  // a stack through torch crosses about eight

// The state of one unwind.
struct Walk {
  uintptr_t stack_begin;
  uintptr_t stack_end;
  unw_word_t registers[17];  // by libunwind's numbers, at the beginning
  size_t object_count;
  bool lost;  // an address without a description was met
  LoadedObject objects[kObjects];
};

std::atomic<unw_addr_space_t> g_space{nullptr};
// Held by the thread that unwinds. A child that was forked meanwhile finds it held for ever, and takes no stacks:
// the pools may be in any state there.
std::atomic<bool> g_busy{false};

const LoadedObject* ObjectOf(Walk* walk, uintptr_t address) {
  for (size_t i = 0; i < walk->object_count; ++i) {
    const LoadedObject& object = walk->objects[i];
    if (address >= object.begin && address < object.end) return &object;
  }
  if (walk->object_count == kObjects || !FindObject(address, &walk->objects[walk->object_count])) return nullptr;
  return &walk->objects[walk->object_count++];
}

// A sanitizer takes what lies between a frame's variables for out of bounds.
[[gnu::no_sanitize_address]] int ReadWord(unw_addr_space_t, unw_word_t address, unw_word_t* value, int write,
                                          void* argument) {
  const auto* walk = static_cast<const Walk*>(argument);
  if (write != 0 || address > UINTPTR_MAX - sizeof *value) return -UNW_EINVAL;
  const unw_word_t end = address + sizeof *value;
  bool readable = address >= walk->stack_begin && end <= walk->stack_end;
  // The last object is nearly always the one that is being looked at.
  for (size_t i = walk->object_count; !readable && i-- > 0;) {
    readable = walk->objects[i].CanRead(address, sizeof *value);
  }
  if (!readable) return -UNW_EINVAL;
  struct [[gnu::packed, gnu::may_alias]] Word {
    unw_word_t word;
  };
  *value = reinterpret_cast<const Word*>(address)->word;
  return 0;
}

int ReadRegister(unw_addr_space_t, unw_regnum_t number, unw_word_t* value, int write, void* argument) {
  const auto* walk = static_cast<const Walk*>(argument);
  if (write != 0 || number < 0 || number >= static_cast<unw_regnum_t>(std::size(walk->registers)))
    return -UNW_EBADREG;
  *value = walk->registers[number];
  return 0;
}

int NoFloatingPoint(unw_addr_space_t, unw_regnum_t, unw_fpreg_t*, int, void*) { return -UNW_EBADREG; }
int NoDynamicInfo(unw_addr_space_t, unw_word_t*, void*) { return -UNW_ENOINFO; }
int NoResume(unw_addr_space_t, unw_cursor_t*, void*) { return -UNW_EINVAL; }
int NoName(unw_addr_space_t, unw_word_t, char*, size_t, unw_word_t*, void*) { return -UNW_ENOINFO; }

// .eh_frame_hdr: LSB, "Linux Standard Base Core Specification, Exception Frames". Only the encodings that every
// linker writes are understood.
struct TableHeader {
  uint8_t version;
  uint8_t frame_pointer_encoding;
  uint8_t count_encoding;
  uint8_t table_encoding;
  int32_t frame_pointer;
  uint32_t count;
};
constexpr uint8_t kPcRelative4 = 0x1b;
constexpr uint8_t kUnsigned4 = 0x03;
constexpr uint8_t kTableRelative4 = 0x3b;
constexpr size_t kTableEntry = 8;

int FindProcedure(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t* result, int need_unwind_info,
                  void* argument) {
  auto* walk = static_cast<Walk*>(argument);
  walk->lost = true;
  const LoadedObject* object = ObjectOf(walk, ip);
  if (object == nullptr) return -UNW_ENOINFO;
  TableHeader header;
  const uintptr_t table = object->unwind_table;
  if (!object->CanRead(table, sizeof header)) return -UNW_ENOINFO;
  std::memcpy(&header, reinterpret_cast<const void*>(table), sizeof header);
  if (header.version != 1 || header.frame_pointer_encoding != kPcRelative4 || header.count_encoding != kUnsigned4 ||
      header.table_encoding != kTableRelative4 ||
      !object->CanRead(table, sizeof header + size_t{header.count} * kTableEntry)) {
    return -UNW_ENOINFO;
  }
  unw_dyn_info_t info;
  std::memset(&info, 0, sizeof info);
  info.format = UNW_INFO_FORMAT_REMOTE_TABLE;
  info.start_ip = object->begin;
  info.end_ip = object->end;
  info.u.rti.segbase = table;
  info.u.rti.table_data = table + sizeof header;
  info.u.rti.table_len = header.count * kTableEntry / sizeof(unw_word_t);
  const int status = _Ux86_64_dwarf_search_unwind_table(space, ip, &info, result, need_unwind_info, argument);
  if (status >= 0) walk->lost = false;
  return status;
}

// FindProcedure's result holds memory of libunwind's own pool, which libunwind gives back itself.
void PutProcedure(unw_addr_space_t, unw_proc_info_t*, void*) {}

unw_accessors_t g_accessors = {
    .find_proc_info = FindProcedure,
    .put_unwind_info = PutProcedure,
    .get_dyn_info_list_addr = NoDynamicInfo,
    .access_mem = ReadWord,
    .access_reg = ReadRegister,
    .access_fpreg = NoFloatingPoint,
    .resume = NoResume,
    .get_proc_name = NoName,
};

}  // namespace

bool PrepareUnwinder() noexcept {
  PrepareStackEnd();
  RefreshObjects();
  if (g_space.load(std::memory_order_acquire) != nullptr) return true;
  unw_addr_space_t space = unw_create_addr_space(&g_accessors, 0);
  if (space == nullptr) return false;
  // No cache: it would outlive objects that are unloaded.
  unw_set_caching_policy(space, UNW_CACHE_NONE);
  unw_addr_space_t none = nullptr;
  if (!g_space.compare_exchange_strong(none, space, std::memory_order_acq_rel)) unw_destroy_addr_space(space);
  return true;
}

[[gnu::noinline]] size_t Unwind(std::span<StackFrame> frames) noexcept {
  unw_addr_space_t space = g_space.load(std::memory_order_acquire);
  const uintptr_t stack_end = StackEnd();
  if (space == nullptr || stack_end == 0 || g_busy.exchange(true, std::memory_order_acquire)) return 0;

  Walk walk;
  walk.stack_end = stack_end;
  walk.object_count = 0;
  walk.lost = false;
  std::memset(walk.registers, 0, sizeof walk.registers);
  // Takes, at one instruction, every register that a caller expects to be kept.
  asm volatile(
      "movq %%rbx, %[rbx]\n\t"
      "movq %%rbp, %[rbp]\n\t"
      "movq %%r12, %[r12]\n\t"
      "movq %%r13, %[r13]\n\t"
      "movq %%r14, %[r14]\n\t"
      "movq %%r15, %[r15]\n\t"
      "movq %%rsp, %[rsp]\n\t"
      "leaq 0(%%rip), %%rax\n\t"
      "movq %%rax, %[rip]\n\t"
      : [rbx] "=m"(walk.registers[UNW_X86_64_RBX]), [rbp] "=m"(walk.registers[UNW_X86_64_RBP]),
        [r12] "=m"(walk.registers[UNW_X86_64_R12]), [r13] "=m"(walk.registers[UNW_X86_64_R13]),
        [r14] "=m"(walk.registers[UNW_X86_64_R14]), [r15] "=m"(walk.registers[UNW_X86_64_R15]),
        [rsp] "=m"(walk.registers[UNW_X86_64_RSP]), [rip] "=m"(walk.registers[UNW_X86_64_RIP])
      :
      : "rax");
  walk.stack_begin = walk.registers[UNW_X86_64_RSP];

  size_t count = 0;
  unw_cursor_t cursor;
  // The first step leads out of this function, the second out of the one that called it.
  if (unw_init_remote(&cursor, space, &walk) == 0) {
    uintptr_t last_slot = 0;
    for (size_t step = 0; count < frames.size() && step < kMaxStackFrames; ++step) {
      if (unw_step(&cursor) <= 0 || walk.lost) break;
      unw_word_t ip = 0;
      unw_word_t stack = 0;
      if (unw_get_reg(&cursor, UNW_REG_IP, &ip) != 0 || unw_get_reg(&cursor, UNW_REG_SP, &stack) != 0 || ip == 0)
        break;
      const uintptr_t slot = stack - sizeof(uintptr_t);
      if (slot <= last_slot || slot < walk.stack_begin || stack > stack_end) break;
      last_slot = slot;
      if (step != 0) frames[count++] = {ip, slot};
    }
  }
  g_busy.store(false, std::memory_order_release);
  return count;
}

}  // namespace rfinject
