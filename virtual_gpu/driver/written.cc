#include "virtual_gpu/driver/written.h"

#include <bit>

namespace rfinject::virtual_gpu {

void WrittenPages::Mark(size_t begin, size_t bytes) {
  const size_t end = (begin + bytes - 1) / kPage + 1;
  const size_t words = (end - 1) / kWordBits + 1;
  if (words > words_.size()) words_.resize(words);
  Set(begin / kPage, end, true);
}

void WrittenPages::Forget(size_t begin, size_t bytes) {
  Set((begin + kPage - 1) / kPage, std::min((begin + bytes) / kPage, words_.size() * kWordBits), false);
}

size_t WrittenPages::Bytes() const {
  size_t pages = 0;
  for (const uint64_t word : words_) pages += static_cast<size_t>(std::popcount(word));
  return pages * kPage;
}

size_t WrittenPages::RunEnd(size_t page, bool written, size_t end) const {
  while (page < end) {
    const size_t word = page / kWordBits;
    if (word >= words_.size()) return written ? page : end;
    const uint64_t others = (written ? ~words_[word] : words_[word]) >> page % kWordBits;
    if (others != 0) return std::min(end, page + static_cast<size_t>(std::countr_zero(others)));
    page = (word + 1) * kWordBits;
  }
  return end;
}

void WrittenPages::Set(size_t first, size_t end, bool written) {
  while (first < end) {
    const size_t bit = first % kWordBits;
    const size_t count = std::min(end - first, kWordBits - bit);
    const uint64_t bits = ~uint64_t{0} >> (kWordBits - count) << bit;
    uint64_t& word = words_[first / kWordBits];
    word = written ? word | bits : word & ~bits;
    first += count;
  }
}

}  // namespace rfinject::virtual_gpu
