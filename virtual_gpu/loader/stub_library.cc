#include "virtual_gpu/loader/stub_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <iterator>

namespace rfinject::virtual_gpu {
namespace {

// This number is above what a program has open when it imports torch, and below the usual limit of 1024.
constexpr int kFirstNumber = 400;
constexpr uint64_t kPage = 4096;
constexpr size_t kHeaders = 4;  // code, data, dynamic, stack

uint64_t RoundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

void Append(std::string* to, const void* bytes, size_t size) { to->append(static_cast<const char*>(bytes), size); }
void Align(std::string* to, size_t unit) { to->resize(RoundUp(to->size(), unit)); }

constexpr char kText[] = "not supported on rfinject's virtual GPU";

// Where the stubs' parts lie in the image.
struct StubPlaces {
  uint64_t name, report, text;
};

// endbr64; lea rdi, [rip + name]; mov esi, status; jmp [rip + report]. One that returns a text has room on the stack
// for that call and ends with: lea rax, [rip + text]; add rsp, 8; ret.
void AppendStub(std::string* image, const Stub& stub, const StubPlaces& places) {
  // Appends the distance from the end of the instruction, which these four bytes end, to the target.
  const auto append_distance = [image](uint64_t target) {
    const auto distance =
        static_cast<int32_t>(static_cast<int64_t>(target) - static_cast<int64_t>(image->size() + 4));
    Append(image, &distance, sizeof distance);
  };
  Append(image, "\xf3\x0f\x1e\xfa", 4);
  if (stub.text) Append(image, "\x48\x83\xec\x08", 4);  // sub rsp, 8
  Append(image, "\x48\x8d\x3d", 3);
  append_distance(places.name);
  image->push_back('\xbe');
  Append(image, &stub.status, sizeof stub.status);
  Append(image, stub.text ? "\xff\x15" : "\xff\x25", 2);  // call or jmp
  append_distance(places.report);
  if (!stub.text) return;
  Append(image, "\x48\x8d\x05", 3);
  append_distance(places.text);
  Append(image, "\x48\x83\xc4\x08\xc3", 5);
}

// The hash of the System V ABI, which DT_HASH tables use.
uint32_t SymbolHash(const char* name) {
  uint32_t hash = 0;
  for (; *name != '\0'; ++name) {
    hash = (hash << 4) + static_cast<unsigned char>(*name);
    const uint32_t high = hash & 0xf0000000;
    hash = (hash ^ high >> 24) & ~high;
  }
  return hash;
}

// The hash table (DT_HASH) of the symbols. Symbol 0 means "no symbol", so the stub at place i is symbol i + 1.
std::vector<uint32_t> HashTable(const std::vector<Stub>& stubs) {
  const auto buckets = static_cast<uint32_t>(stubs.size() + 1);
  const auto symbols = static_cast<uint32_t>(stubs.size() + 1);
  std::vector<uint32_t> hash(2 + buckets + symbols);
  hash[0] = buckets;
  hash[1] = symbols;
  for (uint32_t i = 1; i < symbols; ++i) {
    uint32_t& bucket = hash[2 + SymbolHash(stubs[i - 1].name.c_str()) % buckets];
    hash[2 + buckets + i] = bucket;
    bucket = i;
  }
  return hash;
}

// Fills the room for headers at the image's beginning: code and data up to `code_bytes`, and the dynamic section.
void WriteHeaders(std::string* image, uint64_t code_bytes, uint64_t dynamic_at, uint64_t dynamic_bytes) {
  Elf64_Ehdr header{};
  memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_phoff = sizeof header;
  header.e_ehsize = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = kHeaders;
  const auto segment = [](uint32_t type, uint32_t flags, uint64_t at, uint64_t bytes, uint64_t alignment) {
    return Elf64_Phdr{type, flags, at, at, at, bytes, bytes, alignment};
  };
  const Elf64_Phdr segments[kHeaders] = {
      segment(PT_LOAD, PF_R | PF_X, 0, code_bytes, kPage),
      segment(PT_LOAD, PF_R | PF_W, dynamic_at, dynamic_bytes, kPage),
      segment(PT_DYNAMIC, PF_R | PF_W, dynamic_at, dynamic_bytes, 8),
      segment(PT_GNU_STACK, PF_R | PF_W, 0, 0, 16),
  };
  memcpy(image->data(), &header, sizeof header);
  memcpy(image->data() + sizeof header, segments, sizeof segments);
}

}  // namespace

// Addresses are offsets in the file: everything but the dynamic section is one segment that can be read and executed,
// and the dynamic section, which the loader writes to, is a second one.
std::string MakeLibrary(const std::string& soname, const std::vector<Stub>& stubs, int (*report)(const char*, int),
                        const std::vector<std::string>& needed) {
  std::string strings(1, '\0');
  const uint64_t soname_at = strings.size();
  strings += soname + '\0';
  std::vector<Elf64_Dyn> dynamic;
  for (const std::string& library : needed) {
    dynamic.push_back({DT_NEEDED, {strings.size()}});
    strings += library + '\0';
  }
  const uint64_t text_at = strings.size();
  Append(&strings, kText, sizeof kText);
  std::vector<uint64_t> names;  // offsets in `strings`
  for (const Stub& stub : stubs) {
    names.push_back(strings.size());
    strings += stub.name + '\0';
  }

  std::string image(sizeof(Elf64_Ehdr) + kHeaders * sizeof(Elf64_Phdr), '\0');
  Align(&image, 16);
  const uint64_t report_at = image.size();
  Append(&image, static_cast<const void*>(&report), sizeof report);
  const uint64_t strings_at = image.size();
  image += strings;
  Align(&image, 16);

  std::vector<Elf64_Sym> symbols(1 + stubs.size());
  for (size_t i = 0; i < stubs.size(); ++i) {
    Elf64_Sym& symbol = symbols[i + 1];
    symbol.st_name = static_cast<Elf64_Word>(names[i]);
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    symbol.st_shndx = 1;  // any that is not "undefined"
    symbol.st_value = image.size();
    AppendStub(&image, stubs[i], {strings_at + names[i], report_at, strings_at + text_at});
    symbol.st_size = image.size() - symbol.st_value;
  }
  Align(&image, 8);
  const uint64_t symbols_at = image.size();
  Append(&image, symbols.data(), symbols.size() * sizeof(Elf64_Sym));

  const std::vector<uint32_t> hash = HashTable(stubs);
  const uint64_t hash_at = image.size();
  Append(&image, hash.data(), hash.size() * sizeof(uint32_t));

  const uint64_t code_bytes = image.size();
  Align(&image, kPage);
  const Elf64_Dyn places[] = {
      {DT_SONAME, {soname_at}},
      {DT_HASH, {hash_at}},
      {DT_STRTAB, {strings_at}},
      {DT_STRSZ, {strings.size()}},
      {DT_SYMTAB, {symbols_at}},
      {DT_SYMENT, {sizeof(Elf64_Sym)}},
      {DT_NULL, {0}},
  };
  dynamic.insert(dynamic.end(), std::begin(places), std::end(places));
  const uint64_t dynamic_at = image.size();
  const uint64_t dynamic_bytes = dynamic.size() * sizeof(Elf64_Dyn);
  Append(&image, dynamic.data(), dynamic_bytes);

  WriteHeaders(&image, code_bytes, dynamic_at, dynamic_bytes);
  return image;
}

std::string LoadLibraryBytes(const std::string& bytes, const std::string& name) {
  const int fd = static_cast<int>(syscall(SYS_memfd_create, name.c_str(), 1u /* MFD_CLOEXEC */));
  if (fd < 0) return "no memory file for " + name;
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t wrote = write(fd, bytes.data() + done, bytes.size() - done);
    if (wrote <= 0) {
      close(fd);
      return "no memory for " + name;
    }
    done += static_cast<size_t>(wrote);
  }
  // The loader knows libraries by their paths. So each gets a number of its own, which must not be that of a closed
  // file.
  static std::atomic<int> next{kFirstNumber};
  const int numbered = fcntl(fd, F_DUPFD_CLOEXEC, next.load());
  close(fd);
  if (numbered < 0) return "no file number for " + name;
  next.store(numbered + 1);
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", numbered);
  void* library = dlopen(path, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
  std::string error;
  if (library == nullptr) error = dlerror();
  close(numbered);
  return error;
}

}  // namespace rfinject::virtual_gpu
