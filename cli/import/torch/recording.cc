#include "cli/import/torch/recording.h"

#include <rapidjson/reader.h>

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "cli/import/torch/dialect.h"
#include "cli/import/torch/recording_builder.h"
#include "cli/import/torch/words.h"

namespace rfinject::cli {

namespace {

// One text or number longer than this is no profiler's.
constexpr uint64_t kLongestToken = 16u << 20;
// What is kept of one event's operands or of the list of GPUs; a list of a thousand tensors takes 20 KB.
constexpr size_t kLongestCapture = 1u << 20;

// RapidJSON's input: bytes from the recording, with what JSON forbids in texts, and profilers write, made a blank.
// Ends early at a token that is too long, so that memory is bounded. From a mark on, an event's beginning, bytes are
// kept, so that the reading can go on behind an event that is not JSON.
class CleanStream {
 public:
  using Ch = char;
  explicit CleanStream(ByteStream& bytes) : bytes_(bytes) {
    Fill();
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (std::string_view(buffer_.data(), end_).starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
  }

  Ch Peek() const { return at_ < end_ ? buffer_[at_] : '\0'; }
  Ch Take() {
    if (at_ == end_) return '\0';
    const char c = buffer_[at_++];
    if (at_ == end_) Fill();
    return c;
  }
  size_t Tell() const { return static_cast<size_t>(offset_ + static_cast<int64_t>(at_)); }
  // RapidJSON asks for these of streams that are parsed in place, which this is not.
  Ch* PutBegin() { return nullptr; }
  void Put(Ch /*c*/) {}
  void Flush() {}
  size_t PutEnd(Ch* /*begin*/) { return 0; }

  void EndOfToken() { token_ = Tell(); }
  bool token_too_long() const { return too_long_; }
  bool at_end() const { return at_ == end_; }

  void Mark() { mark_ = static_cast<int64_t>(Tell()); }
  bool marked() const { return mark_ != kNoMark; }
  size_t mark() const { return static_cast<size_t>(mark_); }

  // Goes from the mark to the next place behind it where an event begins, an object whose first key is one of an
  // event, and lets `prefix` come before it. False where there is none.
  bool GoToNextEvent(std::string_view prefix) {
    at_ = static_cast<size_t>(mark_ + 1 - offset_);
    if (at_ >= end_) Fill();
    mark_ = kNoMark;
    for (char before = '{'; !at_end();) {
      EndOfToken();
      const char c = Peek();
      if (c == '{' && before != ':') {
        Mark();
        const bool begins = BeginsEvent();
        at_ = static_cast<size_t>(mark_ - offset_);
        if (begins) {
          buffer_.insert(at_, prefix);
          end_ += prefix.size();
          offset_ -= static_cast<int64_t>(prefix.size());
          mark_ = kNoMark;
          return true;
        }
        mark_ = kNoMark;
      }
      if (c != ' ') before = c;
      Take();
    }
    return false;
  }

 private:
  static constexpr size_t kBuffer = 64u << 10;
  static constexpr int64_t kNoMark = -1;

  void SkipBlanks() {
    while (Peek() == ' ' && !at_end()) Take();
  }
  // Whether what follows is a brace, a key of an event, and a colon.
  bool BeginsEvent() {
    constexpr size_t kLongestKey = 8;
    Take();
    SkipBlanks();
    if (Take() != '"') return false;
    std::string key;
    for (char c = Take(); c != '"'; c = Take()) {
      if (at_end() || key.size() == kLongestKey) return false;
      key += c;
    }
    SkipBlanks();
    return EventField(key) != nullptr && Peek() == ':';
  }

  // Reads on; what lies behind the mark stays.
  void Fill() {
    const bool keeps = mark_ != kNoMark && mark_ >= offset_ && mark_ < offset_ + static_cast<int64_t>(end_);
    const size_t first = keeps ? static_cast<size_t>(mark_ - offset_) : end_;
    const size_t kept = end_ - first, read_to = at_ - first;
    if (kept > 0)
      std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(first),
                buffer_.begin() + static_cast<std::ptrdiff_t>(end_), buffer_.begin());
    offset_ += static_cast<int64_t>(first);
    at_ = read_to;
    end_ = kept;
    if (Tell() - std::min<size_t>(Tell(), token_) > kLongestToken || kept > 2 * kLongestToken) {
      too_long_ = true;
      at_ = end_;
      return;
    }
    if (buffer_.size() < kept + kBuffer) buffer_.resize(kept + kBuffer);
    end_ += bytes_.Read(buffer_.data() + kept, kBuffer);
    constexpr unsigned char kFirstPrintable = 0x20;
    for (size_t i = kept; i < end_; ++i) {
      if (static_cast<unsigned char>(buffer_[i]) < kFirstPrintable) buffer_[i] = ' ';
    }
  }

