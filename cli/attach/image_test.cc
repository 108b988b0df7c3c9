#include "cli/attach/image.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/attach/process.h"

namespace rfinject::cli {
namespace {

std::vector<Mapping> OwnMappings() { return ParseMappings(ReadProcFile("/proc/self/maps")); }

// Reads this process, as far as it has that memory.
bool ReadSelf(uint64_t address, void* to, uint64_t size) {
  static const std::vector<Mapping> mappings = OwnMappings();
  const Mapping* mapping = MappingAt(mappings, address);
  if (mapping == nullptr || !mapping->readable || size > mapping->end - address) return false;
  std::memcpy(to, reinterpret_cast<const void*>(address), size);
  return true;
}

TEST(FindFunction, FindsWhatTheLoaderFinds) {
  const std::vector<Mapping> mappings = OwnMappings();
  const Mapping* library = FindFile(mappings, {"libc.so"});
  ASSERT_NE(library, nullptr);
  // A sanitizer has functions of its own in front of these, so the library itself is asked.
  void* const handle = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(handle, nullptr);
  // None of these is chosen by the processor when it is first called.
  for (const char* name : {"mmap", "getpid", "qsort", "pthread_create"}) {
    EXPECT_EQ(FindFunction(ReadSelf, library->begin, name), reinterpret_cast<uint64_t>(dlsym(handle, name))) << name;
  }
}

TEST(FindFunction, FindsNothingElse) {
  const std::vector<Mapping> mappings = OwnMappings();
  const Mapping* library = FindFile(mappings, {"libc.so"});
  ASSERT_NE(library, nullptr);
  EXPECT_EQ(FindFunction(ReadSelf, library->begin, "mma"), 0u);
  EXPECT_EQ(FindFunction(ReadSelf, library->begin, "Py_AddPendingCall"), 0u);
  EXPECT_EQ(FindFunction(ReadSelf, library->begin, "environ"), 0u);  // no function
  EXPECT_EQ(FindFunction(ReadSelf, 0, "mmap"), 0u);
  std::vector<char> rubbish(1 << 16, '\x7f');
  EXPECT_EQ(FindFunction(ReadSelf, reinterpret_cast<uint64_t>(rubbish.data()), "mmap"), 0u);
}

// A copy of the object's beginning, in which any word of the headers is spoilt, is no object, or lacks the function.
TEST(FindFunction, SurvivesSpoiltHeaders) {
  const std::vector<Mapping> mappings = OwnMappings();
  const Mapping* library = FindFile(mappings, {"libc.so"});
  ASSERT_NE(library, nullptr);
  const auto right = reinterpret_cast<uint64_t>(dlsym(RTLD_DEFAULT, "getpid"));
  constexpr uint64_t kHeaders = 1024;
  for (uint64_t at = 0; at < kHeaders; at += 4) {
    const ReadMemory spoilt = [&](uint64_t address, void* to, uint64_t size) {
      if (!ReadSelf(address, to, size)) return false;
      for (uint64_t i = 0; i < size; ++i) {
        const uint64_t offset = address + i - library->begin;
        if (offset >= at && offset < at + 4) static_cast<unsigned char*>(to)[i] ^= 0xff;
      }
      return true;
    };
    const uint64_t found = FindFunction(spoilt, library->begin, "getpid");
    EXPECT_TRUE(found == 0 || found == right) << at;
  }
}

TEST(FindCallSlots, FindsWhatTheLoaderHasBound) {
  const std::vector<Mapping> mappings = OwnMappings();
  ASSERT_NE(getppid(), 0);  // binds it, if that was not done at the start
  const auto function = reinterpret_cast<uint64_t>(dlsym(RTLD_DEFAULT, "getppid"));
  // The first mapping may be a sanitizer's.
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  const auto own =
      std::find_if(mappings.begin(), mappings.end(), [&](const Mapping& one) { return one.path == program; });
  ASSERT_NE(own, mappings.end());
  const std::vector<CallSlot> slots = FindCallSlots(ReadSelf, own->begin);
  size_t found = 0;
  for (const CallSlot& slot : slots) {
    EXPECT_EQ(*reinterpret_cast<const uint64_t*>(slot.at), slot.function);
    found += slot.function == function ? 1 : 0;
  }
  EXPECT_EQ(found, 1u);
  EXPECT_TRUE(FindCallSlots(ReadSelf, 0).empty());
}

}  // namespace
}  // namespace rfinject::cli
