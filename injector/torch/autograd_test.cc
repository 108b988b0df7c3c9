#include "injector/torch/autograd.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collector/settings.h"
#include "collector/step_waits.h"
#include "collector/testing/null_recorder.h"
#include "injector/layer_stack.h"
#include "injector/torch/current_node.h"
#include "injector/torch/name_cache.h"
#include "injector/torch/scopes.h"
#include "injector/training.h"
#include "operators/op_call.h"

namespace rfinject {

namespace mock {

// torch::autograd::AnomalyMetadata. Like that one it may have subclasses elsewhere: its calls are virtual.
struct Metadata {
  virtual ~Metadata() = default;
  virtual void StoreStack() {}
  virtual void PrintStack(const std::string&) {}
  virtual void AssignParent(const std::shared_ptr<void>& parent) { kept = parent; }
  std::shared_ptr<void> kept;
};

}  // namespace mock

// What scopes.cc says to step_waits.h.
int g_waits_begun = 0, g_waits_ended = 0;

namespace {

class NamesOnlyRecorder final : public testing::NullRecorder {
 public:
  uint32_t Intern(std::string_view text) noexcept override {
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == text) return static_cast<uint32_t>(i + 1);
    }
    names.emplace_back(text);
    return static_cast<uint32_t>(names.size());
  }
  void ReportDiagnostic(Severity, std::string_view id, std::string_view, std::string_view) noexcept override {
    diagnostics.emplace_back(id);
  }

  std::vector<std::string> names;
  std::vector<std::string> diagnostics;
};

// A node as torch up to 2.12 has it: virtual table, weak pointer to itself, sequence number.
struct SharedNode : std::enable_shared_from_this<SharedNode> {
  explicit SharedNode(uint64_t sequence_in, uint64_t thread_in) : sequence(sequence_in), thread(thread_in) {}
  virtual ~SharedNode() = default;
  uint64_t sequence;
  uint64_t topological = 0;
  bool has_parent = false;
  uint64_t thread;
};
struct ConvolutionBackward0 : SharedNode {
  using SharedNode::SharedNode;
};

// And later: virtual table, counts, sequence number.
struct IntrusiveNode {
  explicit IntrusiveNode(uint64_t sequence_in, uint64_t thread_in) : sequence(sequence_in), thread(thread_in) {}
  virtual ~IntrusiveNode() = default;
  std::atomic<uint64_t> counts{1 | uint64_t{1} << 32};
  uint64_t sequence;
  uint64_t topological = 0;
  bool has_parent = false;
  uint64_t thread;
};
struct MulBackward0 : IntrusiveNode {
  using IntrusiveNode::IntrusiveNode;
};
struct AccumulateGrad : IntrusiveNode {
  explicit AccumulateGrad(uintptr_t parameter_in)
      : IntrusiveNode(UINT64_MAX, /*thread_in=*/1), parameter(parameter_in) {}
  uintptr_t parameter;
};
struct IntrusivePointer {
  IntrusiveNode* node;
  explicit IntrusivePointer(IntrusiveNode* n) : node(n) {
    if (node != nullptr) node->counts.fetch_add(1);
  }
  ~IntrusivePointer() {
    if (node != nullptr) node->counts.fetch_sub(1);
  }
};

thread_local std::shared_ptr<SharedNode> t_shared;
thread_local IntrusiveNode* t_intrusive = nullptr;
std::shared_ptr<SharedNode> CurrentShared() { return t_shared; }
IntrusivePointer CurrentIntrusive() { return IntrusivePointer(t_intrusive); }

// Before get_current_node: a node in the making is told its parent.
struct NodeInTheMaking : SharedNode {
  using SharedNode::SharedNode;
  char others[64] = {};
  std::unique_ptr<mock::Metadata> metadata;
};
thread_local std::shared_ptr<void> t_parent;
// As torch is compiled: what it calls is not checked to be of the class that it says.
__attribute__((no_sanitize("vptr"))) void AssignParent(void* node) {
  static_cast<NodeInTheMaking*>(node)->metadata->AssignParent(t_parent);
}
void AssignNothing(void*) {}

