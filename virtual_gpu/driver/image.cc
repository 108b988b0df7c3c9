#include "virtual_gpu/driver/image.h"

#include <dlfcn.h>
#include <elf.h>
#include <string.h>

#include <algorithm>
#include <optional>
#include <string_view>

namespace rfinject::virtual_gpu {
namespace {

constexpr uint32_t kWrapperMagic = 0x466243B1;
constexpr uint32_t kFatMagic = 0xBA55ED50;
constexpr uint32_t kElfMagic = 0x464c457f;

struct Wrapper {
  uint32_t magic, version;
  const uint8_t* data;
};
struct FatHeader {
  uint32_t magic;
  uint16_t version, header_bytes;
  uint64_t bytes;
};
struct FatEntry {
  uint16_t kind, version;
  uint32_t header_bytes;
  uint64_t padded_bytes;
  uint32_t payload_bytes, unknown1, unknown2, sm, bits, unknown3;
  uint64_t flags, unknown4, uncompressed_bytes;
};
static_assert(sizeof(FatEntry) == 64);
constexpr uint16_t kKindPtx = 1;
constexpr uint16_t kKindElf = 2;
constexpr uint64_t kFlagLz4 = 0x2000;
constexpr uint64_t kFlagZstd = 0x8000;

// Unpacks an LZ4 block (github.com/lz4/lz4, doc/lz4_Block_format.md). Returns an empty text when it is damaged.
std::string UnpackLz4(const uint8_t* at, size_t bytes, size_t unpacked_bytes) {
  std::string out;
  out.reserve(unpacked_bytes);
  const uint8_t* const end = at + bytes;
  const auto extended = [&](size_t length) -> std::optional<size_t> {
    if (length != 15) return length;
    for (uint8_t more = 255; more == 255;) {
      if (at == end) return std::nullopt;
      more = *at++;
      length += more;
    }
    return length;
  };
  while (at < end && out.size() < unpacked_bytes) {
    const uint8_t token = *at++;
    const std::optional<size_t> literals = extended(token >> 4);
    if (!literals || *literals > static_cast<size_t>(end - at)) return {};
    out.append(reinterpret_cast<const char*>(at), *literals);
    at += *literals;
    if (end - at < 2) break;
    const size_t offset = at[0] | static_cast<size_t>(at[1]) << 8;
    at += 2;
    const std::optional<size_t> match = extended(token & 15);
    if (!match || offset == 0 || offset > out.size()) return {};
    for (size_t i = 0; i < *match + 4; ++i) out.push_back(out[out.size() - offset]);
  }
  return out;
}

// Fat binaries of CUDA 13 hold Zstandard frames. Python's own dependencies bring the library to most machines; where
// it is not, kernels have no notes, and count as using 32 registers.
std::string UnpackZstd(const uint8_t* data, size_t bytes, size_t unpacked_bytes) {
  using Decompress = size_t (*)(void*, size_t, const void*, size_t);
  static const auto decompress = [] {
    void* library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    return library != nullptr ? reinterpret_cast<Decompress>(dlsym(library, "ZSTD_decompress")) : nullptr;
  }();
  if (decompress == nullptr) return {};
  std::string out(unpacked_bytes, '\0');
  const size_t written = decompress(out.data(), out.size(), data, bytes);
  if (written > unpacked_bytes) return {};
  out.resize(written);
  return out;
}

// The attributes of .nv.info that say something of a launch.
constexpr uint8_t kFormatSized = 4;
constexpr uint8_t kMaxThreads = 0x05;
constexpr uint8_t kParameter = 0x17;

void ReadNotes(std::string_view notes, KernelInfo* kernel) {
  while (notes.size() >= 4) {
    const uint8_t format = static_cast<uint8_t>(notes[0]);
    const uint8_t attribute = static_cast<uint8_t>(notes[1]);
    uint16_t bytes = 0;
    memcpy(&bytes, notes.data() + 2, 2);
    notes.remove_prefix(4);
    if (format != kFormatSized) continue;  // the value was in `bytes`
    if (bytes > notes.size()) return;
    uint32_t words[3] = {};
    memcpy(words, notes.data(), std::min<size_t>(bytes, sizeof words));
    if (attribute == kMaxThreads && bytes >= sizeof words) {
      kernel->max_threads = static_cast<int>(words[0] * words[1] * words[2]);
    } else if (attribute == kParameter && bytes >= sizeof words) {
      const size_t position = words[1] & 0xffff;
      if (kernel->parameters.size() <= position) kernel->parameters.resize(position + 1);
      kernel->parameters[position] = {words[1] >> 16, (words[2] >> 18) & 0x3fff};
    }
    notes.remove_prefix(bytes);
  }
}

class ElfFile {
 public:
  explicit ElfFile(std::string_view bytes) : bytes_(bytes) {}

  bool Read(Image* image) const {
    Elf64_Ehdr header;
    if (bytes_.size() < sizeof header) return false;
    memcpy(&header, bytes_.data(), sizeof header);
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_shentsize != sizeof(Elf64_Shdr)) return false;
    std::vector<Elf64_Shdr> sections(header.e_shnum);
    const std::string_view table = Part(header.e_shoff, sections.size() * sizeof(Elf64_Shdr));
    if (table.empty() || header.e_shstrndx >= sections.size()) return false;
    memcpy(sections.data(), table.data(), table.size());
    const std::string_view names = Content(sections[header.e_shstrndx]);

