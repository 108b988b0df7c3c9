#include "cli/attach/image.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace rfinject::cli {
namespace {

// More than this is no object that we know: what is read may be anything.
constexpr uint64_t kMostHeaders = 64, kMostEntries = 512, kMostBuckets = 1 << 20, kMostSymbols = 1 << 22,
                   kMostCalls = 1 << 20;
constexpr uint64_t kLoadPage = 4096;

// The tables by which the loader finds symbols and binds calls.
struct Tables {
  uint64_t symbols = 0, names = 0, gnu_hash = 0, hash = 0;
  uint64_t calls = 0, calls_size = 0;  // relocations of what it calls
};

class Image {
 public:
  Image(const ReadMemory& read, uint64_t base) : read_(read), base_(base) {}

  // Finds the tables.
  bool Load() {
    Elf64_Ehdr header;
    if (!Get(base_, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr) ||
        header.e_phnum > kMostHeaders) {
      return false;
    }
    uint64_t dynamic = 0, dynamic_size = 0;
    std::optional<uint64_t> first;
    for (uint64_t i = 0; i < header.e_phnum; ++i) {
      Elf64_Phdr part;
      if (!Get(base_ + header.e_phoff + i * sizeof part, &part)) return false;
      if (part.p_type == PT_LOAD && !first) first = part.p_vaddr / kLoadPage * kLoadPage;
      if (part.p_type == PT_DYNAMIC) dynamic = part.p_vaddr, dynamic_size = part.p_memsz;
    }
    if (!first || dynamic == 0) return false;
    bias_ = base_ - *first;
    return LoadTables(bias_ + dynamic, dynamic_size / sizeof(Elf64_Dyn));
  }

  uint64_t Find(std::string_view name) const {
    return tables_.gnu_hash != 0 ? FindByGnuHash(name) : tables_.hash != 0 ? FindByHash(name) : 0;
  }

  uint64_t size() const { return size_; }

  std::vector<CallSlot> CallSlots() const {
    std::vector<CallSlot> slots;
    if (tables_.calls == 0) return slots;
    for (uint64_t i = 0; i < std::min(tables_.calls_size / sizeof(Elf64_Rela), kMostCalls); ++i) {
      Elf64_Rela relocation;
      if (!Get(tables_.calls + i * sizeof relocation, &relocation)) break;
      if (ELF64_R_TYPE(relocation.r_info) != R_X86_64_JUMP_SLOT) continue;
      CallSlot slot{.at = bias_ + relocation.r_offset};
      if (Get(slot.at, &slot.function)) slots.push_back(slot);
    }
    return slots;
  }

 private:
  template <typename T>
  bool Get(uint64_t address, T* value) const {
    return read_(address, value, sizeof *value);
  }

  bool LoadTables(uint64_t at, uint64_t entries) {
    for (uint64_t i = 0; i < std::min(entries, kMostEntries); ++i) {
      Elf64_Dyn entry;
      if (!Get(at + i * sizeof entry, &entry)) return false;
      if (entry.d_tag == DT_NULL) break;
      // glibc's loader makes addresses of these, others leave them as they are in the file.
      const uint64_t address = entry.d_un.d_ptr < base_ ? entry.d_un.d_ptr + bias_ : entry.d_un.d_ptr;
      if (entry.d_tag == DT_SYMTAB) tables_.symbols = address;
      if (entry.d_tag == DT_STRTAB) tables_.names = address;
      if (entry.d_tag == DT_GNU_HASH) tables_.gnu_hash = address;
      if (entry.d_tag == DT_HASH) tables_.hash = address;
      if (entry.d_tag == DT_JMPREL) tables_.calls = address;
      if (entry.d_tag == DT_PLTRELSZ) tables_.calls_size = entry.d_un.d_val;
    }
    return tables_.symbols != 0 && tables_.names != 0;
  }

  // The address of symbol `index`, if it is a function of this name that is defined here.
  uint64_t AddressOf(uint64_t index, std::string_view name) const {
    Elf64_Sym symbol;
    if (!Get(tables_.symbols + index * sizeof symbol, &symbol)) return 0;
    if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) return 0;
    std::string text(name.size() + 1, '\0');
    if (!read_(tables_.names + symbol.st_name, text.data(), text.size())) return 0;
    if (std::string_view(text.data(), name.size()) != name || text.back() != '\0') return 0;
    size_ = symbol.st_size;
    return bias_ + symbol.st_value;
  }

  // The layout is that of binutils' and glibc's DT_GNU_HASH: four words, a Bloom filter of 64-bit words, a bucket for
  // each hash, and behind them the hashes of all symbols, of which the last of a bucket has its lowest bit set.
  uint64_t FindByGnuHash(std::string_view name) const {
    struct {
      uint32_t buckets, first, filter_words, shift;
    } head;
    if (!Get(tables_.gnu_hash, &head) || head.buckets == 0 || head.buckets > kMostBuckets) return 0;
    uint32_t hash = 5381;
    for (const char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
    const uint64_t buckets = tables_.gnu_hash + sizeof head + uint64_t{head.filter_words} * 8;
    const uint64_t hashes = buckets + uint64_t{head.buckets} * 4;
    uint32_t index = 0;
    if (!Get(buckets + uint64_t{hash % head.buckets} * 4, &index) || index < head.first) return 0;
    for (; index < kMostSymbols; ++index) {
      uint32_t other = 0;
      if (!Get(hashes + uint64_t{index - head.first} * 4, &other)) return 0;
      if ((other | 1) == (hash | 1)) {
        if (const uint64_t address = AddressOf(index, name)) return address;
      }
      if ((other & 1) != 0) return 0;
    }
    return 0;
  }

  uint64_t FindByHash(std::string_view name) const {
    uint32_t head[2];  // buckets, symbols
    if (!Get(tables_.hash, &head)) return 0;
    for (uint64_t i = 1; i < std::min<uint64_t>(head[1], kMostSymbols); ++i) {
      if (const uint64_t address = AddressOf(i, name)) return address;
    }
    return 0;
  }

  const ReadMemory& read_;
  const uint64_t base_;
  uint64_t bias_ = 0;          // what is added to addresses of the file
  mutable uint64_t size_ = 0;  // of the function that was found
  Tables tables_;
};

}  // namespace

uint64_t FindFunction(const ReadMemory& read, uint64_t base, std::string_view name, uint64_t* size) {
  Image image(read, base);
  const uint64_t address = image.Load() ? image.Find(name) : 0;
  if (size != nullptr) *size = image.size();
  return address;
}

std::vector<CallSlot> FindCallSlots(const ReadMemory& read, uint64_t base) {
  Image image(read, base);
  return image.Load() ? image.CallSlots() : std::vector<CallSlot>();
}

}  // namespace rfinject::cli