thread_local uint64_t t_sequence = 100;
thread_local bool t_grad = false;
thread_local const void* t_task = nullptr;
uint64_t Peek() { return t_sequence; }
std::atomic<uint64_t> g_next_thread{50};
uint64_t ThreadId() {
  thread_local const uint64_t id = ++g_next_thread;
  return id;
}
bool GradEnabled() { return t_grad; }
const void* Task() { return t_task; }

TorchSymbols Symbols() {
  TorchSymbols symbols;
  symbols.peek = Peek;
  symbols.thread_id = ThreadId;
  symbols.grad_enabled = GradEnabled;
  symbols.engine_task = Task;
  return symbols;
}

class AutogradTest : public ::testing::Test {
 protected:
  void Init(const TorchSymbols& symbols, const NodeLayout& layout, NodeMeans means) {
    InitAutograd(symbols, layout, means, true, recorder_);
    SetSequenceFunctions({.peek = Peek, .thread_id = ThreadId, .running_node = RunningNode});
  }
  void InitShared() {
    TorchSymbols symbols = Symbols();
    symbols.current_node = reinterpret_cast<abi::NodeReturn (*)()>(reinterpret_cast<void*>(CurrentShared));
    NodeLayout layout{.valid = true, .reference = FindNodeReference(symbols), .sequence = 24, .thread = 48};
    EXPECT_EQ(layout.reference, NodeLayout::Reference::kShared);
    Init(symbols, layout, NodeMeans::kCurrent);
  }
  void InitIntrusive() {
    TorchSymbols symbols = Symbols();
    symbols.current_node = reinterpret_cast<abi::NodeReturn (*)()>(reinterpret_cast<void*>(CurrentIntrusive));
    NodeLayout layout{
        .valid = true, .reference = FindNodeReference(symbols), .sequence = 16, .thread = 40, .parameter = 48};
    EXPECT_EQ(layout.reference, NodeLayout::Reference::kIntrusive);
    Init(symbols, layout, NodeMeans::kCurrent);
  }
  void InitBorrowed() {
    TorchSymbols symbols = Symbols();
    symbols.assign_parent = AssignParent;
    NodeLayout layout{.valid = true, .reference = FindNodeReference(symbols), .sequence = 24, .thread = 48};
    EXPECT_EQ(layout.reference, NodeLayout::Reference::kBorrowed);
    Init(symbols, layout, NodeMeans::kCurrent);
  }
  void InitScope() { Init(Symbols(), {}, NodeMeans::kScope); }

  // A node number born in `layer`.
  uint64_t NodeIn(uint32_t layer) {
    EnterLayer(layer);
    const uint64_t sequence = t_sequence++;
    LeaveLayer();
    ++t_sequence;
    return sequence;
  }
  // Asks for the site so often that a reference kept each time would show; `released` is asked each time.
  void AskOften(uint32_t layer, const char* name, const std::function<bool()>& released) {
    for (int i = 0; i < 1000; ++i) {
      const Site site = SiteOfThread();
      ASSERT_EQ(site.layer, layer);
      ASSERT_EQ(site.phase, Phase::kBackward);
      ASSERT_EQ(Name(site.node), name);
      ASSERT_TRUE(released());
    }
  }
  std::string Name(uint32_t id) { return id == 0 ? "" : recorder_.names[id - 1]; }
  void SetUp() override { recorder_.diagnostics.clear(); }
  void TearDown() override {
    t_shared.reset();
    t_parent.reset();
    t_intrusive = nullptr;
    t_grad = false;
    t_task = nullptr;
    EXPECT_EQ(SiteOfThread(), Site{});
  }

  // One for all tests: names of node classes are cached for the life of the process, as the recorder's ids are.
  static NamesOnlyRecorder recorder_;
};

NamesOnlyRecorder AutogradTest::recorder_;

