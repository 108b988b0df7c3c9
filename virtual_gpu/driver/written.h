// File: written.h
//
// Which pages of a block of memory were written to since they were zeros.
#ifndef RFINJECT_VIRTUAL_GPU_DRIVER_WRITTEN_H_
#define RFINJECT_VIRTUAL_GPU_DRIVER_WRITTEN_H_

#include <stddef.h>
#include <stdint.h>

#include <algorithm>
#include <vector>

namespace rfinject::virtual_gpu {

// Ranges are of bytes from the block's begin, and are not empty. A page that was never named is not written.
class WrittenPages {
 public:
  static constexpr size_t kPage = 4096;

  // Notes that every page which the range touches is written.
  void Mark(size_t begin, size_t bytes);
  // Notes that the pages which lie wholly within the range are zeros.
  void Forget(size_t begin, size_t bytes);
  // How many bytes the written pages have.
  size_t Bytes() const;
  // Calls `visit(begin, bytes, written)` for the parts of the range, in order: each is as long as can be.
  template <typename Visit>
  void ForParts(size_t begin, size_t bytes, const Visit& visit) const {
    const size_t end = begin + bytes;
    while (begin < end) {
      const bool written = Has(begin / kPage);
      const size_t last = std::min(end, RunEnd(begin / kPage, written, (end - 1) / kPage + 1) * kPage);
      visit(begin, last - begin, written);
      begin = last;
    }
  }

 private:
  static constexpr size_t kWordBits = 64;

  bool Has(size_t page) const {
    return page / kWordBits < words_.size() && (words_[page / kWordBits] >> page % kWordBits & 1) != 0;
  }
  // The first page from `page` on that is not as it is said to be; `end` where all before that are.
  size_t RunEnd(size_t page, bool written, size_t end) const;
  void Set(size_t first, size_t end, bool written);

  std::vector<uint64_t> words_;  // a bit a page, up to the last that was ever written
};

}  // namespace rfinject::virtual_gpu

#endif  // RFINJECT_VIRTUAL_GPU_DRIVER_WRITTEN_H_
