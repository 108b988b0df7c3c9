// File: trace_file.h
//
// TraceFile is one file that whole frames are appended to, each by one write(2). The first failure closes it for
// good.
//
// Its descriptor is kept far above those that programs get. Where the program may not have that many (RLIMIT_NOFILE),
// none is kept: the file is opened for each frame, about once a second, so that the program can use all of its few
// descriptors.
#ifndef RFINJECT_COLLECTOR_RECORD_TRACE_FILE_H_
#define RFINJECT_COLLECTOR_RECORD_TRACE_FILE_H_

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace rfinject {

class TraceFile {
 public:
  TraceFile() = default;
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  // Makes the file (output_path.h) that `pattern` names and writes the file header. On failure returns false, with
  // the reason in `*error`.
  bool Open(const std::string& pattern, std::string* error);
  // Takes over a descriptor, which need not be a file's. For tests.
  bool Adopt(int fd, std::string* error);

  bool is_open() const noexcept { return open_.load(std::memory_order_acquire); }
  const std::string& path() const noexcept { return path_; }
  uint64_t size() const noexcept { return size_; }

  // Whether writing may wait for another machine or process: the file is on a file system of a network or of FUSE, or
  // on one that we do not know.
  bool MayHang() const noexcept { return may_hang_; }

  // Appends a frame. `frame` begins with wire::kFrameHeaderSize bytes that are filled in here; the payload follows.
  // On failure the file is cut back to its last whole frame and closed; `*error` (a clause) says why.
  bool WriteFrame(uint8_t* frame, size_t size, std::string* error);

  void Close() noexcept;

  // For a forked child: closes the descriptor and touches nothing else, because the object may have been in use by a
  // thread that does not exist in the child.
  void CloseInForkedChild() const noexcept;

 private:
  bool Begin(int fd, std::string* error);
  // Whether fd_ is still the file that we opened: programs close descriptors that they do not know (daemons close
  // all), and the number may be somebody else's file by now.
  bool IsStillOurs(int fd) const noexcept;
  bool Write(const void* data, size_t size, std::string* error);
  // Lets go of the descriptor, if the file can be found again by its name.
  void KeepNoDescriptor() noexcept;

  std::atomic<bool> open_{false};
  std::atomic<int> fd_{-1};  // set after device_ and inode_; -1 while it is open and no descriptor is kept
  bool may_hang_ = true;
  std::string reopen_;  // absolute path; empty: the descriptor is kept
  dev_t device_ = 0;
  ino_t inode_ = 0;
  uint32_t sequence_ = 0;
  uint64_t size_ = 0;  // bytes in whole frames
  std::string path_;
};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_RECORD_TRACE_FILE_H_