// get_current_node has one mangled name and two return types; this is the older one.
TEST_F(AutogradTest, SharedNodesAreReleased) {
  InitShared();
  auto node = std::make_shared<ConvolutionBackward0>(NodeIn(7), ThreadId());
  t_shared = node;
  AskOften(7, "ConvolutionBackward0", [&] { return node.use_count() == 2; });
}

TEST_F(AutogradTest, IntrusiveNodesAreReleased) {
  InitIntrusive();
  MulBackward0 node(NodeIn(9), ThreadId());
  t_intrusive = &node;
  AskOften(9, "MulBackward0", [&] { return node.counts.load() == (1 | uint64_t{1} << 32); });
}

TEST_F(AutogradTest, TheParentOfANewNodeIsTheRunningOne) {
  InitBorrowed();
  EXPECT_EQ(SiteOfThread(), Site{});
  auto node = std::make_shared<ConvolutionBackward0>(NodeIn(7), ThreadId());
  t_parent = node;
  AskOften(7, "ConvolutionBackward0", [&] { return node.use_count() == 2; });
}

TEST(NodeAccessTest, WhatDoesNotTellIsNotAsked) {
  TorchSymbols symbols;
  EXPECT_EQ(FindNodeReference(symbols), NodeLayout::Reference::kNone);
  symbols.assign_parent = AssignNothing;
  EXPECT_EQ(FindNodeReference(symbols), NodeLayout::Reference::kNone);
  symbols.assign_parent = AssignParent;
  t_parent = std::make_shared<SharedNode>(1, 1);  // a node runs: not a moment to find out
  EXPECT_EQ(FindNodeReference(symbols), NodeLayout::Reference::kNone);
  t_parent.reset();
  EXPECT_EQ(FindNodeReference(symbols), NodeLayout::Reference::kBorrowed);
}

TEST_F(AutogradTest, AccumulateGradBelongsToTheNodeBefore) {
  InitIntrusive();
  MulBackward0 node(NodeIn(3), ThreadId());
  t_intrusive = &node;
  SiteOfThread();
  MulBackward0 accumulate(UINT64_MAX, ThreadId());
  t_intrusive = &accumulate;
  EXPECT_EQ(SiteOfThread().layer, 3u);
  EXPECT_EQ(SiteOfThread().phase, Phase::kBackward);
}

TEST_F(AutogradTest, AfterCompiledCodeAGradientBelongsToTheModuleOfItsParameter) {
  InitIntrusive();
  MulBackward0 node(NodeIn(3), ThreadId());
  t_intrusive = &node;
  SiteOfThread();
  AccumulateGrad known(0x1000), other(0x2000);
  t_intrusive = &known;
  EXPECT_EQ(SiteOfThread().layer, 7u);
  EXPECT_EQ(SiteOfThread().phase, Phase::kBackward);
  t_intrusive = &other;
  EXPECT_EQ(SiteOfThread().layer, 3u);
}

TEST_F(AutogradTest, AModuleEnteredInANodeIsRecomputed) {
  InitIntrusive();
  MulBackward0 node(NodeIn(3), ThreadId());
  t_intrusive = &node;
  EnterLayer(4);
  EXPECT_EQ(SiteOfThread().phase, Phase::kRecompute);
  EXPECT_EQ(SiteOfThread().layer, 4u);
  LeaveLayer();
  EXPECT_EQ(SiteOfThread().phase, Phase::kBackward);
  EXPECT_EQ(SiteOfThread().layer, 3u);
}

TEST_F(AutogradTest, ANodeStartedInAModuleIsBackward) {
  InitIntrusive();
  MulBackward0 node(NodeIn(3), ThreadId());
  EnterLayer(4);
  EXPECT_EQ(SiteOfThread().phase, Phase::kForward);
  t_intrusive = &node;
  EXPECT_EQ(SiteOfThread().phase, Phase::kBackward);
  EXPECT_EQ(SiteOfThread().layer, 3u);
  t_intrusive = nullptr;
  LeaveLayer();
}

