// File: thread_block.h
//
// Memory of a thread that is freed when the thread ends, without a thread_local destructor (those pull in dynamic
// TLS and __cxa_thread_atexit). The pointer to it lives in an initial-exec thread_local of the user.
#ifndef RFINJECT_COLLECTOR_THREAD_BLOCK_H_
#define RFINJECT_COLLECTOR_THREAD_BLOCK_H_

#include <pthread.h>

#include <new>

namespace rfinject {

// T has one static object of this class.
template <typename T>
class ThreadBlock {
 public:
  // The calling thread's T, made at its first call; nullptr when memory ran out. `slot`: the thread's own pointer.
  T* Get(T** slot) {
    if (*slot != nullptr) [[likely]] {
      return *slot;
    }
    return Make(slot);
  }

 private:
  struct Block {
    T value;
    T** slot;
  };

  [[gnu::noinline]] T* Make(T** slot) {
    pthread_once(&once_, [] { key_valid_ = pthread_key_create(&key_, Free) == 0; });
    if (!key_valid_) return nullptr;
    auto* block = new (std::nothrow) Block{.value = {}, .slot = slot};
    if (block == nullptr) return nullptr;
    if (pthread_setspecific(key_, block) != 0) {
      delete block;
      return nullptr;
    }
    *slot = &block->value;
    return *slot;
  }

  static void Free(void* value) {
    auto* block = static_cast<Block*>(value);
    *block->slot = nullptr;  // another destructor may still run an operator: it gets a new block
    delete block;
  }

  static inline pthread_once_t once_ = PTHREAD_ONCE_INIT;
  static inline pthread_key_t key_ = 0;
  static inline bool key_valid_ = false;
};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_THREAD_BLOCK_H_