  ByteStream& bytes_;
  std::string buffer_;
  size_t at_ = 0, end_ = 0;
  int64_t offset_ = 0;  // in the file, of the buffer's first byte
  int64_t mark_ = kNoMark;
  uint64_t token_ = 0;
  bool too_long_ = false;
};

// RapidJSON's events. Depth 1 is the file's object, 2 its list of events, 3 an event, 4 its arguments; a file that is
// only the list begins at depth 2.
class Handler : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Handler> {
 public:
  Handler(CleanStream* stream, TorchRecording* recording, uint64_t most_events)
      : stream_(*stream), recording_(*recording), builder_(recording, most_events) {}

  // Begins anew, with what was read kept.
  void Restart() {
    depth_ = 0;
    capture_ = nullptr;
    field_ = nullptr;
    in_events_ = in_arguments_ = false;
    fresh_ = true;
    member_.clear();
    metric_.clear();
    event_.Clear();
  }

  bool found_events() const { return found_events_; }
  bool full() const { return full_; }

  // RapidJSON calls these, of this class.
  // NOLINTBEGIN(bugprone-derived-method-shadowing-base-method)
  bool Null() { return Scalar("", false); }
  bool Bool(bool value) { return Scalar(value ? "true" : "false", false); }
  bool RawNumber(const char* text, rapidjson::SizeType size, bool /*copy*/) { return Scalar({text, size}, false); }
  bool String(const char* text, rapidjson::SizeType size, bool /*copy*/) { return Scalar({text, size}, true); }
  bool Key(const char* text, rapidjson::SizeType size, bool /*copy*/) {
    stream_.EndOfToken();
    const std::string_view key(text, size);
    if (capture_ != nullptr) {
      Separate();
      AppendText(key);
      Append(":");
      fresh_ = true;
    } else if (depth_ == 1) {
      member_.assign(key);
    } else if (depth_ == 3 && in_events_) {
      field_ = EventField(key);
    } else if (depth_ == 4 && in_arguments_) {
      field_ = ArgumentField(key);
      // The only value of a sample has no name.
      const TorchKind kind = field_ == nullptr ? KindOf(event_) : TorchKind::kOther;
      if (kind == TorchKind::kCounters) metric_.assign(key);
      if (kind == TorchKind::kSamples) metric_.assign("value");
    }
    return true;
  }
  bool StartObject() { return Start('{'); }
  bool StartArray() { return Start('['); }
  bool EndObject(rapidjson::SizeType /*count*/) { return End('}'); }
  bool EndArray(rapidjson::SizeType /*count*/) { return End(']'); }
  // NOLINTEND(bugprone-derived-method-shadowing-base-method)

 private:
  bool Start(char bracket) {
    stream_.EndOfToken();
    if (depth_ == 0 && bracket == '[') {
      depth_ = 1;  // as if it were the member of an object
      member_ = kEventsMember;
    }
    ++depth_;
    if (capture_ == nullptr) {
      if (depth_ == 2 && member_ == kEventsMember && bracket == '[') {
        stream_.Mark();
        in_events_ = found_events_ = true;
      } else if (depth_ == 2 && member_ == kDevicesMember) {
        Capture(&devices_);
      } else if (depth_ == 2 && member_ == kJobMember) {
        Capture(&distributed_);
      } else if (in_events_ && depth_ == 3 && bracket == '{') {
        stream_.Mark();
        event_.Clear();
        field_ = nullptr;
      } else if (in_events_ && depth_ == 4 && field_ != nullptr && field_->key == "args" && bracket == '{') {
        in_arguments_ = true;
        field_ = nullptr;
      } else if (in_arguments_ && depth_ == 5) {
        Capture(ListOfField());
      }
    }
    if (capture_ != nullptr) {
      Separate();
      Append({&bracket, 1});
      fresh_ = true;
    }
    return true;
  }

  bool End(char bracket) {
    stream_.EndOfToken();
    if (capture_ != nullptr) {
      Append({&bracket, 1});
      fresh_ = false;
      if (depth_ == capture_depth_) {
        if (capture_ == &devices_) ReadDeviceProperties(devices_, &recording_.devices);
        if (capture_ == &distributed_) ReadDistributedInfo(distributed_, &recording_.rank, &recording_.world_size);
        capture_ = nullptr;
      }
    } else if (in_arguments_ && depth_ == 4) {
      in_arguments_ = false;
      field_ = nullptr;
    } else if (in_events_ && depth_ == 3) {
      full_ = builder_.full();
      if (full_) return false;
      const uint64_t without_time = recording_.without_time;
      builder_.Add(event_);
      if (without_time == 0 && recording_.without_time > 0) recording_.without_time_at = stream_.Tell();
    } else if (in_events_ && depth_ == 2) {
      in_events_ = false;
    }
    --depth_;
    return true;
  }