TEST_F(AutogradTest, TheInnermostOfScopeAndModuleDecides) {
  InitIntrusive();
  const int outer = 0;
  const int inner = 0;
  BeginScope(&outer, UserScope::kOptimizerStep);
  EXPECT_EQ(SiteOfThread().phase, Phase::kOptimizer);
  EnterLayer(2);  // a closure's forward
  EXPECT_EQ(SiteOfThread().phase, Phase::kForward);
  BeginScope(&inner, UserScope::kLoader);
  EXPECT_EQ(SiteOfThread().phase, Phase::kData);
  EXPECT_EQ(SiteOfThread().layer, 2u);
  MulBackward0 node(NodeIn(3), ThreadId());
  t_intrusive = &node;
  EXPECT_EQ(SiteOfThread().phase, Phase::kBackward);
  t_intrusive = nullptr;
  EXPECT_EQ(EndScope(&inner), UserScope::kLoader);
  LeaveLayer();
  EXPECT_EQ(SiteOfThread().phase, Phase::kOptimizer);
  EXPECT_EQ(EndScope(&outer), UserScope::kOptimizerStep);
}

TEST_F(AutogradTest, AnOptimizerInAHookOfANodeIsOptimizer) {
  InitIntrusive();
  MulBackward0 node(NodeIn(3), ThreadId());
  t_intrusive = &node;
  const int record = 0;
  BeginScope(&record, UserScope::kOptimizerStep);
  EXPECT_EQ(SiteOfThread().phase, Phase::kOptimizer);
  EndScope(&record);
  EXPECT_EQ(SiteOfThread().phase, Phase::kBackward);
}

TEST_F(AutogradTest, ScopesEndOutOfOrderAndTwice) {
  InitIntrusive();
  const int records[8] = {};
  for (const int& record : records) BeginScope(&record, UserScope::kOptimizerStep);
  for (size_t i = 8; i-- > 4;) EXPECT_EQ(EndScope(&records[i]), UserScope::kOther);  // too deep to be kept
  EXPECT_EQ(EndScope(&records[2]), UserScope::kOther);  // takes the one inside with it; those around it remain
  EXPECT_EQ(EndScope(&records[3]), UserScope::kOther);
  EXPECT_EQ(SiteOfThread().phase, Phase::kOptimizer);
  EXPECT_EQ(EndScope(&records[1]), UserScope::kOther);
  EXPECT_EQ(EndScope(&records[0]), UserScope::kOptimizerStep);
  EXPECT_EQ(EndScope(&records[0]), UserScope::kOther);
  EXPECT_EQ(SiteOfThread().phase, Phase::kOther);
}

TEST_F(AutogradTest, AScopeToldTwiceEndsOnce) {
  InitIntrusive();
  const int record = 0;
  BeginScope(&record, UserScope::kZeroGrad);
  BeginScope(&record, UserScope::kZeroGrad);
  EXPECT_EQ(EndScope(&record), UserScope::kZeroGrad);
  EXPECT_EQ(SiteOfThread().phase, Phase::kOther);
}

TEST_F(AutogradTest, OnlyTheOutermostStepEndsAStep) {
  InitIntrusive();
  const int loader = 0, outer = 0, inner = 0;
  BeginScope(&loader, UserScope::kLoader);
  BeginScope(&outer, UserScope::kOptimizerStep);
  BeginScope(&inner, UserScope::kOptimizerStep);  // a wrapped optimizer
  EXPECT_EQ(EndScope(&inner), UserScope::kOther);
  EXPECT_EQ(EndScope(&outer), UserScope::kOptimizerStep);
  EXPECT_EQ(EndScope(&loader), UserScope::kLoader);
}

TEST_F(AutogradTest, ALoaderInsideALoaderIsOneWait) {
  InitIntrusive();
  constexpr std::string_view kLoader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
  const int outer = 0, inner = 0, optimizer = 0;
  g_waits_begun = g_waits_ended = 0;
  BeginUserScope(&outer, kLoader);
  BeginUserScope(&inner, kLoader);
  BeginUserScope(&inner, kLoader);  // told twice
  EndUserScope(&inner);
  EXPECT_EQ(g_waits_ended, 0);
  EndUserScope(&outer);
  EndUserScope(&outer);
  BeginUserScope(&optimizer, "Optimizer.zero_grad#SGD.zero_grad");
  EndUserScope(&optimizer);
  EXPECT_EQ(g_waits_begun, 1);
  EXPECT_EQ(g_waits_ended, 1);
}

