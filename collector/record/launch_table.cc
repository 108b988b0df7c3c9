#include "collector/record/launch_table.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "collector/hash.h"

namespace rfinject {

template <typename T>
T* LaunchTable::Blocks<T>::Append() noexcept {
  if (size == block_count * kBlock) {
    auto** grown = static_cast<T**>(std::realloc(static_cast<void*>(blocks), (block_count + 1) * sizeof(T*)));
    if (grown == nullptr) return nullptr;
    blocks = grown;
    auto* block = static_cast<T*>(std::malloc(kBlock * sizeof(T)));
    if (block == nullptr) return nullptr;
    blocks[block_count++] = block;
  }
  T* element = new (&(*this)[size]) T;
  ++size;
  return element;
}

uint64_t HashOf(const LaunchIdentity& id) noexcept {
  auto pair = [](uint32_t high, uint32_t low) { return uint64_t{high} << 32 | low; };
  uint64_t hash = HashMix(0x13198A2E03707344u, pair(id.kernel, id.signature));
  hash = HashMix(hash, pair(id.site.layer, id.site.op));
  hash = HashMix(hash, pair(id.site.node, static_cast<uint32_t>(id.site.phase)));
  hash = HashMix(hash, pair(id.grid[0], id.grid[1]));
  hash = HashMix(hash, pair(id.grid[2], id.block[0]));
  hash = HashMix(hash, pair(id.block[1], id.block[2]));
  return HashMix(hash, pair(id.dynamic_shared_bytes, id.device));
}

bool LaunchTable::GrowSlots() noexcept {
  if (uint64_t{keys_.size} * 3 < uint64_t{slot_count_} * 2) return true;
  const uint32_t count = slot_count_ == 0 ? 1024 : slot_count_ * 2;
  auto* slots = static_cast<uint32_t*>(std::calloc(count, sizeof(uint32_t)));
  if (slots == nullptr) return false;
  for (uint32_t k = first_; k < keys_.size; ++k) {
    uint64_t i = HashOf(keys_[k].identity) & (count - 1);
    while (slots[i] != 0) i = (i + 1) & (count - 1);
    slots[i] = k + 1;
  }
  std::free(slots_);
  slots_ = slots;
  slot_count_ = count;
  return true;
}

LaunchTable::Key* LaunchTable::FindOrMake(const LaunchIdentity& identity, uint32_t limit, uint32_t* index,
                                          AddResult* why) noexcept {
  *why = AddResult::kOutOfMemory;
  if (!GrowSlots()) return nullptr;
  uint64_t i = HashOf(identity) & (slot_count_ - 1);
  for (; slots_[i] != 0; i = (i + 1) & (slot_count_ - 1)) {
    if (keys_[slots_[i] - 1].identity == identity) {
      *index = slots_[i] - 1;
      return &keys_[*index];
    }
  }
  if (keys_.size >= limit) {
    *why = AddResult::kTooMany;
    return nullptr;
  }
  Key* key = keys_.Append();
  if (key == nullptr) return nullptr;
  key->identity = identity;
  *index = keys_.size - 1;
  slots_[i] = keys_.size;
  return key;
}

uint32_t LaunchTable::NumberOf(const LaunchIdentity& identity) noexcept {
  uint32_t index = 0;
  AddResult why = AddResult::kOk;
  const Key* key = FindOrMake(identity, 0, &index, &why);
  return key != nullptr && key->defined ? index + 1 : 0;
}

LaunchTable::Key* LaunchTable::ChangedKey(const LaunchIdentity& identity, uint32_t* index, AddResult* why) noexcept {
  Key* key = FindOrMake(identity, kMaxKeys, index, why);
  AddResult result = AddResult::kOk;
  if (key == nullptr && *why == AddResult::kTooMany) {
    LaunchIdentity coarse;
    coarse.kernel = identity.kernel;
    coarse.site = identity.site;
    coarse.device = identity.device;
    key = FindOrMake(coarse, 2 * kMaxKeys, index, why);
    result = AddResult::kCoarsened;
  }
  if (key == nullptr) return nullptr;
  *why = result;
  if (key->next_changed == 0) {
    key->next_changed = changed_;
    changed_ = *index + 1;
  }
  return key;
}

MetricSum* LaunchTable::SumOf(Key* key, uint32_t metric) noexcept {
  uint32_t* link = &key->first_metric;
  while (*link != 0 && sums_[*link - 1].metric != metric) link = &sums_[*link - 1].next;
  if (*link == 0) {
    MetricSum* sum = sums_.Append();
    if (sum == nullptr) return nullptr;
    sum->metric = metric;
    *link = sums_.size;  // blocks never move, so the link is still where it was
  }
  return &sums_[*link - 1];
}

LaunchTable::AddResult LaunchTable::Add(const LaunchRecord& record, uint32_t* id) noexcept {
  if (id != nullptr) *id = 0;
  uint32_t index = 0;
  AddResult result = AddResult::kOk;
  Key* key = ChangedKey(record.identity, &index, &result);
  if (key == nullptr) return result;
  key->launches += record.launches;
  if (id != nullptr) *id = index + 1;
  if (IsLikeLast(record, *key)) {
    ++key->alike;
    return result;
  }
  AddAlike(key);
  key->last_count = 0;
  const uint32_t count = std::min<uint32_t>(record.sample_count, kMaxSamplesPerRecord);
  for (uint32_t s = 0; s < count; ++s) {
    MetricSum* sum = SumOf(key, record.samples[s].metric);
    if (sum == nullptr) {
      if (id != nullptr) *id = 0;
      return AddResult::kOutOfMemory;
    }
    sum->Add(record.samples[s].value);
    key->last[s] = record.samples[s];
  }
  key->last_count = static_cast<uint8_t>(count);
  return result;
}

bool LaunchTable::IsLikeLast(const LaunchRecord& record, const Key& key) noexcept {
  if (record.sample_count != key.last_count) return false;
  for (uint32_t s = 0; s < key.last_count; ++s) {
    if (record.samples[s].metric != key.last[s].metric || record.samples[s].value != key.last[s].value) return false;
  }
  return true;
}

void LaunchTable::AddAlike(Key* key) noexcept {
  if (key->alike == 0) return;
  for (uint32_t s = 0; s < key->last_count; ++s) {
    SumOf(key, key->last[s].metric)->Add(key->last[s].value, key->alike);
  }
  key->alike = 0;
}

LaunchTable::~LaunchTable() {
  std::free(slots_);
  // Keys and sums hold no memory of their own.
  for (uint32_t i = 0; i < keys_.block_count; ++i) std::free(keys_.blocks[i]);
  for (uint32_t i = 0; i < sums_.block_count; ++i) std::free(sums_.blocks[i]);
  std::free(static_cast<void*>(keys_.blocks));
  std::free(static_cast<void*>(sums_.blocks));
}

void LaunchTable::BeginAnew() noexcept {
  std::free(slots_);
  slots_ = nullptr;
  slot_count_ = 0;
  first_ = keys_.size;
}

}  // namespace rfinject
