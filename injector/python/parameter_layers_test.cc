#include "injector/python/parameter_layers.h"

#include <gtest/gtest.h>

#include <map>

#include "collector/testing/fake_recorder.h"
#include "injector/training.h"

namespace rfinject {
namespace {

// Knows which layer lies in which.
class NestedLayers : public testing::FakeRecorder {
 public:
  bool FindLayer(uint32_t layer, LayerDefinition* definition) override {
    const auto parent = parents_.find(layer);
    if (parent == parents_.end()) return false;
    definition->parent = parent->second;
    return true;
  }

 private:
  // A model (1) with a block (2) and in it a layer (3); beside the block a layer (4).
  std::map<uint32_t, uint32_t> parents_ = {{1, 0}, {2, 1}, {3, 2}, {4, 1}};
};

TEST(ParameterLayers, AGradientOfCompiledCodeBelongsToTheModuleOfItsParameter) {
  NestedLayers recorder;
  EXPECT_EQ(LayerOfGradient(1, 0x100), 1u);
  SetParameterLayers({{0x300, 3}, {0x400, 4}, {0x500, 3}, {0x500, 4}}, recorder);
  EXPECT_EQ(LayerOfGradient(2, 0x300), 2u) << "no compiled code runs there";
  NoteCompiledLayer(2);
  NoteCompiledLayer(2);
  EXPECT_EQ(LayerOfGradient(2, 0x300), 3u);
  EXPECT_EQ(LayerOfGradient(2, 0x400), 2u) << "the parameter's module lies outside of what was compiled";
  EXPECT_EQ(LayerOfGradient(2, 0x600), 2u) << "nothing is known of the parameter";
  NoteCompiledLayer(1);
  EXPECT_EQ(LayerOfGradient(1, 0x400), 4u);
  EXPECT_EQ(LayerOfGradient(1, 0x500), 1u) << "two modules have it";
  SetParameterLayers({{0x400, 3}}, recorder);
  EXPECT_EQ(LayerOfGradient(1, 0x400), 3u);
  EXPECT_EQ(LayerOfGradient(1, 0x300), 1u);
}

}  // namespace
}  // namespace rfinject