  bool Scalar(std::string_view text, bool quoted) {
    stream_.EndOfToken();
    if (capture_ != nullptr) {
      Separate();
      if (quoted) {
        AppendText(text);
      } else {
        Append(text.empty() ? "null" : text);
      }
      return true;
    }
    if (depth_ == 1 && member_ == kClockStartMember) {
      recording_.base_unix_ns = static_cast<int64_t>(std::min<uint64_t>(Unsigned(text), INT64_MAX));
    }
    if (!in_events_) return true;
    if (depth_ == 3 && field_ != nullptr) SetField(*field_, text, &event_);
    if (depth_ == 4 && in_arguments_) TakeOfArguments(text, quoted);
    return true;
  }

  // The member of the event that the field's list goes to; null where it has none.
  std::string* ListOfField() {
    if (field_ == nullptr) return nullptr;
    const auto* member = std::get_if<std::string TorchEvent::*>(&field_->member);
    return member != nullptr ? &(event_.**member) : nullptr;
  }

  void TakeOfArguments(std::string_view text, bool quoted) {
    double value = 0;
    if (field_ != nullptr) {
      const auto* const member = std::get_if<std::string TorchEvent::*>(&field_->member);
      if (member == nullptr || IsName(*member)) SetField(*field_, text, &event_);
    } else if (!quoted && !metric_.empty() && event_.metrics.size() < kMostMetrics && ParseNumber(text, &value)) {
      event_.metrics.emplace_back(recording_.texts.NumberOf(metric_), value);
    }
    metric_.clear();
  }

  void Capture(std::string* into) {
    capture_ = into;
    if (into == nullptr) return;
    into->clear();
    capture_depth_ = depth_;
    fresh_ = true;
  }
  void Separate() {
    if (!fresh_) Append(",");
    fresh_ = false;
  }
  void Append(std::string_view text) {
    if (capture_->size() + text.size() <= kLongestCapture) capture_->append(text);
  }
  // Quotes and backslashes of a text have no meaning where it goes.
  void AppendText(std::string_view text) {
    std::string clean(text);
    std::replace_if(
        clean.begin(), clean.end(), [](char c) { return c == '"' || c == '\\' || c == '\n'; }, '_');
    Append(absl::StrCat("\"", clean, "\""));
  }

  static constexpr size_t kMostMetrics = 1024;
  CleanStream& stream_;
  TorchRecording& recording_;
  RecordingBuilder builder_;
  TorchEvent event_;
  std::string member_, metric_, devices_, distributed_;
  std::string* capture_ = nullptr;
  uint64_t depth_ = 0, capture_depth_ = 0;
  const TorchField* field_ = nullptr;  // of the key that was read last
  bool in_events_ = false, in_arguments_ = false, found_events_ = false, fresh_ = true, full_ = false;
};

}  // namespace

absl::StatusOr<TorchRecording> ReadTorchRecording(ByteStream& bytes, uint64_t most_events) {
  TorchRecording recording;
  CleanStream stream(bytes);
  Handler handler(&stream, &recording, most_events);
  rapidjson::Reader reader;
  constexpr unsigned kFlags =
      rapidjson::kParseIterativeFlag | rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseNanAndInfFlag;
  bool whole = static_cast<bool>(reader.Parse<kFlags>(stream, handler));
  std::string at = absl::StrCat("byte ", reader.GetErrorOffset());
  // An event that is not JSON is left out, and what follows it is as if it were another file's.
  while (!whole && !handler.full() && !stream.at_end() && !stream.token_too_long() && stream.marked()) {
    if (recording.damage.events++ == 0) recording.damage.first_at = stream.mark();
    handler.Restart();
    whole = !stream.GoToNextEvent(R"({"traceEvents":[)") && !stream.token_too_long();
    if (!whole && !stream.token_too_long()) whole = static_cast<bool>(reader.Parse<kFlags>(stream, handler));
  }
  if (stream.token_too_long()) {
    return absl::InvalidArgumentError(absl::StrCat(at, ": a text is longer than 16 MiB"));
  }
  if (!bytes.status().ok() && !bytes.cut()) {
    return absl::Status(bytes.status().code(), absl::StrCat("byte ", stream.Tell(), ": ", bytes.status().message()));
  }
  if (handler.full()) {
    recording.cut = absl::StrCat("byte ", stream.Tell(), ": more events than fit in memory, ", recording.events);
  } else if (!whole) {
    if (!stream.at_end()) return absl::InvalidArgumentError(absl::StrCat(at, ": this is not JSON"));
    if (recording.events == 0)
      return absl::InvalidArgumentError(absl::StrCat(at, ": the file ends before any event"));
    recording.cut = absl::StrCat("byte ", stream.Tell(), ": the file ends inside of the list of events");
  }
  const uint64_t kept = recording.all_spans.size() + recording.all_calls.size() + recording.all_activities.size();
  if (recording.damage.events > 0 && kept + recording.counters.size() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(at, ": this is not JSON"));
  }
  if (!handler.found_events())
    return absl::InvalidArgumentError("JSON without traceEvents: no recording of torch.profiler");
  return recording;
}

}  // namespace rfinject::cli
