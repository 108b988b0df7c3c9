#include "collector/name_table.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "collector/hash.h"

namespace rfinject {

std::string_view NameTable::Cut(std::string_view text) noexcept {
  if (text.size() <= kMaxLength) return text;
  size_t length = kMaxLength;
  while (length > 0 && (static_cast<uint8_t>(text[length]) & 0xC0) == 0x80) --length;
  return text.substr(0, length);
}

const NameTable::Entry* NameTable::Lookup(const Index* index, std::string_view text, uint32_t hash) noexcept {
  if (index == nullptr) return nullptr;
  const uint32_t mask = index->capacity - 1;
  for (uint32_t i = hash & mask;; i = (i + 1) & mask) {
    // Acquire pairs with the release in Add, so that the entry's bytes are visible with its pointer.
    const Entry* entry = index->slots[i].load(std::memory_order_acquire);
    if (entry == nullptr) return nullptr;
    if (entry->hash == hash && entry->text() == text) return entry;
  }
}

uint32_t NameTable::Find(std::string_view text) const noexcept {
  text = Cut(text);
  const Entry* entry = Lookup(index_.load(std::memory_order_acquire), text, HashBytes(text));
  return entry == nullptr ? 0 : entry->id;
}

std::atomic<const NameTable::Entry*>& NameTable::FreeSlot(Index* index, uint32_t hash) noexcept {
  uint32_t i = hash & (index->capacity - 1);
  while (index->slots[i].load(std::memory_order_relaxed) != nullptr) i = (i + 1) & (index->capacity - 1);
  return index->slots[i];
}

bool NameTable::Grow() noexcept {
  const Index* old = index_.load(std::memory_order_relaxed);
  if (old != nullptr && uint64_t{size_} * 3 < uint64_t{old->capacity} * 2) return true;
  const uint32_t capacity = old == nullptr ? 256 : old->capacity * 2;
  void* memory = std::calloc(1, sizeof(Index) + capacity * sizeof(std::atomic<const Entry*>));
  if (memory == nullptr) return false;
  auto* index = new (memory) Index;
  index->capacity = capacity;
  index->outgrown = old;
  for (uint32_t id = 0; id < size_; ++id) {
    FreeSlot(index, ids_[id]->hash).store(ids_[id], std::memory_order_relaxed);
  }
  index_.store(index, std::memory_order_release);
  return true;
}

uint32_t NameTable::Add(std::string_view text) noexcept {
  text = Cut(text);
  const uint32_t hash = HashBytes(text);
  if (const Entry* entry = Lookup(index_.load(std::memory_order_relaxed), text, hash)) return entry->id;
  if (bytes_ + text.size() > kMaxBytes || size_ == UINT32_MAX) return 0;
  if (size_ == ids_capacity_) {
    const uint32_t capacity = ids_capacity_ == 0 ? 256 : ids_capacity_ * 2;
    void* ids = std::realloc(static_cast<void*>(ids_), capacity * sizeof *ids_);
    if (ids == nullptr) return 0;
    ids_ = static_cast<const Entry**>(ids);
    ids_capacity_ = capacity;
  }
  if (!Grow()) return 0;
  void* memory = std::malloc(sizeof(Entry) + text.size());
  if (memory == nullptr) return 0;
  auto* entry = new (memory) Entry{size_ + 1, hash, text.size()};
  if (!text.empty()) std::memcpy(entry + 1, text.data(), text.size());
  ids_[size_++] = entry;
  bytes_ += text.size() + sizeof(Entry);
  FreeSlot(index_.load(std::memory_order_relaxed), hash).store(entry, std::memory_order_release);
  return entry->id;
}

}  // namespace rfinject
