// File: name_table.h
//
// NameTable gives texts ids. Looking up a known text takes no lock, so that a source can intern a kernel's name on
// every launch; the caller of Add must exclude other adders.
//
// Nothing is ever removed, and tables that were outgrown are leaked (together they are smaller than the last one): a
// reader may be in them, and a forked child may inherit a reader that no longer exists.
#ifndef RFINJECT_COLLECTOR_NAME_TABLE_H_
#define RFINJECT_COLLECTOR_NAME_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rfinject {

class NameTable {
 public:
  // Longer texts are cut at a UTF-8 boundary: a kernel's mangled template name can be absurd.
  static constexpr size_t kMaxLength = 16 << 10;
  // The bytes of all texts together, beyond which Add returns 0: a program with new shapes in every step must not use
  // up the machine's memory.
  static constexpr size_t kMaxBytes = 64 << 20;

  // The id of `text`, 0 if it has none. Any thread, at any time.
  uint32_t Find(std::string_view text) const noexcept;
  // The id of `text`, a new one if it had none; 0 when memory ran out or kMaxBytes is reached.
  uint32_t Add(std::string_view text) noexcept;

  // The number of texts; ids are 1 to size(). size and text may be called only under the lock that excludes adders.
  uint32_t size() const noexcept { return size_; }
  std::string_view text(uint32_t id) const noexcept { return ids_[id - 1]->text(); }

 private:
  struct Entry {
    uint32_t id;
    uint32_t hash;
    size_t length;
    std::string_view text() const noexcept { return {reinterpret_cast<const char*>(this + 1), length}; }
  };
  struct Index {
    uint32_t capacity;      // a power of two
    const Index* outgrown;  // the one before, so that leak checkers see that it is kept
    std::atomic<const Entry*> slots[];
  };

  static std::string_view Cut(std::string_view text) noexcept;
  static const Entry* Lookup(const Index* index, std::string_view text, uint32_t hash) noexcept;
  // The slot that an entry with this hash goes into.
  static std::atomic<const Entry*>& FreeSlot(Index* index, uint32_t hash) noexcept;
  bool Grow() noexcept;

  std::atomic<Index*> index_{nullptr};
  const Entry** ids_ = nullptr;
  uint32_t ids_capacity_ = 0;
  uint32_t size_ = 0;
  size_t bytes_ = 0;
};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_NAME_TABLE_H_
