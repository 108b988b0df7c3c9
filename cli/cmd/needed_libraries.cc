#include "cli/cmd/needed_libraries.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace rfinject::cli {
namespace {

// Real programs have some 13 segments, some 40 dynamic entries and a few hundred bytes of names of libraries.
constexpr size_t kMaxSegments = 256;
constexpr size_t kMaxDynamicEntries = 1024;
constexpr size_t kMaxNameLength = 255;
// execve follows scripts that name scripts four times (fs/exec.c); one is enough to reach env or an interpreter.
constexpr int kMaxScripts = 2;

class File {
 public:
  explicit File(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  // How many of `size` bytes at `offset` are there.
  size_t Read(uint64_t offset, void* out, size_t size) const {
    if (fd_ < 0 || offset > INT64_MAX) return 0;
    const ssize_t got = ::pread(fd_, out, size, static_cast<off_t>(offset));
    return got > 0 ? static_cast<size_t>(got) : 0;
  }
  template <typename T>
  bool ReadAll(uint64_t offset, T* out, size_t count = 1) const {
    return Read(offset, out, count * sizeof(T)) == count * sizeof(T);
  }

 private:
  int fd_;
};

// Where in the file the byte lies that the loader puts at `address`.
std::optional<uint64_t> FileOffset(const std::vector<Elf64_Phdr>& segments, uint64_t address) {
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz) {
      return segment.p_offset + (address - segment.p_vaddr);
    }
  }
  return std::nullopt;
}

std::vector<std::string> NeededByElf(const File& file) {
  Elf64_Ehdr header;
  if (!file.ReadAll(0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > kMaxSegments) {
    return {};
  }
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  if (!file.ReadAll(header.e_phoff, segments.data(), segments.size())) return {};
  const auto dynamic =
      std::find_if(segments.begin(), segments.end(), [](const Elf64_Phdr& s) { return s.p_type == PT_DYNAMIC; });
  if (dynamic == segments.end()) return {};
  std::vector<Elf64_Dyn> entries(std::min<uint64_t>(dynamic->p_filesz / sizeof(Elf64_Dyn), kMaxDynamicEntries));
  if (!file.ReadAll(dynamic->p_offset, entries.data(), entries.size())) return {};

  std::optional<uint64_t> names;
  std::vector<uint64_t> needed;  // offsets from `names`
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_STRTAB) names = FileOffset(segments, entry.d_un.d_ptr);
    if (entry.d_tag == DT_NEEDED) needed.push_back(entry.d_un.d_val);
  }
  std::vector<std::string> libraries;
  for (const uint64_t offset : needed) {
    char name[kMaxNameLength + 1];
    if (!names || *names > UINT64_MAX - offset) continue;
    const size_t size = file.Read(*names + offset, name, sizeof name);
    const size_t length = strnlen(name, size);
    if (length < size) libraries.emplace_back(name, length);
  }
  return libraries;
}

// The interpreter in "#! /bin/sh -e"; for "#!/usr/bin/env python3" it is env, which is no sanitizer's program.
std::string Interpreter(const File& file) {
  char line[256];
  const std::string_view text(line, file.Read(0, line, sizeof line));
  if (!text.starts_with("#!")) return {};
  const size_t begin = text.find_first_not_of(" \t", 2);
  if (begin == std::string_view::npos) return {};
  const size_t end = text.find_first_of(" \t\r\n", begin);
  return end == std::string_view::npos ? std::string() : std::string(text.substr(begin, end - begin));
}

}  // namespace

std::vector<std::string> NeededLibraries(const std::string& path) {
  std::string program = path;
  for (int i = 0; i <= kMaxScripts; ++i) {
    const File file(program);
    std::string interpreter = Interpreter(file);
    if (interpreter.empty()) return NeededByElf(file);
    program = std::move(interpreter);
  }
  return {};
}

}  // namespace rfinject::cli
