#include "injector/python/python_frames.h"

#include <gtest/gtest.h>

#include <string>

namespace rfinject {
namespace {

constexpr ProgramFolders kFolders = {
    .main = "/home/ann/src/train", .library = "/usr/lib/python3.11", .torch = "/home/ann/pytorch/torch"};

TEST(OwnerOfFile, TheProgramIsWhatIsNeitherInstalledNorMade) {
  for (const char* path :
       {"/home/ann/src/train/main.py", "/home/ann/src/lib/model.py", "main.py", "<stdin>", "<string>",
        "<ipython-input-3-0123456789ab>", "/tmp/ipykernel_12/34.py", "/usr/lib/python3.11x/a.py"}) {
    EXPECT_EQ(OwnerOfFile(path, kFolders), FileOwner::kProgram) << path;
  }
  for (const char* path : {"/usr/lib/python3/dist-packages/torchvision/models/resnet.py",
                           "/home/ann/src/train/.venv/lib/python3.11/site-packages/timm/models/vit.py"}) {
    EXPECT_EQ(OwnerOfFile(path, kFolders), FileOwner::kPackage) << path;
  }
  for (const char* path :
       {"/usr/lib/python3.11/contextlib.py", "/usr/lib/python3/dist-packages/torch/nn/modules/linear.py",
        "/home/ann/pytorch/torch/nn/functional.py", "<frozen runpy>", "<eval_with_key>.3", "<shim>", "",
        "/tmp/torchinductor_ann/ab/cabc.py", "/x/site-packages/triton/runtime/jit.py"}) {
    EXPECT_EQ(OwnerOfFile(path, kFolders), FileOwner::kMachinery) << path;
  }
}

TEST(ShownPath, TellsOfNoHomeFolder) {
  EXPECT_EQ(ShownPath("/home/ann/src/train/main.py", kFolders), "main.py");
  EXPECT_EQ(ShownPath("/home/ann/src/train/models/vit.py", kFolders), "models/vit.py");
  EXPECT_EQ(ShownPath("/home/ann/src/lib/model.py", kFolders), "lib/model.py");
  EXPECT_EQ(ShownPath("/home/ann/src/training/a.py", kFolders), "training/a.py");
  EXPECT_EQ(ShownPath("/a.py", kFolders), "/a.py");
  EXPECT_EQ(ShownPath("main.py", kFolders), "main.py");
  EXPECT_EQ(ShownPath("<stdin>", kFolders), "<stdin>");
  EXPECT_EQ(ShownPath("/home/ann/a.py", ProgramFolders{}), "ann/a.py");
}

TEST(ShortText, IsUtf8AndEnds) {
  ShortText text;
  for (const uint32_t c : {0x61u, 0xE8u, 0x6A21u, 0x1F600u, 0xDC80u}) text.Append(c);
  EXPECT_EQ(text.view(), "a\xC3\xA8\xE6\xA8\xA1\xF0\x9F\x98\x80\xEF\xBF\xBD");
  for (int i = 0; i < 1000; ++i) text.Append(0x6A21);
  EXPECT_LE(text.view().size(), 512u);
  // Of a text that is too long the end is kept, and one may be a part of itself.
  text.Assign(std::string(600, 'x') + "end");
  EXPECT_EQ(text.view().size(), 512u);
  EXPECT_TRUE(text.view().ends_with("xend"));
  text.clear();
  EXPECT_EQ(text.view(), "");
}

}  // namespace
}  // namespace rfinject
