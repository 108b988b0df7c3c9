// File: peers.h
//
// Peers are the ranks of one communicator, in one process or in several of one machine, with messages between them.
// Each rank listens at an abstract Unix address (which leaves no file behind) made of the communicator's id; whoever
// has something for it connects.
//
//   Peers own("1f…", /*rank=*/0, /*ranks=*/2);
//   if (const std::string why = own.Listen(); !why.empty()) …
//   std::vector<Outgoing> out = {{&own, 1, "hello"}};
//   std::vector<Awaited> in = {{&own, 1, &answer}};
//   const std::string why = Exchange(out, in);
#ifndef RFINJECT_VIRTUAL_GPU_LIBRARIES_PEERS_H_
#define RFINJECT_VIRTUAL_GPU_LIBRARIES_PEERS_H_

#include <stddef.h>

#include <atomic>
#include <string>
#include <vector>

namespace rfinject::virtual_gpu {

class Peers {
 public:
  // `id` is the same text for all ranks of a communicator and for no other, at most 64 characters.
  Peers(std::string id, int rank, int ranks);
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return static_cast<int>(to_.size()); }
  const std::string& id() const { return id_; }

  // Lets others connect from now on. Returns an empty text, or why they cannot.
  std::string Listen();

  // Ends an Exchange that waits for these peers with an error. Any thread may call this.
  void Stop() { stopped_.store(true, std::memory_order_release); }

 private:
  friend class ExchangeRun;
  struct Link {
    int fd = -1;
    std::string half;  // what came of a message that is not whole yet
  };
  bool stopped() const { return stopped_.load(std::memory_order_acquire); }

  std::string id_;
  int rank_;
  int listener_ = -1;
  std::vector<Link> to_, from_;  // by rank
  std::vector<Link> strangers_;  // connected, and have not said which rank they are
  std::atomic<bool> stopped_{false};
};

struct Outgoing {
  Peers* own;
  int peer;
  std::string bytes;
};
struct Awaited {
  Peers* own;
  int peer;
  std::string* bytes;  // what came
};

// Sends and receives until everything has gone and come. Messages between two ranks arrive in the order in which they
// were sent. Waits for ranks that are late, at most half an hour. Returns an empty string, or why not: a sentence
// that names the rank.
std::string Exchange(const std::vector<Outgoing>& outgoing, const std::vector<Awaited>& awaited);

}  // namespace rfinject::virtual_gpu

#endif  // RFINJECT_VIRTUAL_GPU_LIBRARIES_PEERS_H_
