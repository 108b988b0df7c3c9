// The example of FORMAT.md: the smallest trace that means something, written by the encoder and held against the
// bytes that the document shows.
#include <gtest/gtest.h>

#include <cctype>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "proto/rfinject/v1/trace.pb.h"
#include "proto/wire/encoder.h"
#include "proto/wire/framing.h"

namespace rfinject::wire {
namespace {

void AppendFrame(Encoder* frame, uint32_t sequence, std::string* file) {
  ASSERT_TRUE(frame->ok());
  uint8_t header[kFrameHeaderSize];
  EncodeFrameHeader(frame->data() + kFrameHeaderSize, static_cast<uint32_t>(frame->size() - kFrameHeaderSize),
                    sequence, header);
  std::memcpy(frame->data(), header, sizeof header);
  file->append(reinterpret_cast<const char*>(frame->data()), frame->size());
}

std::string ExampleTrace() {
  std::string file;
  uint8_t header[kFileHeaderSize];
  EncodeFileHeader(header);
  file.append(reinterpret_cast<const char*>(header), sizeof header);

  // Frame 0: a name, a metric, a key that uses the name, and two launches of it.
  Encoder out(1 << 16);
  out.Clear(kFrameHeaderSize);
  size_t mark = out.Begin(2);  // Chunk.name
  out.Uint(1, 1);
  out.Text(2, "aten::relu");
  out.End(mark);
  mark = out.Begin(5);  // Chunk.metric
  out.Uint(1, 1);
  out.Text(2, "rf.time");
  out.Text(3, "ns");
  out.End(mark);
  mark = out.Begin(6);  // Chunk.key
  out.Uint(1, 1);
  out.Uint(2, 1);  // kernel
  out.Uint(5, 1);  // phase: forward
  out.End(mark);
  mark = out.Begin(7);  // Chunk.stats
  out.Uint(1, 1);
  out.Uint(2, 2);  // launches
  const size_t metric = out.Begin(3);
  out.Uint(1, 1);
  out.Uint(2, 2);        // n
  out.Uint(3, 1000);     // sum: 400 + 600
  out.Uint(5, 520'000);  // sum of squares
  out.Uint(7, 400);      // min
  out.Uint(8, 600);      // max
  out.End(metric);
  out.End(mark);
  AppendFrame(&out, 0, &file);

  // Frame 1: the end.
  out.Clear(kFrameHeaderSize);
  mark = out.Begin(12);  // Chunk.end
  out.Text(1, "exit");
  out.End(mark);
  AppendFrame(&out, 1, &file);
  return file;
}

// As `hexdump -C` prints it.
std::string HexDump(const std::string& bytes) {
  std::string text;
  char piece[32];
  for (size_t at = 0; at < bytes.size(); at += 16) {
    std::snprintf(piece, sizeof piece, "%08zx ", at);
    text += piece;
    std::string letters;
    for (size_t i = 0; i < 16; ++i) {
      if (i == 8) text += ' ';
      if (at + i >= bytes.size()) {
        text += "   ";
        continue;
      }
      const auto byte = static_cast<unsigned char>(bytes[at + i]);
      std::snprintf(piece, sizeof piece, " %02x", byte);
      text += piece;
      letters += byte >= 0x20 && byte < 0x7F ? static_cast<char>(byte) : '.';
    }
    text += "  |" + letters + "|\n";
  }
  std::snprintf(piece, sizeof piece, "%08zx\n", bytes.size());
  return text + piece;
}

TEST(FormatExample, IsWhatTheDocumentShows) {
  std::ifstream in(RFINJECT_FORMAT_MD);
  std::string shown;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    const bool is_dump = line.size() >= 12 && line.compare(0, 9, "    00000") == 0;
    if (is_dump) shown += line.substr(4) + "\n";
    inside |= is_dump;
  }
  EXPECT_TRUE(inside);
  EXPECT_EQ(shown, HexDump(ExampleTrace()));
}

TEST(FormatExample, IsATrace) {
  const std::string file = ExampleTrace();
  size_t at = kFileHeaderSize;
  v1::Chunk whole;
  for (uint32_t sequence = 0; at < file.size(); ++sequence) {
    uint8_t bytes[kFrameHeaderSize];
    std::memcpy(bytes, file.data() + at, sizeof bytes);
    FrameHeader header;
    ASSERT_EQ(DecodeFrameHeader(bytes, sequence, &header), FrameStatus::kOk);
    ASSERT_EQ(CheckPayload(header, file.data() + at + sizeof bytes), FrameStatus::kOk);
    v1::Chunk chunk;
    ASSERT_TRUE(chunk.ParseFromArray(file.data() + at + sizeof bytes, static_cast<int>(header.length)));
    whole.MergeFrom(chunk);
    at += sizeof bytes + header.length;
  }
  EXPECT_EQ(whole.name(0).text(), "aten::relu");
  EXPECT_EQ(whole.key(0).phase(), v1::PHASE_FORWARD);
  EXPECT_EQ(whole.stats(0).launches(), 2u);
  EXPECT_EQ(whole.stats(0).metric(0).sum_squares(), 400u * 400 + 600 * 600);
  EXPECT_EQ(whole.end().reason(), "exit");
}

}  // namespace
}  // namespace rfinject::wire
