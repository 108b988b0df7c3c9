#include "proto/wire/framing.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace rfinject::wire {
namespace {

TEST(FileHeader, IsReadBack) {
  uint8_t header[kFileHeaderSize];
  EncodeFileHeader(header);
  uint16_t major = 0;
  EXPECT_EQ(DecodeFileHeader(header, &major), FrameStatus::kOk);
  EXPECT_EQ(major, kFormatMajor);
}

// The layout is a promise to readers that are written elsewhere, so it stands here byte by byte.
TEST(FileHeader, HasThePromisedBytes) {
  uint8_t header[kFileHeaderSize];
  EncodeFileHeader(header);
  EXPECT_EQ(std::string(header, header + 8), "RFINJECT");
  EXPECT_EQ(header[8] | header[9] << 8, 3);
  EXPECT_EQ(header[10] | header[11] << 8, 0);
}

TEST(FileHeader, AnOlderMajorIsRead) {
  uint8_t header[kFileHeaderSize];
  EncodeFileHeader(header);
  internal::PutU16(header + 8, 1);
  internal::PutU32(header + 12, Crc32c(header, 12));
  uint16_t major = 0;
  EXPECT_EQ(DecodeFileHeader(header, &major), FrameStatus::kOk);
  EXPECT_EQ(major, 1);
}

TEST(FileHeader, ANewerMajorIsRefusedAndNamed) {
  uint8_t header[kFileHeaderSize];
  EncodeFileHeader(header);
  internal::PutU16(header + 8, kFormatMajor + 1);
  internal::PutU32(header + 12, Crc32c(header, 12));
  uint16_t major = 0;
  EXPECT_EQ(DecodeFileHeader(header, &major), FrameStatus::kNewerFormat);
  EXPECT_EQ(major, kFormatMajor + 1);
}

TEST(FileHeader, ANewerMinorIsRead) {
  uint8_t header[kFileHeaderSize];
  EncodeFileHeader(header);
  internal::PutU16(header + 10, 77);
  internal::PutU32(header + 12, Crc32c(header, 12));
  uint16_t major = 0;
  EXPECT_EQ(DecodeFileHeader(header, &major), FrameStatus::kOk);
}

TEST(FileHeader, EveryChangedByteIsSeen) {
  for (size_t i = 0; i < kFileHeaderSize; ++i) {
    uint8_t header[kFileHeaderSize];
    EncodeFileHeader(header);
    header[i] ^= 0x40;
    uint16_t major = 0;
    EXPECT_EQ(DecodeFileHeader(header, &major), i < 8 ? FrameStatus::kNotATrace : FrameStatus::kDamagedHeader) << i;
  }
}

class FrameTest : public ::testing::Test {
 protected:
  FrameTest() { EncodeFrameHeader(payload_.data(), static_cast<uint32_t>(payload_.size()), 7, bytes_); }
  FrameStatus Check(uint32_t expected = 7) {
    FrameHeader header;
    const FrameStatus status = DecodeFrameHeader(bytes_, expected, &header);
    if (status != FrameStatus::kOk) return status;
    if (header.length != payload_.size()) return FrameStatus::kDamagedPayload;
    return CheckPayload(header, payload_.data());
  }
  std::string payload_ = "some bytes of a chunk";
  uint8_t bytes_[kFrameHeaderSize];
};

TEST_F(FrameTest, IsReadBack) { EXPECT_EQ(Check(), FrameStatus::kOk); }

TEST_F(FrameTest, BeginsWithItsMagic) { EXPECT_EQ(std::string(bytes_, bytes_ + 4), "RFXC"); }

TEST_F(FrameTest, AnEmptyPayloadIsAFrame) {
  payload_.clear();
  EncodeFrameHeader(payload_.data(), 0, 7, bytes_);
  EXPECT_EQ(Check(), FrameStatus::kOk);
}

TEST_F(FrameTest, AnotherSequenceNumberIsSeen) { EXPECT_EQ(Check(8), FrameStatus::kOutOfSequence); }

TEST_F(FrameTest, ATooLongPayloadIsSeenBeforeItIsRead) {
  internal::PutU32(bytes_ + 4, kMaxPayloadSize + 1);
  EXPECT_EQ(Check(), FrameStatus::kTooLong);
}

TEST_F(FrameTest, EveryFlippedBitIsSeen) {
  for (size_t bit = 0; bit < 8 * kFrameHeaderSize; ++bit) {
    bytes_[bit / 8] ^= static_cast<uint8_t>(1 << (bit % 8));
    EXPECT_NE(Check(), FrameStatus::kOk) << "header bit " << bit;
    bytes_[bit / 8] ^= static_cast<uint8_t>(1 << (bit % 8));
  }
  for (size_t bit = 0; bit < 8 * payload_.size(); ++bit) {
    payload_[bit / 8] = static_cast<char>(payload_[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_EQ(Check(), FrameStatus::kDamagedPayload) << "payload bit " << bit;
    payload_[bit / 8] = static_cast<char>(payload_[bit / 8] ^ (1 << (bit % 8)));
  }
}

}  // namespace
}  // namespace rfinject::wire
