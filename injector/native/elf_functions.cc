#include "injector/native/elf_functions.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace rfinject {
namespace {

constexpr size_t kMaxSections = 4096;
constexpr uint64_t kMaxNames = uint64_t{96} << 20;   // bytes; libtorch_cuda, the largest, has 60 MiB
constexpr uint64_t kMaxSymbols = uint64_t{4} << 20;  // and 0.6 million
constexpr size_t kChunk = 4096;                      // symbols read at once: 96 KiB

struct File {
  int descriptor;
  ~File() {
    if (descriptor >= 0) close(descriptor);
  }
  bool Read(void* to, size_t size, uint64_t offset) const {
    auto* bytes = static_cast<char*>(to);
    while (size != 0) {
      const ssize_t got = pread(descriptor, bytes, size, static_cast<off_t>(offset));
      if (got <= 0) return false;
      bytes += got;
      offset += static_cast<uint64_t>(got);
      size -= static_cast<size_t>(got);
    }
    return true;
  }
};

}  // namespace

bool VisitElfFunctions(const char* path, VisitFunction visit, void* data) {
  const File file{open(path, O_RDONLY | O_CLOEXEC)};
  ElfW(Ehdr) header;
  if (file.descriptor < 0 || !file.Read(&header, sizeof header, 0)) return false;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_shentsize != sizeof(ElfW(Shdr)) || header.e_shnum == 0 || header.e_shnum > kMaxSections) {
    return false;
  }
  std::vector<ElfW(Shdr)> sections(header.e_shnum);
  if (!file.Read(sections.data(), sections.size() * sizeof(ElfW(Shdr)), header.e_shoff)) return false;
  const auto of_type = [&](uint32_t type) {
    return std::find_if(sections.begin(), sections.end(), [&](const ElfW(Shdr) & s) { return s.sh_type == type; });
  };
  auto symbols = of_type(SHT_SYMTAB);
  if (symbols == sections.end()) symbols = of_type(SHT_DYNSYM);
  if (symbols == sections.end() || symbols->sh_entsize != sizeof(ElfW(Sym)) || symbols->sh_link >= sections.size()) {
    return false;
  }
  const ElfW(Shdr)& names = sections[symbols->sh_link];
  const uint64_t count = symbols->sh_size / sizeof(ElfW(Sym));
  if (names.sh_type != SHT_STRTAB || names.sh_size == 0 || names.sh_size > kMaxNames || count > kMaxSymbols) {
    return false;
  }
  std::vector<char> texts(names.sh_size);
  if (!file.Read(texts.data(), texts.size(), names.sh_offset)) return false;
  texts.back() = 0;
  std::vector<ElfW(Sym)> chunk(kChunk);
  for (uint64_t first = 0; first < count; first += kChunk) {
    const size_t size = std::min<uint64_t>(kChunk, count - first);
    if (!file.Read(chunk.data(), size * sizeof(ElfW(Sym)), symbols->sh_offset + first * sizeof(ElfW(Sym)))) {
      return false;
    }
    for (size_t i = 0; i < size; ++i) {
      const ElfW(Sym)& symbol = chunk[i];
      const auto type = ELF64_ST_TYPE(symbol.st_info);
      if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol.st_shndx == SHN_UNDEF || symbol.st_size == 0)
        continue;
      if (symbol.st_name >= texts.size() || symbol.st_value > UINT64_MAX - symbol.st_size) continue;
      visit(data, symbol.st_value, symbol.st_value + symbol.st_size, texts.data() + symbol.st_name);
    }
  }
  return true;
}

}  // namespace rfinject