    for (const Elf64_Shdr& section : sections) {
      const std::string_view name = Text(names, section.sh_name);
      if (name.starts_with(".text.")) {
        image->kernels[std::string(name.substr(6))].registers = static_cast<int>(section.sh_info >> 24);
      } else if (section.sh_type == SHT_SYMTAB && section.sh_link < sections.size()) {
        ReadVariables(Content(section), Content(sections[section.sh_link]), image);
      }
    }
    for (const Elf64_Shdr& section : sections) {
      const std::string_view name = Text(names, section.sh_name);
      if (KernelInfo* kernel = KernelOf(".nv.shared.", name, image)) {
        kernel->static_shared_bytes = static_cast<int>(section.sh_size);
      } else if (KernelInfo* noted = KernelOf(".nv.info.", name, image)) {
        ReadNotes(Content(section), noted);
      }
    }
    return !image->kernels.empty();
  }

 private:
  std::string_view Part(uint64_t offset, uint64_t bytes) const {
    if (offset > bytes_.size() || bytes > bytes_.size() - offset) return {};
    return bytes_.substr(offset, bytes);
  }
  std::string_view Content(const Elf64_Shdr& section) const {
    return section.sh_type == SHT_NOBITS ? std::string_view() : Part(section.sh_offset, section.sh_size);
  }
  static std::string_view Text(std::string_view strings, size_t at) {
    if (at >= strings.size()) return {};
    return strings.substr(at, strings.substr(at).find('\0'));
  }
  static KernelInfo* KernelOf(std::string_view prefix, std::string_view section, Image* image) {
    if (!section.starts_with(prefix)) return nullptr;
    const auto at = image->kernels.find(std::string(section.substr(prefix.size())));
    return at != image->kernels.end() ? &at->second : nullptr;
  }
  static void ReadVariables(std::string_view symbols, std::string_view strings, Image* image) {
    for (; symbols.size() >= sizeof(Elf64_Sym); symbols.remove_prefix(sizeof(Elf64_Sym))) {
      Elf64_Sym symbol;
      memcpy(&symbol, symbols.data(), sizeof symbol);
      if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_shndx == SHN_UNDEF) continue;
      image->variables[std::string(Text(strings, symbol.st_name))] = symbol.st_size;
    }
  }

  std::string_view bytes_;
};

// How well an image that was compiled for `sm` suits a device: its own chip first, then an older one of the same
// major number, then PTX, which the driver would compile. Negative: not at all.
int Suits(const FatEntry& entry, int device_sm) {
  const int sm = static_cast<int>(entry.sm);
  if (entry.kind == kKindElf) return sm <= device_sm && sm / 10 == device_sm / 10 ? 1000 + sm : -1;
  if (entry.kind == kKindPtx) return sm <= device_sm ? sm : -1;
  return -1;
}

void ReadFat(const uint8_t* data, int device_sm, Image* image) {
  FatHeader header;
  memcpy(&header, data, sizeof header);
  const uint8_t* at = data + header.header_bytes;
  const uint8_t* const end = at + header.bytes;
  const uint8_t* best = nullptr;
  const uint8_t* nearest = nullptr;
  int best_suits = -1;
  uint32_t nearest_sm = 0;
  while (static_cast<size_t>(end - at) >= sizeof(FatEntry)) {
    FatEntry entry;
    memcpy(&entry, at, sizeof entry);
    if (const int suits = Suits(entry, device_sm); suits > best_suits) {
      best = at;
      best_suits = suits;
    }
    // An image that this chip could not run is still the best guess at what a build for it would launch.
    if (entry.kind == kKindElf && (nearest == nullptr || entry.sm < nearest_sm)) {
      nearest = at;
      nearest_sm = entry.sm;
    }
    const uint64_t next = entry.header_bytes + entry.padded_bytes;
    if (next == 0 || next > static_cast<size_t>(end - at)) break;
    at += next;
  }
  image->other_chip = best == nullptr;
  if (best == nullptr) best = nearest;
  if (best == nullptr) return;
  FatEntry entry;
  memcpy(&entry, best, sizeof entry);
  image->sm = static_cast<int>(entry.sm);
  if (entry.kind != kKindElf) return;
  const uint8_t* payload = best + entry.header_bytes;
  std::string unpacked;
  std::string_view elf(reinterpret_cast<const char*>(payload), entry.padded_bytes);
  if ((entry.flags & kFlagLz4) != 0) {
    elf = unpacked = UnpackLz4(payload, entry.payload_bytes, entry.uncompressed_bytes);
  } else if ((entry.flags & kFlagZstd) != 0) {
    elf = unpacked = UnpackZstd(payload, entry.payload_bytes, entry.uncompressed_bytes);
  }
  image->parsed = ElfFile(elf).Read(image);
}

}  // namespace

bool ReadImage(const void* data, int sm, Image* image) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  uint32_t magic = 0;
  memcpy(&magic, bytes, sizeof magic);
  if (magic == kWrapperMagic) {
    Wrapper wrapper;
    memcpy(&wrapper, bytes, sizeof wrapper);
    bytes = wrapper.data;
    memcpy(&magic, bytes, sizeof magic);
  }
  if (magic == kFatMagic) {
    ReadFat(bytes, sm, image);
    return true;
  }
  if (magic == kElfMagic) {
    Elf64_Ehdr header;
    memcpy(&header, bytes, sizeof header);
    const size_t sections_end = header.e_shoff + size_t{header.e_shnum} * header.e_shentsize;
    const size_t segments_end = header.e_phoff + size_t{header.e_phnum} * header.e_phentsize;
    const std::string_view elf(reinterpret_cast<const char*>(bytes), std::max(sections_end, segments_end));
    image->sm = sm;
    image->parsed = ElfFile(elf).Read(image);
    return true;
  }
  // PTX is text, which begins with a comment, a directive or an empty line.
  image->sm = sm;
  return bytes[0] == '/' || bytes[0] == '.' || bytes[0] == '\n';
}

}  // namespace rfinject::virtual_gpu
