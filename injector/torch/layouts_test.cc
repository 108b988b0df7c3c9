#include "injector/torch/layouts.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <memory>

#include "injector/torch/mock_objects.h"
#include "injector/torch/operands.h"

namespace rfinject {
namespace {

using mock::Value;

uint64_t Bits(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

TEST(FieldSearchTest, OneOffsetIsLeftWhenTheFieldHasHadTwoValues) {
  struct Object {
    uint64_t constant;
    uint64_t field;
    uint64_t other;
  };
  FieldSearch search(8, sizeof(Object));
  const Object first = {5, 5, 9};
  search.Require(TakeSnapshot(Bits(&first), sizeof(first)), 5);
  EXPECT_EQ(search.count(), 2u);
  EXPECT_FALSE(search.distinct());
  const Object second = {5, 6, 9};
  search.Require(TakeSnapshot(Bits(&second), sizeof(second)), 6);
  ASSERT_EQ(search.count(), 1u);
  EXPECT_EQ(search.First(), offsetof(Object, field));
  EXPECT_TRUE(search.distinct());
  search.Require(TakeSnapshot(Bits(&second), sizeof(second)), 7);
  EXPECT_EQ(search.count(), 0u);
}

TEST(FieldSearchTest, AWordThatHoldsTheSameByChanceIsNotTheField) {
  uint64_t words[8] = {0, 1, 0, 0, 0, 1, 0, 2};
  FieldSearch search(8, 64);
  search.Require(TakeSnapshot(reinterpret_cast<uintptr_t>(words), sizeof(words)), 1);
  EXPECT_EQ(search.Place({}), FieldSearch::kNowhere);
  EXPECT_EQ(search.Place({40}), 40u);
  EXPECT_EQ(search.Place({16, 40}), 40u);
  EXPECT_EQ(search.Place({16, 24}), FieldSearch::kNowhere);
  EXPECT_EQ(search.Place({8, 40}), FieldSearch::kNowhere);
  words[1] = 0;
  search.Require(TakeSnapshot(reinterpret_cast<uintptr_t>(words), sizeof(words)), 1);
  EXPECT_EQ(search.Place({16}), 40u);  // moved, and alone
  words[5] = 0;
  search.Require(TakeSnapshot(reinterpret_cast<uintptr_t>(words), sizeof(words)), 1);
  EXPECT_EQ(search.Place({40}), FieldSearch::kNowhere);
}

TEST(FieldSearchTest, WhatCouldNotBeReadIsNoCandidate) {
  const uint64_t words[2] = {0, 0};
  Snapshot half = TakeSnapshot(Bits(words), 8);
  FieldSearch search(8, 16);
  search.Require(half, 0);
  EXPECT_EQ(search.count(), 1u);
}

template <bool kEngagedFirst>
class Tensors {
 public:
  using Mock = mock::Tensor<kEngagedFirst>;

  const Mock& Add(uint16_t dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides, bool meta = false,
                  int64_t offset = 0) {
    storages_.push_back(std::make_unique<mock::Storage>());
    if (!meta) {
      datas_.push_back(std::make_unique<char[]>(16));
      storages_.back()->data = storages_.back()->context = datas_.back().get();
    }
    tensors_.push_back(
        std::make_unique<Mock>(storages_.back().get(), dtype, sizes, strides, static_cast<int8_t>(meta ? 14 : 0)));
    tensors_.back()->storage_offset = offset;
    const Mock& tensor = *tensors_.back();
    KnownTensor known;
    known.address = Bits(&tensor);
    known.dtype = dtype;
    known.meta = meta;
    known.data = Bits(storages_.back()->data);
    known.offset = static_cast<uint64_t>(offset);
    known.numel = tensor.numel;
    known.sizes = sizes;
    known.strides = strides;
    search.Observe(known);
    return tensor;
  }

  void AddUsual() {
    Add(6, {3, 5, 7}, {35, 7, 1});
    Add(7, {4, 6}, {6, 1});
    Add(4, {11}, {1});
    Add(6, {2, 3, 2, 2, 3, 2}, {72, 24, 12, 6, 2, 1});
    Add(6, {2, 3}, {3, 1}, true);
    Add(6, {4}, {1}, false, 13);
  }

  TensorSearch search;

 private:
  std::vector<std::unique_ptr<mock::Storage>> storages_;
  std::vector<std::unique_ptr<char[]>> datas_;
  std::vector<std::unique_ptr<Mock>> tensors_;
};

template <bool kEngagedFirst>
void FindsEveryField() {
  Tensors<kEngagedFirst> tensors;
  tensors.AddUsual();
  TensorLayout layout;
  const char* why = nullptr;
  ASSERT_TRUE(tensors.search.Finish(&layout, &why)) << why;
  using Mock = mock::Tensor<kEngagedFirst>;
  EXPECT_EQ(layout.storage, offsetof(Mock, storage));
  EXPECT_EQ(layout.storage_data, offsetof(mock::Storage, data));
  EXPECT_EQ(layout.sizes, offsetof(Mock, rank));
  EXPECT_EQ(layout.offset, offsetof(Mock, storage_offset));
  EXPECT_EQ(layout.numel, offsetof(Mock, numel));
  EXPECT_EQ(layout.dtype, offsetof(Mock, dtype));
  EXPECT_EQ(layout.device, offsetof(Mock, device) + (kEngagedFirst ? 1 : 0));
  EXPECT_EQ(layout.meta_device, 14);
}

TEST(TensorSearchTest, FindsEveryField) { FindsEveryField<false>(); }
TEST(TensorSearchTest, FindsEveryFieldOfTheOldOptional) { FindsEveryField<true>(); }

TEST(TensorSearchTest, FindsTheKeyOfZerosThatLieNowhere) {
  Tensors<false> tensors;
  tensors.AddUsual();
  mock::Tensor<false> zeros(nullptr, 6, {2, 3}, {3, 1});
  zeros.keys |= 0x4000;
  tensors.search.ObserveZeros(Bits(&zeros));
  TensorLayout layout;
  const char* why = nullptr;
  ASSERT_TRUE(tensors.search.Finish(&layout, &why)) << why;
  EXPECT_EQ(layout.keys, offsetof(mock::Tensor<false>, keys));
  EXPECT_EQ(layout.zeros_key, 0x4000u);
  const OperandReader reader(layout, {}, nullptr);
  Operands operands;
  EXPECT_EQ(reader.ReadTensor(Bits(&zeros), &operands).distinct, 1u);
  EXPECT_TRUE(operands.has_zeros);
  EXPECT_FALSE(operands.has_wrapper);
}

TEST(TensorSearchTest, AKeyOfZerosThatWasNotSeenIsNotUsed) {
  Tensors<false> tensors;
  tensors.AddUsual();
  TensorLayout layout;
  const char* why = nullptr;
  ASSERT_TRUE(tensors.search.Finish(&layout, &why)) << why;
  EXPECT_EQ(layout.zeros_key, 0u);
  mock::Tensor<false> zeros(nullptr, 6, {2, 3}, {3, 1});
  zeros.keys |= 0x6000;  // two bits more: not understood
  tensors.search.ObserveZeros(Bits(&zeros));
  ASSERT_TRUE(tensors.search.Finish(&layout, &why)) << why;
  EXPECT_EQ(layout.zeros_key, 0u);
}

TEST(TensorSearchTest, SaysWhatIsMissing) {
  Tensors<false> tensors;
  tensors.Add(6, {3, 5, 7}, {35, 7, 1});
  tensors.Add(7, {4, 6}, {6, 1});
  tensors.Add(6, {2, 3}, {3, 1}, true);
  TensorLayout layout;
  const char* why = nullptr;
  EXPECT_FALSE(tensors.search.Finish(&layout, &why));
  EXPECT_STREQ(why, "TensorImpl: sizes");  // no tensor of a rank that does not fit inside
  EXPECT_FALSE(layout.valid);
}

TEST(TensorSearchTest, AContradictionIsNotBelieved) {
  Tensors<false> tensors;
  tensors.AddUsual();
  const mock::Tensor<false> liar(nullptr, 6, {2, 2}, {2, 1});
  const std::vector<int64_t> sizes = {2, 3};
  KnownTensor known;
  known.address = Bits(&liar);
  known.dtype = 6;
  known.numel = 6;
  known.sizes = sizes;
  known.strides = sizes;
  tensors.search.Observe(known);
  TensorLayout layout;
  const char* why = nullptr;
  EXPECT_FALSE(tensors.search.Finish(&layout, &why));
}

TEST(TensorSearchTest, GarbageIsNotFollowed) {
  TensorSearch search;
  const std::vector<int64_t> sizes = {2, 3};
  KnownTensor known;
  known.sizes = known.strides = sizes;
  for (uintptr_t address : {uintptr_t{0}, uintptr_t{64}, uintptr_t{0xdead00000000}}) {
    known.address = address;
    search.Observe(known);
  }
  TensorLayout layout;
  const char* why = nullptr;
  EXPECT_FALSE(search.Finish(&layout, &why));
}

KnownValue Known(KnownValue::Kind kind, uint64_t bits = 0) {
  KnownValue value;
  value.kind = kind;
  value.bits = bits;
  return value;
}

class ValueTest : public testing::Test {
 protected:
  // Two calls that hold each kind twice.
  bool ObserveUsual() {
    ints_.values = {{2, mock::kInt}, {0, mock::kInt}};
    bool good = true;
    for (uint64_t round : {1, 2}) {
      const double real = 0.5 * static_cast<double>(round);
      const Value values[] = {{1000 * round, mock::kTensor},
                              {round, mock::kInt},
                              {std::bit_cast<uint64_t>(real), mock::kDouble},
                              {round % 2 | 0xab00, mock::kBool},  // bytes beside a bool are whatever they were
                              {0xabcdef, mock::kNone},
                              {Bits(&ints_), mock::kList}};
      KnownValue list = Known(KnownValue::Kind::kIntegerList);
      list.list = {2, 0};
      list.list_size = 2;
      const KnownValue known[] = {Known(KnownValue::Kind::kTensor, 1000 * round),
                                  Known(KnownValue::Kind::kInteger, round),
                                  Known(KnownValue::Kind::kReal, std::bit_cast<uint64_t>(real)),
                                  Known(KnownValue::Kind::kBoolean, round % 2),
                                  Known(KnownValue::Kind::kNone),
                                  list};
      good = search_.Observe(reinterpret_cast<const unsigned char*>(values), known) && good;
    }
    return good;
  }

  mock::List ints_;
  ValueSearch search_;
};

TEST_F(ValueTest, LearnsTags) {
  ASSERT_TRUE(ObserveUsual());
  ValueLayout layout;
  const char* why = nullptr;
  ASSERT_TRUE(search_.Finish(&layout, &why)) << why;
  EXPECT_EQ(layout.tensor, mock::kTensor);
  EXPECT_EQ(layout.integer, mock::kInt);
  EXPECT_EQ(layout.real, mock::kDouble);
  EXPECT_EQ(layout.boolean, mock::kBool);
  EXPECT_EQ(layout.none, mock::kNone);
  EXPECT_EQ(layout.list, mock::kList);
  EXPECT_EQ(layout.list_values, offsetof(mock::List, values));
}

TEST_F(ValueTest, AChangedTagIsNotBelieved) {
  ASSERT_TRUE(ObserveUsual());
  const Value value = {7, mock::kString};
  const KnownValue known = Known(KnownValue::Kind::kInteger, 7);
  EXPECT_FALSE(search_.Observe(reinterpret_cast<const unsigned char*>(&value), {&known, 1}));
}

TEST_F(ValueTest, WhatWasSeenOnceIsNotBelieved) {
  const Value value = {7, mock::kInt};
  const KnownValue known = Known(KnownValue::Kind::kInteger, 7);
  EXPECT_TRUE(search_.Observe(reinterpret_cast<const unsigned char*>(&value), {&known, 1}));
  ValueLayout layout;
  const char* why = nullptr;
  EXPECT_FALSE(search_.Finish(&layout, &why));
}

// One version of torch has two layouts, by the C++ library's ABI.
TEST(RecordTest, BothStringAbisAreFoundBySearch) {
  using NewFunction = void* (*)(int64_t, uint64_t, const Value*, size_t);
  const struct {
    NewFunction make;
    mock::RecordFacts facts;
  } abis[] = {{mock::NewRecord, mock::FactsOfRecord()}, {mock::NewOldStringRecord, mock::FactsOfOldStringRecord()}};
  EXPECT_EQ(abis[0].facts.sequence, abis[1].facts.sequence + 24);
  for (const auto& abi : abis) {
    FieldSearch sequence(8, 320);
    FieldSearch thread(8, 400);
    for (int64_t number : {17, 23, -1}) {
      void* record = abi.make(number, 0, nullptr, 0);
      const Snapshot object = TakeSnapshot(Bits(record), abi.facts.size);
      sequence.Require(object, static_cast<uint64_t>(number));
      thread.Require(object, 0);
    }
    // Thread 1, as in most programs: many words are 1.
    for (int64_t number : {3, 4}) {
      void* record = abi.make(number, 1, nullptr, 0);
      thread.Require(TakeSnapshot(Bits(record), abi.facts.size), 1);
    }
    ASSERT_EQ(sequence.count(), 1u);
    EXPECT_EQ(sequence.First(), abi.facts.sequence);
    ASSERT_EQ(thread.count(), 1u);
    EXPECT_EQ(thread.First(), abi.facts.forward_thread);
  }
}

class OperandTest : public testing::Test {
 protected:
  OperandTest() {
    using Mock = mock::Tensor<false>;
    layout_.valid = true;
    layout_.storage = offsetof(Mock, storage);
    layout_.storage_data = offsetof(mock::Storage, data);
    layout_.sizes = offsetof(Mock, rank);
    layout_.numel = offsetof(Mock, numel);
    layout_.dtype = offsetof(Mock, dtype);
    layout_.device = offsetof(Mock, device);
    layout_.meta_device = 14;
    value_.valid = true;
    value_.none = mock::kNone;
    value_.tensor = mock::kTensor;
    value_.integer = mock::kInt;
    value_.real = mock::kDouble;
    value_.boolean = mock::kBool;
    value_.list = mock::kList;
    value_.list_values = offsetof(mock::List, values);
    reader_ = OperandReader(layout_, value_, &undefined_);
    storage_.data = &storage_;
  }

  void Read(std::vector<Value> values) { reader_.Read(Bits(values.data()), values.size(), &operands_); }

  mock::Storage storage_;
  int undefined_ = 0;
  TensorLayout layout_;
  ValueLayout value_;
  OperandReader reader_;
  Operands operands_;
};

TEST_F(OperandTest, ReadsEachKind) {
  const mock::Tensor<false> tensor(&storage_, 15, {2, 3, 4}, {12, 0, 1});
  const mock::Tensor<false> big(&storage_, 6, {1, 1, 1, 1, 1, 1, 1, 2, 3}, {6, 6, 6, 6, 6, 6, 6, 3, 1});
  mock::List ints;
  ints.values = {{3, mock::kInt}, {static_cast<uint64_t>(-1), mock::kInt}};
  mock::List bools;
  bools.values = {{1, mock::kBool}, {0xff00, mock::kBool}};
  mock::List list;
  list.values = {{Bits(&tensor), mock::kTensor}, {Bits(&undefined_), mock::kTensor}, {Bits(&big), mock::kTensor}};
  Read({{Bits(&tensor), mock::kTensor},
        {Bits(&undefined_), mock::kTensor},
        {0, mock::kNone},
        {static_cast<uint64_t>(-5), mock::kInt},
        {1, mock::kBool},
        {std::bit_cast<uint64_t>(2.5), mock::kDouble},
        {Bits(&ints), mock::kList},
        {Bits(&bools), mock::kList},
        {Bits(&list), mock::kList},
        {Bits(&list), mock::kString}});
  using Kind = Argument::Kind;
  std::vector<Kind> kinds;
  for (const Argument& argument : operands_.arguments) kinds.push_back(argument.kind);
  EXPECT_EQ(kinds, (std::vector<Kind>{Kind::kTensor, Kind::kNone, Kind::kNone, Kind::kInt, Kind::kBool, Kind::kDouble,
                                      Kind::kIntList, Kind::kIntList, Kind::kTensorList, Kind::kOther}));
  const TensorView& view = operands_.tensors[operands_.arguments[0].first];
  EXPECT_EQ(view.dtype, DType::kBFloat16);
  EXPECT_EQ(view.element_size, 2u);
  EXPECT_EQ(view.rank, 3);
  EXPECT_EQ(view.shape[1], 3);
  EXPECT_EQ(view.numel, 24u);
  EXPECT_TRUE(view.broadcast);
  EXPECT_EQ(view.distinct, 8u);
  EXPECT_EQ(view.storage, Bits(&storage_));
  EXPECT_EQ(operands_.arguments[3].integer, -5);
  EXPECT_EQ(operands_.arguments[5].real, 2.5);
  EXPECT_EQ(operands_.ints, (std::vector<int64_t>{3, -1, 1, 0}));
  EXPECT_EQ(operands_.arguments[7].first, 2);
  EXPECT_EQ(operands_.arguments[8].count, 2);
  const TensorView& folded = operands_.tensors[operands_.arguments[8].first + 1];
  EXPECT_EQ(folded.rank, kMaxRank);
  EXPECT_EQ(folded.shape[kMaxRank - 1], 6);
  EXPECT_FALSE(operands_.has_meta || operands_.has_wrapper || operands_.crosses_devices);
}

// What the classes of sparse tensors add to TensorImpl.
struct MockCoo : mock::Tensor<false> {
  using Tensor::Tensor;
  uint64_t sparse = 2, dense = 0;
  const void *indices = nullptr, *values = nullptr;
  uint64_t coalesced = 1;
};
struct MockCsr : mock::Tensor<false> {
  using Tensor::Tensor;
  const void *rows = nullptr, *columns = nullptr, *values = nullptr;
  uint64_t layout = 2;
};

TEST_F(OperandTest, ReadsSparseTensorsByTheirParts) {
  int coo_class = 0, csr_class = 0;
  reader_ = OperandReader(layout_, value_, &undefined_, SparseReader(Bits(&coo_class), Bits(&csr_class), layout_));
  const mock::Tensor<false> places(&storage_, 4, {2, 6}, {6, 1}), numbers(&storage_, 6, {6}, {1});
  MockCoo coo(nullptr, 6, {4, 5}, {0, 0});
  coo.table = &coo_class;
  coo.indices = &places;
  coo.values = &numbers;
  const mock::Tensor<false> rows(&storage_, 3, {5}, {1}), columns(&storage_, 3, {6}, {1});
  MockCsr csr(nullptr, 6, {4, 5}, {0, 0});
  csr.table = &csr_class;
  csr.rows = &rows;
  csr.columns = &columns;
  csr.values = &numbers;
  Read({{Bits(&coo), mock::kTensor}, {Bits(&csr), mock::kTensor}});
  EXPECT_FALSE(operands_.has_wrapper);
  ASSERT_EQ(operands_.tensors.size(), 2u);
  for (const TensorView& view : operands_.tensors) {
    EXPECT_TRUE(view.sparse);
    EXPECT_EQ(view.numel, 6u);
    EXPECT_EQ(view.shape[1], 5);
    EXPECT_FALSE(view.broadcast);
    EXPECT_EQ(view.storage, Bits(&storage_));
  }
  EXPECT_EQ(operands_.tensors[0].index_bytes, 2 * 6 * 8u);
  EXPECT_EQ(operands_.tensors[1].index_bytes, (5 + 6) * 4u);
  operands_.Clear();
  MockCoo other(nullptr, 6, {4, 5}, {0, 0});  // of neither class
  other.indices = &places;
  other.values = &numbers;
  Read({{Bits(&other), mock::kTensor}});
  EXPECT_TRUE(operands_.has_wrapper);
}

TEST_F(OperandTest, TellsTensorsThatHoldNoDataApart) {
  mock::Storage empty;
  const mock::Tensor<false> meta(&empty, 6, {2}, {1}, 14);
  Read({{Bits(&meta), mock::kTensor}});
  EXPECT_TRUE(operands_.has_meta);
  EXPECT_FALSE(operands_.has_wrapper);
  operands_.Clear();
  const mock::Tensor<false> wrapper(nullptr, 6, {2}, {1});
  Read({{Bits(&wrapper), mock::kTensor}});
  EXPECT_TRUE(operands_.has_wrapper);
  operands_.Clear();
  const mock::Tensor<false> no_elements(&empty, 6, {0, 3}, {3, 1});
  Read({{Bits(&no_elements), mock::kTensor}});
  EXPECT_FALSE(operands_.has_wrapper);
  operands_.Clear();
  const mock::Tensor<false> host(&storage_, 6, {2}, {1}, 0);
  const mock::Tensor<false> gpu(&storage_, 6, {2}, {1}, 1);
  Read({{Bits(&host), mock::kTensor}, {Bits(&gpu), mock::kTensor}});
  EXPECT_TRUE(operands_.crosses_devices);
}

}  // namespace
}  // namespace rfinject