TEST_F(AutogradTest, NodesBornInANodeBelongToItsLayer) {
  InitIntrusive();
  MulBackward0 first(NodeIn(3), ThreadId());
  MulBackward0 second(NodeIn(4), ThreadId());
  t_grad = true;
  t_intrusive = &first;
  SiteOfThread();
  const uint64_t in_first = t_sequence++;
  NoteOperatorEnd();
  t_intrusive = &second;
  const uint64_t in_second = t_sequence++;  // before anybody asked
  SiteOfThread();
  NoteOperatorEnd();
  t_intrusive = nullptr;
  const uint64_t after = t_sequence++;
  SiteOfThread();
  EXPECT_EQ(OwnerOf(ThreadId(), in_first, nullptr), 3u);
  EXPECT_EQ(OwnerOf(ThreadId(), in_second, nullptr), 4u);
  EXPECT_EQ(OwnerOf(ThreadId(), after, nullptr), 0u);
}

TEST_F(AutogradTest, ScopesOfNodesTellTheSame) {
  InitScope();
  const int outer = 0;
  const int inner = 0;
  const uint64_t outer_sequence = NodeIn(3);
  const uint64_t inner_sequence = NodeIn(4);
  const int task = 0;
  const int inner_task = 0;
  t_task = &task;
  BeginNode(&outer, outer_sequence, ThreadId(), recorder_.Intern("OuterBackward"));
  EXPECT_EQ(SiteOfThread().layer, 3u);
  EnterLayer(5);
  EXPECT_EQ(SiteOfThread().phase, Phase::kRecompute);
  LeaveLayer();
  t_task = &inner_task;  // the node runs a backward pass of its own
  BeginNode(&inner, inner_sequence, ThreadId(), recorder_.Intern("InnerBackward"));
  EXPECT_EQ(SiteOfThread().layer, 4u);
  EndNode(&inner);
  EXPECT_EQ(SiteOfThread().layer, 4u);  // sums of gradients after it
  t_task = &task;
  EXPECT_EQ(SiteOfThread().layer, 3u);
  EndNode(&outer);
  EXPECT_EQ(SiteOfThread().layer, 3u);
  EXPECT_EQ(SiteOfThread().phase, Phase::kBackward);
  t_task = nullptr;
  EXPECT_EQ(SiteOfThread(), Site{});
}

TEST_F(AutogradTest, NamesAloneGiveAPhase) {
  InitScope();
  const int record = 0;
  BeginNode(&record, kUnknownSequence, 0, recorder_.Intern("SomeBackward"));
  const Site site = SiteOfThread();
  EXPECT_EQ(site.phase, Phase::kBackward);
  EXPECT_EQ(site.layer, 0u);
  EXPECT_EQ(Name(site.node), "SomeBackward");
  EndNode(&record);
}

TEST_F(AutogradTest, NodesNestDeeperThanWeKeep) {
  InitScope();
  std::vector<int> records(40);
  for (int& record : records) BeginNode(&record, kUnknownSequence, 0, 1);
  for (size_t i = records.size(); i-- > 0;) EndNode(&records[i]);
  t_task = nullptr;
  EXPECT_EQ(SiteOfThread(), Site{});
}

TEST(NameCacheTest, OperatorsAreToldFromRanges) {
  EXPECT_TRUE(IsOperatorName("aten::add"));
  EXPECT_TRUE(IsOperatorName("torchvision::roi_align"));
  for (const char* range : {"ReluBackward0", "PythonDispatchMode", "torch::autograd::AccumulateGrad",
                            "autograd::engine::evaluate_function: AddBackward0"}) {
    EXPECT_FALSE(IsOperatorName(range)) << range;
  }
}

