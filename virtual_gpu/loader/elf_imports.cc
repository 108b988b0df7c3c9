#include "virtual_gpu/loader/elf_imports.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

namespace rfinject::virtual_gpu {
namespace {

// Maps the file into memory: of a library that may have gigabytes, only the pages that are looked at are read.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    struct stat status;
    if (fstat(fd, &status) == 0 && status.st_size > 0) {
      void* at = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
      if (at != MAP_FAILED) bytes_ = {static_cast<const char*>(at), static_cast<size_t>(status.st_size)};
    }
    close(fd);
  }
  ~MappedFile() {
    if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Returns `count` objects from `offset` on; null where the file ends before that.
  template <typename T>
  const T* At(uint64_t offset, uint64_t count = 1) const {
    if (offset > bytes_.size() || count > (bytes_.size() - offset) / sizeof(T) || offset % alignof(T) != 0)
      return nullptr;
    return reinterpret_cast<const T*>(bytes_.data() + offset);
  }
  std::string_view Part(uint64_t offset, uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) return {};
    return bytes_.substr(offset, size);
  }

 private:
  std::string_view bytes_;
};

std::string Text(std::string_view strings, uint64_t at) {
  if (at >= strings.size()) return {};
  strings.remove_prefix(at);
  return std::string(strings.substr(0, strings.find('\0')));
}

}  // namespace

bool ReadImports(const std::string& path, Imports* imports) {
  const MappedFile file(path);
  const auto* header = file.At<Elf64_Ehdr>(0);
  if (header == nullptr || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
      header->e_machine != EM_X86_64 || header->e_shentsize != sizeof(Elf64_Shdr)) {
    return false;
  }
  const auto* sections = file.At<Elf64_Shdr>(header->e_shoff, header->e_shnum);
  if (sections == nullptr || header->e_shnum == 0) return false;
  for (int i = 0; i < header->e_shnum; ++i) {
    const Elf64_Shdr& section = sections[i];
    if (section.sh_type != SHT_DYNSYM && section.sh_type != SHT_DYNAMIC) continue;
    if (section.sh_link >= header->e_shnum) return false;
    const std::string_view strings =
        file.Part(sections[section.sh_link].sh_offset, sections[section.sh_link].sh_size);
    if (section.sh_type == SHT_DYNAMIC) {
      const uint64_t count = section.sh_size / sizeof(Elf64_Dyn);
      const auto* entries = file.At<Elf64_Dyn>(section.sh_offset, count);
      for (uint64_t k = 0; entries != nullptr && k < count && entries[k].d_tag != DT_NULL; ++k) {
        if (entries[k].d_tag == DT_NEEDED) imports->libraries.insert(Text(strings, entries[k].d_un.d_val));
      }
    } else {
      const uint64_t count = section.sh_size / sizeof(Elf64_Sym);
      const auto* symbols = file.At<Elf64_Sym>(section.sh_offset, count);
      for (uint64_t k = 1; symbols != nullptr && k < count; ++k) {
        if (symbols[k].st_shndx == SHN_UNDEF) imports->functions.insert(Text(strings, symbols[k].st_name));
      }
    }
  }
  return true;
}

}  // namespace rfinject::virtual_gpu
