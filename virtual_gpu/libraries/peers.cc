#include "virtual_gpu/libraries/peers.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <deque>

namespace rfinject::virtual_gpu {
namespace {

// This is longer than a job waits for its slowest rank: PyTorch itself gives up after ten minutes.
constexpr int64_t kPatienceMs = 30 * 60 * 1000;
// In this interval a rank that is not there yet is tried again, and the communicator is looked at, whether it was
// stopped.
constexpr int kLookMs = 5;

int64_t NowMs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

socklen_t Address(const std::string& id, int rank, sockaddr_un* address) {
  *address = {};
  address->sun_family = AF_UNIX;
  const std::string name = "rfinject-nccl-" + id + "-" + std::to_string(rank);
  const size_t length = std::min(name.size(), sizeof address->sun_path - 1);
  memcpy(address->sun_path + 1, name.data(), length);  // a first byte of zero: an abstract name
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

int NewSocket() { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

// Abstract addresses have no permissions: another user's process could connect to one, or take it.
bool IsOurs(int fd) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == geteuid();
}

template <typename Number>
void AppendNumber(std::string* to, Number number) {
  to->append(reinterpret_cast<const char*>(&number), sizeof number);
}

// Removes the first message from what came (its length in eight bytes, then the message) and returns it.
bool TakeMessage(std::string* half, std::string* message) {
  uint64_t length = 0;
  if (half->size() < sizeof length) return false;
  memcpy(&length, half->data(), sizeof length);
  if (half->size() - sizeof length < length) return false;
  message->assign(*half, sizeof length, length);
  half->erase(0, sizeof length + length);
  return true;
}

enum class Read { kAll, kEnd };

Read ReadWhatIsThere(int fd, std::string* to) {
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = recv(fd, buffer, sizeof buffer, 0);
    if (got > 0) {
      to->append(buffer, static_cast<size_t>(got));
    } else if (got < 0 && errno == EINTR) {
      continue;
    } else {
      return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? Read::kAll : Read::kEnd;
    }
  }
}

}  // namespace

Peers::Peers(std::string id, int rank, int ranks)
    : id_(std::move(id)), rank_(rank), to_(static_cast<size_t>(ranks)), from_(static_cast<size_t>(ranks)) {}

Peers::~Peers() {
  for (const auto* links : {&to_, &from_, &strangers_}) {
    for (const Link& link : *links) {
      if (link.fd >= 0) close(link.fd);
    }
  }
  if (listener_ >= 0) close(listener_);
}

std::string Peers::Listen() {
  sockaddr_un address;
  const socklen_t length = Address(id_, rank_, &address);
  listener_ = NewSocket();
  if (listener_ < 0 || bind(listener_, reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      listen(listener_, ranks()) != 0) {
    return std::string("no socket for rank ") + std::to_string(rank_) + ": " + strerror(errno);
  }
  return {};
}

// One call of Exchange.
class ExchangeRun {
 public:
  ExchangeRun(const std::vector<Outgoing>& outgoing, const std::vector<Awaited>& awaited) {
    for (const Outgoing& message : outgoing) {
      Out& out = FindOr(&out_, message.own, message.peer);
      AppendNumber(&out.bytes, uint64_t{message.bytes.size()});
      out.bytes += message.bytes;
    }
    for (const Awaited& message : awaited) {
      FindOr(&in_, message.own, message.peer).wanted.push_back(message.bytes);
    }
  }

  std::string Run() {
    const int64_t give_up = NowMs() + kPatienceMs;
    for (;;) {
      for (Out& out : out_) Send(&out);
      for (In& in : in_) Receive(&in);
      if (!why_.empty()) return why_;
      std::erase_if(out_, [](const Out& out) { return out.sent == out.bytes.size(); });
      std::erase_if(in_, [](const In& in) { return in.wanted.empty(); });
      if (out_.empty() && in_.empty()) return {};
      if (NowMs() > give_up) {
        const int peer = !in_.empty() ? in_[0].peer : out_[0].peer;
        return "rank " + std::to_string(peer) + " did not come; all ranks must be processes of one machine";
      }
      Wait();
    }
  }

 private:
  struct Out {
    Peers* own;
    int peer;
    std::string bytes;
    size_t sent = 0;
  };
  struct In {
    Peers* own;
    int peer;
    std::deque<std::string*> wanted;
  };

  template <typename T>
  static T& FindOr(std::vector<T>* list, Peers* own, int peer) {
    for (T& item : *list) {
      if (item.own == own && item.peer == peer) return item;
    }
    T item{};
    item.own = own;
    item.peer = peer;
    list->push_back(std::move(item));
    return list->back();
  }

  void Gone(int peer) { why_ = "rank " + std::to_string(peer) + " is gone"; }

  bool Connect(Out* out) {
    Peers::Link& link = out->own->to_[static_cast<size_t>(out->peer)];
    if (link.fd >= 0) return true;
    sockaddr_un address;
    const socklen_t length = Address(out->own->id_, out->peer, &address);
    const int fd = NewSocket();
    if (fd < 0) {
      why_ = std::string("no socket: ") + strerror(errno);
      return false;
    }
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), length) != 0 || !IsOurs(fd)) {
      close(fd);  // not there yet, or has many to talk to
      return false;
    }
    link.fd = fd;
    std::string hello;
    AppendNumber(&hello, uint32_t(out->own->rank_));
    out->bytes.insert(0, hello);
    return true;
  }

  void Send(Out* out) {
    if (out->own->stopped()) why_ = "the communicator was aborted";
    if (!why_.empty() || !Connect(out)) return;
    const int fd = out->own->to_[static_cast<size_t>(out->peer)].fd;
    while (out->sent < out->bytes.size()) {
      const ssize_t sent = send(fd, out->bytes.data() + out->sent, out->bytes.size() - out->sent, MSG_NOSIGNAL);
      if (sent > 0) {
        out->sent += static_cast<size_t>(sent);
      } else if (errno != EINTR) {
        if (errno != EAGAIN && errno != EWOULDBLOCK) Gone(out->peer);
        return;
      }
    }
  }

  // Accepts the ranks that have connected, and finds out which they are.
  static void Accept(Peers* own) {
    for (int fd = -1; (fd = accept4(own->listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;) {
      if (IsOurs(fd)) {
        own->strangers_.push_back({fd, {}});
      } else {
        close(fd);
      }
    }
    std::erase_if(own->strangers_, [own](Peers::Link& stranger) {
      const Read read = ReadWhatIsThere(stranger.fd, &stranger.half);
      uint32_t rank = 0;
      if (stranger.half.size() < sizeof rank) {
        if (read == Read::kEnd) close(stranger.fd);
        return read == Read::kEnd;
      }
      memcpy(&rank, stranger.half.data(), sizeof rank);
      stranger.half.erase(0, sizeof rank);
      if (rank >= own->from_.size() || own->from_[rank].fd >= 0) {
        close(stranger.fd);
      } else {
        own->from_[rank] = std::move(stranger);
      }
      return true;
    });
  }

  void Receive(In* in) {
    if (in->own->stopped()) why_ = "the communicator was aborted";
    if (!why_.empty()) return;
    Peers::Link& link = in->own->from_[static_cast<size_t>(in->peer)];
    if (link.fd < 0) Accept(in->own);
    if (link.fd < 0) return;
    while (!in->wanted.empty() && TakeMessage(&link.half, in->wanted.front())) in->wanted.pop_front();
    if (in->wanted.empty()) return;
    const Read read = ReadWhatIsThere(link.fd, &link.half);
    while (!in->wanted.empty() && TakeMessage(&link.half, in->wanted.front())) in->wanted.pop_front();
    if (read == Read::kEnd && !in->wanted.empty()) Gone(in->peer);
  }

  void Wait() {
    std::vector<pollfd> polled;
    for (const Out& out : out_) {
      if (const int fd = out.own->to_[static_cast<size_t>(out.peer)].fd; fd >= 0) polled.push_back({fd, POLLOUT, 0});
    }
    for (const In& in : in_) {
      const int fd = in.own->from_[static_cast<size_t>(in.peer)].fd;
      polled.push_back({fd >= 0 ? fd : in.own->listener_, POLLIN, 0});
      for (const Peers::Link& stranger : in.own->strangers_) polled.push_back({stranger.fd, POLLIN, 0});
    }
    poll(polled.data(), polled.size(), kLookMs);
  }

  std::vector<Out> out_;
  std::vector<In> in_;
  std::string why_;
};

std::string Exchange(const std::vector<Outgoing>& outgoing, const std::vector<Awaited>& awaited) {
  return ExchangeRun(outgoing, awaited).Run();
}

}  // namespace rfinject::virtual_gpu