TEST(NameCacheTest, SameTextSameValueAndRefusedNamesAreNotKept) {
  static NameCache<int> cache;
  int made = 0;
  const auto make = [&](const char* name, int* value) {
    *value = ++made;
    return name[0] != '!';
  };
  const std::string a = "aten::add";
  const std::string b = "aten::add";
  EXPECT_EQ(cache.FindByPointer(a.c_str(), make), 1);
  EXPECT_EQ(cache.FindByPointer(a.c_str(), make), 1);
  EXPECT_EQ(cache.FindByPointer(b.c_str(), make), 2);
  EXPECT_EQ(cache.FindByText(a.c_str(), make), 3);
  EXPECT_EQ(cache.FindByText(b.c_str(), make), 3);
  EXPECT_EQ(cache.FindByText("!range", make), 4);
  EXPECT_EQ(cache.FindByText("!range", make), 5);
  // The same place, another text.
  char place[32] = "first";
  EXPECT_EQ(cache.FindByPointer(place, make), 6);
  strcpy(place, "other");
  EXPECT_EQ(cache.FindByPointer(place, make), 7);
  EXPECT_EQ(cache.FindByPointer(place, make), 7);
  strcpy(place, "first");
  EXPECT_EQ(cache.FindByPointer(place, make), 6);
}

TEST(ScopeNameTest, TorchsOwnNames) {
  EXPECT_EQ(ClassifyScope("Optimizer.step#SGD.step"), UserScope::kOptimizerStep);
  EXPECT_EQ(ClassifyScope("Optimizer.zero_grad#Adam.zero_grad"), UserScope::kZeroGrad);
  EXPECT_EQ(ClassifyScope("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"), UserScope::kLoader);
  EXPECT_EQ(ClassifyScope("DistributedDataParallel.forward"), UserScope::kOther);
  EXPECT_EQ(ClassifyScope("Optimizer.step"), UserScope::kOther);
  EXPECT_EQ(ClassifyScope(""), UserScope::kOther);
}

TEST_F(AutogradTest, AnImplausibleNodeSwitchesBackwardLayersOff) {
  InitIntrusive();
  MulBackward0 node(uint64_t{1} << 60, ThreadId());
  t_intrusive = &node;
  EXPECT_EQ(SiteOfThread(), Site{});
  EXPECT_EQ(recorder_.diagnostics, std::vector<std::string>{"node-layout"});
  MulBackward0 good(NodeIn(3), ThreadId());
  t_intrusive = &good;
  EXPECT_EQ(SiteOfThread(), Site{});  // for good
  EXPECT_EQ(good.counts.load(), 1 | uint64_t{1} << 32);
}

}  // namespace
}  // namespace rfinject

// What scopes.cc asks of injector/python and of attach.cc.
namespace rfinject {
void BeginWait(Watched) noexcept { ++g_waits_begun; }
void EndWait(Watched) noexcept { ++g_waits_ended; }
void WatchWaits(Watched, bool) noexcept {}
void RequestSlotRepair() noexcept {}
uint32_t LayerOfGradient(uint32_t owner, uintptr_t parameter) noexcept {
  return parameter == 0x1000 && owner == 3 ? 7 : owner;
}
void RequestPoliteExit() noexcept {}
void EndAttachmentIfOver() noexcept {}
void NoteOptimizerStep() noexcept {}
void ActivateWithoutPython() noexcept {}
uint64_t TakeSamplesOfStep() noexcept { return 0; }
void NoteCallsOfStep(std::string_view, uint32_t) noexcept {}
const Settings& GetSettings() noexcept {
  static const Settings settings;
  return settings;
}
OpKind ClassifyOp(std::string_view) noexcept { return OpKind::kAtomic; }
std::string_view TangentProductOf(std::string_view) noexcept { return {}; }
bool TakesSequences(std::string_view) noexcept { return false; }
std::string_view FusedBackwardOf(std::string_view) noexcept { return {}; }
bool IsCopy(std::string_view name) noexcept { return name == "aten::copy_"; }
}  // namespace rfinject
