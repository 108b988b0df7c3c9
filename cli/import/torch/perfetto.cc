#include "cli/import/torch/perfetto.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "cli/export/perfetto.pb.h"
#include "cli/import/torch/recording_builder.h"
#include "cli/import/torch/words.h"

namespace rfinject::cli {
namespace {

using perfetto::DebugAnnotation;
using perfetto::GpuRenderStageEvent;
using perfetto::InternedText;
using perfetto::TrackEvent;

constexpr uint64_t kLongestPacket = 16u << 20;
constexpr char kPacketTag = 0x0A;  // field 1 of Trace, with a length

// A number of protobuf's wire format at the text's front, which it is removed from; false where there is none.
bool TakeVarint(std::string_view* text, uint64_t* value) {
  *value = 0;
  constexpr unsigned kBits = 64, kOfByte = 7;
  for (unsigned shift = 0; shift < kBits && !text->empty(); shift += kOfByte) {
    const auto byte = static_cast<uint8_t>(text->front());
    text->remove_prefix(1);
    *value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// Takes the packets out of the file.
class PacketReader {
 public:
  explicit PacketReader(ByteStream& bytes) : bytes_(bytes) {}

  // The next packet, which stays until the next call; false at the end and at what is no packet.
  bool Next(std::string_view* packet) {
    constexpr size_t kLongestHeader = 11;
    Need(kLongestHeader);
    std::string_view rest = Rest();
    uint64_t size = 0;
    if (rest.empty() || rest.front() != kPacketTag) return false;
    rest.remove_prefix(1);
    if (!TakeVarint(&rest, &size) || size > kLongestPacket) return false;
    const size_t header = Rest().size() - rest.size();
    Need(header + size);
    if (Rest().size() < header + size) return false;
    at_ += header;
    *packet = Rest().substr(0, size);
    at_ += size;
    return true;
  }
  uint64_t offset() const { return passed_ + at_; }
  bool at_end() const { return at_ == buffer_.size(); }

 private:
  std::string_view Rest() const { return std::string_view(buffer_).substr(at_); }
  // Reads until so many bytes are there, or no more.
  void Need(size_t size) {
    constexpr size_t kBlock = 256u << 10;
    if (buffer_.size() - at_ >= size) return;
    passed_ += at_;
    buffer_.erase(0, std::exchange(at_, 0));
    while (buffer_.size() < size) {
      const size_t before = buffer_.size();
      buffer_.resize(before + kBlock);
      const size_t got = bytes_.Read(buffer_.data() + before, kBlock);
      buffer_.resize(before + got);
      if (got == 0) return;
    }
  }

  ByteStream& bytes_;
  std::string buffer_;
  size_t at_ = 0;
  uint64_t passed_ = 0;  // bytes before the buffer
};

// Texts by their numbers.
class Texts {
 public:
  template <typename List>
  void Add(const List& list, bool demangled = false) {
    for (const InternedText& text : list)
      texts_[text.iid()] = demangled && !text.demangled_name().empty() ? text.demangled_name() : text.name();
  }
  const std::string& operator[](uint64_t number) const {
    static const auto* const kNone = new std::string();
    const auto found = texts_.find(number);
    return found == texts_.end() ? *kNone : found->second;
  }

 private:
  absl::flat_hash_map<uint64_t, std::string> texts_;
};

class TraceReader {
 public:
  TraceReader(TorchRecording* recording, uint64_t most_events)
      : recording_(*recording), builder_(recording, most_events) {}

  bool full() const { return builder_.full(); }

  void Add(const perfetto::TracePacket& packet) {
    if (packet.has_interned_data()) AddTexts(packet.interned_data());
    if (packet.has_track_descriptor()) {
      const perfetto::TrackDescriptor& track = packet.track_descriptor();
      if (track.has_thread()) threads_[track.uuid()] = {track.thread().pid(), track.thread().tid()};
    }
    const auto at = static_cast<int64_t>(std::min<uint64_t>(packet.timestamp(), INT64_MAX));
    if (packet.has_track_event()) {
      const TrackEvent& event = packet.track_event();
      if (event.type() == TrackEvent::SLICE_BEGIN) {
        if (!ends_.empty()) CloseSlices();
        Begin(event, at);
      } else if (event.type() == TrackEvent::SLICE_END) {
        ends_.emplace_back(event.track_uuid(), at);
      }
    }
    if (packet.has_gpu_render_stage_event()) AddStage(packet.gpu_render_stage_event(), at);
  }

  void Finish() {
    CloseSlices();
    // A version of the profiler wrote what the GPU did in both ways.
    if (has_stages_) return;
    for (const TorchActivity& activity : slices_of_gpu_) builder_.AddActivity(activity);
  }

 private:
  // A slice whose end has not come.
  struct Slice {
    uint64_t track = 0;
    TorchKind kind{};
    TorchSpan span;
    TorchActivity activity;
  };

  void AddTexts(const perfetto::InternedData& data) {
    categories_.Add(data.event_categories());
    names_.Add(data.event_names());
    keys_.Add(data.debug_annotation_names());
    specifications_.Add(data.gpu_specifications());
    values_.Add(data.debug_annotation_string_values());
    kernels_.Add(data.compute_kernels(), true);
  }

  std::string ScalarOf(const DebugAnnotation& value) const {
    switch (value.value_case()) {
      case DebugAnnotation::kBoolValue:
        return value.bool_value() ? "true" : "false";
      case DebugAnnotation::kUintValue:
        return absl::StrCat(value.uint_value());
      case DebugAnnotation::kIntValue:
        return absl::StrCat(value.int_value());
      case DebugAnnotation::kDoubleValue:
        return absl::StrCat(value.double_value());
      case DebugAnnotation::kStringValue:
        return value.string_value();
      case DebugAnnotation::kStringValueIid:
        return values_[value.string_value_iid()];
      case DebugAnnotation::VALUE_NOT_SET:
        break;
    }
    return {};
  }

  // The value as the reader of JSON has lists: compact, texts without quotes and backslashes of their own. What has
  // neither a value nor elements is an empty list.
  void AppendJson(const DebugAnnotation& value, int depth, std::string* json) const {
    constexpr int kDeepest = 8;
    constexpr size_t kLongest = 1u << 20;
    if (json->size() > kLongest) return;
    const auto kind = value.value_case();
    if (kind == DebugAnnotation::kStringValue || kind == DebugAnnotation::kStringValueIid) {
      std::string text = ScalarOf(value);
      std::replace_if(
          text.begin(), text.end(), [](char c) { return c == '"' || c == '\\' || c == '\n'; }, '_');
      absl::StrAppend(json, "\"", text, "\"");
    } else if (kind != DebugAnnotation::VALUE_NOT_SET) {
      absl::StrAppend(json, ScalarOf(value));
    } else {
      json->push_back('[');
      for (int i = 0; i < value.array_values_size() && depth < kDeepest; ++i) {
        if (i > 0) json->push_back(',');
        AppendJson(value.array_values(i), depth + 1, json);
      }
      json->push_back(']');
    }
  }

  // Sets the member of torch.profiler's event that an argument of this name is.
  void SetArgument(std::string_view key, const DebugAnnotation& value) {
    const TorchField* const field = ArgumentField(key);
    if (field == nullptr) return;
    const auto* const list = std::get_if<std::string TorchEvent::*>(&field->member);
    if (list == nullptr || IsName(*list)) {
      SetField(*field, ScalarOf(value), &event_);
    } else {
      (event_.**list).clear();
      AppendJson(value, 0, &(event_.**list));
    }
  }

  void Begin(const TrackEvent& event, int64_t at) {
    ++recording_.events;
    event_.Clear();
    event_.phase = "X";
    event_.start = at;
    event_.name = event.name_iid() != 0 ? names_[event.name_iid()] : event.name();
    if (event.category_iids_size() > 0) event_.category = categories_[event.category_iids(0)];
    if (event.categories_size() > 0) event_.category = event.categories(0);
    bool of_call = false, of_python = false, of_stream = false, of_wait = false;
    for (const DebugAnnotation& argument : event.debug_annotations()) {
      const std::string& key = argument.name_iid() != 0 ? keys_[argument.name_iid()] : argument.name();
      SetArgument(key, argument);
      of_call = of_call || key == "cbid";
      of_python = of_python || key == "Python id";
      of_stream = of_stream || key == "stream";
      of_wait = of_wait || key == "cuda_sync_kind";
    }
    if (event_.category.empty()) {
      event_.category = of_wait     ? "cuda_sync"
                        : of_call   ? "cuda_runtime"
                        : of_stream ? CategoryOfWork(event_.name)
                        : of_python ? "python_function"
                                    : CategoryOfSpan(event_);
    }
    if (const auto thread = threads_.find(event.track_uuid()); thread != threads_.end()) {
      event_.process = absl::StrCat(thread->second.first);
      event_.thread = absl::StrCat(thread->second.second);
    } else {
      event_.thread = absl::StrCat(event.track_uuid());
    }
    Slice slice{.track = event.track_uuid(), .kind = KindOf(event_), .span = {}, .activity = {}};
    if (slice.kind <= TorchKind::kCall) slice.span = builder_.SpanOf(event_, slice.kind);
    const bool of_gpu = slice.kind > TorchKind::kCall && slice.kind <= TorchKind::kSet;
    if (of_gpu) slice.activity = builder_.ActivityOf(event_, slice.kind);
    open_[slice.track].push_back(slice);
    last_begin_ = std::max(last_begin_, at);
  }

  static const char* CategoryOfWork(std::string_view name) {
    return name.starts_with("Memcpy") ? "gpu_memcpy" : name.starts_with("Memset") ? "gpu_memset" : "kernel";
  }
  // Files of before the categories: operators are in a namespace, or have operands or a number of autograd's.
  static const char* CategoryOfSpan(const TorchEvent& event) {
    const bool is_operator = Contains(event.name, "::") || !event.dims.empty() || !event.types.empty() ||
                             event.sequence != TorchSpan::kNone;
    return event.name.starts_with("nn.Module: ") ? "python_function" : is_operator ? "cpu_op" : "user_annotation";
  }

  // Gives the ends that came in a row to their slices. Who writes as it happens closes the innermost slice of a
  // track. The profiler writes the beginnings of a group of slices and then their ends, in the same order: times go
  // back.
  void CloseSlices() {
    by_order_ =
        by_order_ || (!ends_.empty() && ends_.front().second < last_begin_) ||
        !std::is_sorted(ends_.begin(), ends_.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    absl::flat_hash_map<uint64_t, size_t> closed;  // by track, from the front
    for (const auto& [track, at] : ends_) {
      const auto open = open_.find(track);
      if (open == open_.end()) continue;
      std::vector<Slice>& slices = open->second;
      size_t& first = closed[track];
      if (first >= slices.size()) continue;
      if (by_order_) {
        Close(slices[first++], at);
      } else {
        Close(slices.back(), at);
        slices.pop_back();
      }
    }
    for (const auto& [track, count] : closed) {
      std::vector<Slice>& slices = open_[track];
      slices.erase(slices.begin(), slices.begin() + static_cast<std::ptrdiff_t>(count));
    }
    ends_.clear();
    last_begin_ = INT64_MIN;
  }

  void Close(Slice& slice, int64_t at) {
    if (slice.kind <= TorchKind::kCall) {
      slice.span.end = at;
      if (at < slice.span.start) return;
      slice.kind == TorchKind::kCall ? builder_.AddCall(slice.span) : builder_.AddSpan(slice.span);
    } else if (slice.kind <= TorchKind::kSet && !has_stages_) {
      if (at < slice.activity.start) {
        ++recording_.without_time;
        return;
      }
      slice.activity.duration = at - slice.activity.start;
      slices_of_gpu_.push_back(slice.activity);
    }
  }

  // Of this form: "stream 07".
  static uint32_t NumberAtEnd(std::string_view text) {
    while (!text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) == 0) text.remove_prefix(1);
    return Unsigned32(text);
  }

  void AddStage(const GpuRenderStageEvent& stage, int64_t at) {
    ++recording_.events;
    const std::string& what = specifications_[stage.stage_iid()];
    event_.Clear();
    event_.phase = "X";
    event_.category = what == "Memcpy"   ? "gpu_memcpy"
                      : what == "Memset" ? "gpu_memset"
                      : what == "Kernel" ? "kernel"
                                         : "";
    const TorchKind kind = KindOf(event_);
    if (kind == TorchKind::kOther) return;
    has_stages_ = true;
    event_.name = !stage.name().empty()    ? stage.name()
                  : stage.name_iid() != 0  ? names_[stage.name_iid()]
                  : stage.kernel_iid() > 0 ? kernels_[stage.kernel_iid()]
                                           : what;
    event_.start = at;
    int64_t end = 0;
    const auto duration = static_cast<int64_t>(std::min<uint64_t>(stage.duration(), INT64_MAX));
    if (__builtin_add_overflow(at, duration, &end)) {
      ++recording_.without_time;
      return;
    }
    event_.duration = duration;
    event_.correlation = stage.event_id();
    event_.device = static_cast<uint32_t>(std::max(stage.gpu_id(), 0));
    event_.stream = NumberAtEnd(specifications_[stage.hw_queue_iid()]);
    if (stage.has_launch()) {
      const auto text = [](const GpuRenderStageEvent::Dim3& size) {
        return absl::StrCat("[", size.x(), ",", size.y(), ",", size.z(), "]");
      };
      event_.grid = text(stage.launch().grid_size());
      event_.block = text(stage.launch().workgroup_size());
    }
    for (const GpuRenderStageEvent::ExtraData& extra : stage.extra_data()) {
      if (extra.name() == "correlation") event_.correlation = Unsigned(extra.value());
      if (extra.name() == "stream id") event_.stream = Unsigned32(extra.value());
      if (extra.name() == "device id") event_.device = Unsigned32(extra.value());
      if (extra.name() == "module_fqn") event_.module = extra.value();
      if (extra.name() == "Process Group Name") event_.group = extra.value();
      if (extra.name() == "arch" && extra.value().starts_with("sm_")) NoteArchitecture(extra.value());
    }
    builder_.AddActivity(builder_.ActivityOf(event_, kind));
  }

  // "sm_90": the only thing that the file says of the GPU.
  void NoteArchitecture(std::string_view text) {
    constexpr uint32_t kTen = 10;
    const uint32_t number = NumberAtEnd(text);
    TorchDevice& device = recording_.devices[event_.device];
    device.cc_major = number / kTen;
    device.cc_minor = number % kTen;
  }

  TorchRecording& recording_;
  RecordingBuilder builder_;
  TorchEvent event_;  // that is being read
  Texts categories_, names_, keys_, values_, specifications_, kernels_;
  absl::flat_hash_map<uint64_t, std::pair<int32_t, int32_t>> threads_;  // process and thread, by track
  absl::flat_hash_map<uint64_t, std::vector<Slice>> open_;              // by track, the outer one first
  std::vector<std::pair<uint64_t, int64_t>> ends_;                      // track and time, since the last beginning
  int64_t last_begin_ = INT64_MIN;
  bool by_order_ = false, has_stages_ = false;
  std::vector<TorchActivity> slices_of_gpu_;
};

}  // namespace

bool LooksLikePerfettoTrace(std::string_view beginning) {
  uint64_t size = 0, tag = 0;
  if (beginning.empty() || beginning.front() != kPacketTag) return false;
  beginning.remove_prefix(1);
  if (!TakeVarint(&beginning, &size) || size == 0 || size > kLongestPacket) return false;
  perfetto::TracePacket packet;
  if (beginning.size() >= size) return packet.ParseFromArray(beginning.data(), static_cast<int>(size));
  // The first packet is long: of a field of a packet, with a length that fits.
  constexpr uint64_t kFirstOddField = 2000, kWireBits = 3, kWithLength = 2;
  uint64_t length = 0;
  return TakeVarint(&beginning, &tag) && (tag >> kWireBits) < kFirstOddField && (tag & 7) == kWithLength &&
         TakeVarint(&beginning, &length) && length <= size;
}

absl::StatusOr<TorchRecording> ReadPerfettoTrace(ByteStream& bytes, uint64_t most_events) {
  TorchRecording recording;
  TraceReader reader(&recording, most_events);
  PacketReader packets(bytes);
  perfetto::TracePacket packet;
  std::string_view text;
  while (!reader.full() && packets.Next(&text)) {
    if (packet.ParseFromArray(text.data(), static_cast<int>(text.size()))) {
      reader.Add(packet);
    } else if (recording.damage.events++ == 0) {
      recording.damage.first_at = packets.offset() - text.size();
    }
  }
  if (!bytes.status().ok() && !bytes.cut()) {
    return absl::Status(bytes.status().code(),
                        absl::StrCat("byte ", packets.offset(), ": ", bytes.status().message()));
  }
  reader.Finish();
  if (reader.full()) {
    recording.cut = absl::StrCat("byte ", packets.offset(), ": more events than fit in memory, ", recording.events);
  } else if (!packets.at_end() || bytes.cut()) {
    recording.cut = absl::StrCat("byte ", packets.offset(), ": no packet of a trace follows");
  }
  return recording;
}

}  // namespace rfinject::cli
