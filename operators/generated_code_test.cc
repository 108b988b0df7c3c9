#include "operators/generated_code.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace rfinject {
namespace {

// A module as Inductor writes it, with what matters here: relu(x * 2), a gather, and a product; the first kernel is
// called twice.
constexpr const char* kModule = R"(# AOT ID: ['0_inference']
async_compile = AsyncCompile()

# Topologically Sorted Source Nodes: [mul, relu], Original ATen: [aten.mul, aten.relu]
# Source node to ATen node mapping:
#   mul => mul
# Graph fragment:
#   %arg0_1 : Tensor "f32[256, 512][512, 1]cuda:0" = PlaceHolder[target=arg0_1]
#   %mul : Tensor "f32[256, 512][512, 1]cuda:0"[num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%arg0_1, 2), kwargs = {})
#   %relu : Tensor "f32[256, 512][512, 1]cuda:0"[num_users=1] = call_function[target=torch.ops.aten.relu.default](args = (%mul,), kwargs = {})
#   return %relu
triton_poi_fused_mul_relu_0 = async_compile.triton('triton_poi_fused_mul_relu_0', '''
@triton_heuristics.pointwise(
    triton_meta={'signature': {'in_ptr0': '*fp32', 'out_ptr0': '*fp32', 'xnumel': 'i32', 'XBLOCK': 'constexpr'}},
)
@triton.jit
def triton_poi_fused_mul_relu_0(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    tmp0 = tl.load(in_ptr0 + (x0), None)
    tl.store(out_ptr0 + (x0), tmp2, None)
''', device_str='cuda')

# Topologically Sorted Source Nodes: [embedding], Original ATen: [aten.embedding]
triton_poi_fused_embedding_1 = async_compile.triton('triton_poi_fused_embedding_1', '''
    triton_meta={'signature': {'in_ptr0': '*i64', 'in_ptr1': '*fp16', 'out_ptr0': '*fp16', 'xnumel': 'i32'}},
def triton_poi_fused_embedding_1(in_ptr0, in_ptr1, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    tmp0 = tl.load(in_ptr0 + (x1), None)
    tmp6 = tl.load(in_ptr1 + (x0 + 64*tmp4), None)
    tl.store(out_ptr0 + (x2), tmp6, None)
''', device_str='cuda')

# Source Nodes: [], Original ATen: []
their_kernel_2 = async_compile.triton('their_kernel', '''
@triton_heuristics.user_autotune(
    triton_meta={'signature': {'x_ptr': '*fp32', 'y_ptr': '*fp32', 'n': 'i32'}},
def their_kernel(x_ptr, y_ptr, n, BLOCK : tl.constexpr):
    offsets = x_ptr + tl.arange(0, BLOCK)
''', device_str='cuda')

def call(args):
    buf0 = empty_strided_cuda((256, 512), (512, 1), torch.float32)
    # Topologically Sorted Source Nodes: [mul, relu], Original ATen: [aten.mul, aten.relu]
    triton_poi_fused_mul_relu_0.run(arg0_1, buf0, 131072, stream=stream0)
    buf1 = empty_strided_cuda((256, 256), (256, 1), torch.float32)
    # Topologically Sorted Source Nodes: [mm], Original ATen: [aten.mm]
    extern_kernels.mm(buf0, reinterpret_tensor(arg1_1, (512, 256), (1, 512), 0), out=buf1)
    buf2 = buf0; del buf0  # reuse
    # Topologically Sorted Source Nodes: [mul_1, relu_1], Original ATen: [aten.mul, aten.relu]
    triton_poi_fused_mul_relu_0.run(arg0_1, buf2, 131072, stream=stream0)
    buf3 = empty_strided_cuda((8, 64), (64, 1), torch.float16)
    # Topologically Sorted Source Nodes: [embedding], Original ATen: [aten.embedding]
    triton_poi_fused_embedding_1.run(arg2_1, arg3_1, buf3, 512, stream=stream0)
    their_kernel_2.run(buf1, buf2, 65536, grid_0, 1, 1, stream=stream0)
    triton_poi_fused_mul_relu_0.run(unknown, buf2, 512*s0, stream=stream0)

def benchmark_compiled_module(times=10, repeat=10):
    arg0_1 = rand_strided((256, 512), (512, 1), device='cuda:0', dtype=torch.float32)
    arg1_1 = rand_strided((256, 512), (512, 1), device='cuda:0', dtype=torch.float32)
    arg2_1 = rand_strided((8, ), (1, ), device='cuda:0', dtype=torch.int64)
    arg3_1 = rand_strided((50257, 64), (64, 1), device='cuda:0', dtype=torch.float16)
)";

std::vector<std::string> Operators(const GeneratedCall& call) {
  std::vector<std::string> names;
  for (const FxCall& node : call.nodes) names.push_back(node.op);
  return names;
}

using Names = std::vector<std::string>;

TEST(GeneratedCode, CallsHaveKernelLineAndBytes) {
  const auto code = ReadGeneratedCode(kModule, "");
  ASSERT_EQ(code.size(), 6u);
  const std::string text = kModule;
  const auto first_line = static_cast<uint32_t>(
      1 + std::count(text.begin(), text.begin() + static_cast<long>(text.find("0.run(")), '\n'));
  EXPECT_EQ(code[0].line, first_line);
  EXPECT_EQ(code[0].kernel, "triton_poi_fused_mul_relu_0");
  EXPECT_TRUE(code[0].bytes_known);
  EXPECT_EQ(code[0].bytes, 2u * 256 * 512 * 4);
  EXPECT_EQ(code[0].written, 0b10u);
  EXPECT_EQ(code[4].written, UINT64_MAX) << "a kernel of the program's own may write to all that it is given";
  EXPECT_EQ(code[1].kernel, "");
  // A buffer under another name is as large as it was.
  EXPECT_EQ(code[2].bytes, 2u * 256 * 512 * 4);
  // Of a table no more is read than the result has elements.
  EXPECT_EQ(code[3].bytes, 8u * 8 + 2 * (8 * 64 * 2));
  // Which of its tensors a kernel of the program's reads or writes is not known: each counts once.
  EXPECT_EQ(code[4].bytes, 4u * (256 * 256 + 256 * 512));
  EXPECT_EQ(code[4].kernel, "their_kernel");
  EXPECT_EQ(code[4].why_no_flop, "a kernel of the program's own");
  EXPECT_FALSE(code[5].bytes_known);
}

TEST(GeneratedCode, AnOffsetOfRandomNumbersIsNoSize) {
  const auto code = ReadGeneratedCode(R"(
async_compile = AsyncCompile()
triton_poi_fused_native_dropout_0 = async_compile.triton('triton_poi_fused_native_dropout_0', '''
    triton_meta={'signature': {'in_ptr0': '*i64', 'out_ptr0': '*fp32', 'load_seed_offset': 'i32', 'xnumel': 'i32'}},
def triton_poi_fused_native_dropout_0(in_ptr0, out_ptr0, load_seed_offset, xnumel, XBLOCK : tl.constexpr):
    tmp0 = tl.load(in_ptr0 + load_seed_offset)
    tl.store(out_ptr0 + (x0), tmp2, None)
''', device_str='cuda')

def call(args):
    buf0 = empty_strided_cuda((2, ), (1, ), torch.int64)
    buf1 = empty_strided_cuda((4, 8), (8, 1), torch.float32)
    triton_poi_fused_native_dropout_0.run(buf0, buf1, 0, 32, stream=stream0)
)",
                                      "");
  ASSERT_EQ(code.size(), 1u);
  EXPECT_EQ(code[0].bytes, 2u * 8 + 4 * 8 * 4);
}

TEST(GeneratedCode, CommentsSayWhatAKernelComputes) {
  const auto code = ReadGeneratedCode(kModule, "");
  ASSERT_EQ(code.size(), 6u);
  EXPECT_EQ(Operators(code[0]), (Names{"aten::mul", "aten::relu"}));
  // The same code, called again, does the same.
  EXPECT_EQ(Operators(code[2]), (Names{"aten::mul", "aten::relu"}));
  EXPECT_TRUE(code[0].layers.empty());
}

TEST(GeneratedCode, InductorsObjectsSayItOfEachCall) {
  const std::string graph =
      "%x : Tensor \"f32[256, 512]\"\n"
      "%mul : Tensor \"f32[256, 512]\" = call_function[target=torch.ops.aten.mul.Tensor](args = (%x, 2,), kwargs = {})\n"
      "%relu : Tensor \"f32[256, 512]\" = call_function[target=torch.ops.aten.relu.default](args = (%mul,), kwargs = {})\n"
      "%relu_1 : Tensor \"f32[256, 512]\" = call_function[target=torch.ops.aten.relu.default](args = (%mul,), kwargs = {})\n"
      "%mm : Tensor \"f32[256, 256]\" = call_function[target=torch.ops.aten.mm.default](args = (%relu, %y), kwargs = {})\n"
      "layer\tmul\ta.bn\tBatchNorm1d\n"
      "layer\trelu\ta.act\tReLU\n"
      "layer\trelu_1\tb.act\tReLU\n"
      "layer\tmm\tb.fc\tLinear\n"
      "buffer\tunknown\t(16, 32, )\t(32, 1, )\n"
      "buffer\tbuf0\t(1, )\t(1, )\n"
      "kernel\ttriton\tmul,relu\tmul,relu\tbuf0\t\n"
      "kernel\textern\tmm\tmm\tbuf1\t\n"
      "kernel\ttriton\tmul_1,relu_1\tmul,relu_1\tbuf2\t\n"
      "kernel\ttriton\tembedding\t\tbuf3\tmm\n";
  std::string text = kModule;
  text.replace(text.find("512*s0"), 6, "131072");
  const auto code = ReadGeneratedCode(text, graph);
  ASSERT_EQ(code.size(), 6u);
  EXPECT_EQ(Operators(code[0]), (Names{"aten::mul", "aten::relu"}));
  // What the module says of a buffer counts, and what it does not say comes from the objects.
  EXPECT_EQ(code[0].bytes, 2u * 256 * 512 * 4);
  EXPECT_EQ(code[5].bytes, 4u * (16 * 32 + 256 * 512));
  EXPECT_EQ(code[0].layers, (std::vector<GeneratedLayer>{{"a.bn", "BatchNorm1d"}, {"a.act", "ReLU"}}));
  EXPECT_EQ(code[1].layers, (std::vector<GeneratedLayer>{{"b.fc", "Linear"}}));
  // What was computed before is computed again: it counts once.
  EXPECT_EQ(Operators(code[2]), (Names{"aten::relu"}));
  EXPECT_EQ(code[2].layers, (std::vector<GeneratedLayer>{{"b.act", "ReLU"}}));
  // What computes nothing is of the layer that it is prepared for.
  EXPECT_EQ(code[3].layers, (std::vector<GeneratedLayer>{{"b.fc", "Linear"}}));
}

// Inductor calls a convolution without its bias, which it adds in the next kernel.
TEST(GeneratedCode, WhatIsLeftOfAnOperatorIsOfItsLayer) {
  const std::string node = " : Tensor \"f32[256, 512]\" = call_function[target=torch.ops.aten.";
  const std::string graph = "%mul" + node + "mul.Tensor](args = (%x, 2,), kwargs = {})\n%mm" + node +
                            "mm.default](args = (%mul, %y), kwargs = {})\n%relu" + node +
                            "relu.default](args = (%mm,), kwargs = {})\n%relu_1" + node +
                            "relu.default](args = (%mm,), kwargs = {})\n"
                            "layer\tmul\ta\tScale\n"
                            "layer\tmm\tb.fc\tLinear\n"
                            "layer\trelu\tb.act\tReLU\n"
                            "layer\trelu_1\tc.act\tReLU\n"
                            "kernel\ttriton\tmul,relu\tmul\tbuf0\t\n"
                            "kernel\textern\tmm\tmm\tbuf1\t\n"
                            "kernel\ttriton\tmul_1,relu_1\tmm,relu\tbuf2\t\n"
                            "kernel\ttriton\tembedding\tmm,relu_1\tbuf3\t\n";
  const auto code = ReadGeneratedCode(kModule, graph);
  ASSERT_EQ(code.size(), 6u);
  EXPECT_EQ(Operators(code[2]), (Names{"aten::relu"}));
  EXPECT_EQ(code[2].layers, (std::vector<GeneratedLayer>{{"b.fc", "Linear"}, {"b.act", "ReLU"}}));
  // Another kernel adds it again.
  EXPECT_EQ(code[3].layers, (std::vector<GeneratedLayer>{{"c.act", "ReLU"}}));
}

TEST(GeneratedCode, ABufferThatIsCalledAsAnOperatorIsNone) {
  std::string text = kModule;
  text.replace(text.find("mm(buf0"), 7, "mm(relu");
  const std::string node = " : Tensor \"f32[256, 512]\" = call_function[target=torch.ops.aten.";
  const auto code =
      ReadGeneratedCode(text, "%relu_1" + node + "relu.default](args = (%x,), kwargs = {})\n%mm" + node +
                                  "mm.default](args = (%relu_1, %y), kwargs = {})\n"
                                  "layer\trelu_1\tb.act\tReLU\n"
                                  "layer\tmm\tb.fc\tLinear\n"
                                  "kernel\textern\tmm\trelu_1,mm\tbuf1\t\n");
  ASSERT_EQ(code.size(), 6u);
  EXPECT_EQ(code[1].layers, (std::vector<GeneratedLayer>{{"b.fc", "Linear"}}));
}

// Seeds of the random numbers of all dropouts come from no module.
TEST(GeneratedCode, WhatIsOfNoModuleIsOfTheLayersThatUseIt) {
  std::string text = kModule;
  const std::string call = "extern_kernels.mm(buf0, reinterpret_tensor(arg1_1, (512, 256), (1, 512), 0), out=buf1)";
  text.replace(text.find(call), call.size(),
               "aten.randint.low_out(-9223372036854775808, 9223372036854775807, [2], out=buf1)");
  const auto code = ReadGeneratedCode(
      text,
      "%seeds : Tensor \"i64[2]\" = call_function[target=torch.ops.prims.inductor_seeds.default](args = (2,), kwargs = {})\n"
      "layer\tgt\ta.drop\tDropout\n"
      "layer\tgt_1\tb.drop\tDropout\n"
      "kernel\textern\tmm\tseeds\tbuf1\tgt,gt_1\n");
  ASSERT_EQ(code.size(), 6u);
  EXPECT_EQ(code[1].kernel, "");
  EXPECT_EQ(code[1].layers, (std::vector<GeneratedLayer>{{"a.drop", "Dropout"}, {"b.drop", "Dropout"}}));
}

// Torch 2.6 names no source nodes in a backward, 2.9 those that came from the forward, 2.15 all.
TEST(GeneratedCode, KernelsAreFoundWhicheverSourcesTheirCommentsName) {
  const std::string graph =
      "layer\tmul\ta.bn\tBatchNorm1d\n"
      "layer\tmm\tb.fc\tLinear\n"
      "kernel\ttriton\tmul,relu\tmul\tbuf0\t\n"
      "kernel\textern\tlinear,mm,permute\tmm\tbuf1\t\n";
  for (const std::string sources : {"", "linear", "permute, mm, linear"}) {
    std::string text = kModule;
    const std::string before = "Source Nodes: [mm], Original ATen: [aten.mm]\n    extern";
    text.replace(text.find(before), before.size(), "Source Nodes: [" + sources + "], Original ATen: []\n    extern");
    const auto code = ReadGeneratedCode(text, graph);
    ASSERT_EQ(code.size(), 6u);
    EXPECT_EQ(code[1].layers, (std::vector<GeneratedLayer>{{"b.fc", "Linear"}})) << sources;
  }
}

// The blocks that a mask leaves are counted in two vectors, whose parameters Inductor names.
TEST(GeneratedCode, FlexAttentionIsToldTheBlocksOfItsMask) {
  const auto module_of = [](const std::string& full_blocks) {
    return R"(async_compile = AsyncCompile()
# Topologically Sorted Source Nodes: [flex_attention], Original ATen: [flex_attention]
triton_tem_fused_flex_attention_0 = async_compile.triton('triton_tem_fused_flex_attention_0', '''
@triton_heuristics.template(
    triton_meta={'signature': {'arg_Q': '*bf16', 'arg_KV_NUM_BLKS': '*i32', 'arg_KV_IDX': '*i32', 'arg_FULL_KV_NUM_BLKS': '*i32', 'out_ptr0': '*bf16'}},
)
def triton_tem_fused_flex_attention_0(arg_Q, arg_KV_NUM_BLKS, arg_KV_IDX, arg_FULL_KV_NUM_BLKS, out_ptr0):
    tl.store(out_ptr0 + (x0), acc, mask)
''', device_str='cuda')

def call(args):
    assert_size_stride(arg0_1, (1, 1, 1024, 64), (65536, 65536, 64, 1))
    assert_size_stride(arg1_1, (1, 1, 8), (8, 8, 1))
    assert_size_stride(arg2_1, (1, 1, 8, 8), (64, 64, 8, 1))
    assert_size_stride(arg3_1, ()" +
           full_blocks + R"(), (1,))
    buf0 = empty_strided_cuda((1, 1, 1024, 64), (65536, 65536, 64, 1), torch.bfloat16)
    triton_tem_fused_flex_attention_0.run(arg0_1, arg1_1, arg2_1, arg3_1, buf0, 8, 1, 1, stream=stream0)
)";
  };
  const std::vector<GeneratedCall> calls = ReadGeneratedCode(module_of("8,"), "");
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].mask.counts, (std::array<int, 2>{1, 3}));
  EXPECT_EQ(calls[0].mask.rows, 8u);
  EXPECT_EQ(calls[0].mask.blocks, 64u);
  EXPECT_EQ(calls[0].written & 0b11111, 0b10001u) << "what a template may write to, the blocks excepted";
  EXPECT_EQ(ReadGeneratedCode(module_of("0,"), "")[0].mask.counts, (std::array<int, 2>{1, -1}));
}

// The backward's comment stands before the kernel that sums up gradients first; the template is the attention.
TEST(GeneratedCode, TheFlopOfAnAttentionAreThoseOfItsTemplate) {
  constexpr const char* kNode =
      "# Topologically Sorted Source Nodes: [], Original ATen: [flex_attention_backward]\n"
      "#   %q : Tensor \"bf16[1, 1, 8, 64][512, 512, 64, 1]cuda:0\" = PlaceHolder[target=q]\n"
      "#   %flex_attention_backward : [num_users=3] = "
      "call_function[target=torch.ops.higher_order.flex_attention_backward](args = (%q, %q, %q, %q), kwargs = {})\n";
  const auto kernel = [](const std::string& name, const std::string& heuristics) {
    return name + " = async_compile.triton('" + name + "', '''\n@triton_heuristics." + heuristics +
           "(\n    triton_meta={'signature': {'arg_Q': '*bf16'}},\n)\ndef " + name +
           "(arg_Q):\n    tl.store(arg_Q + (x0), x)\n''', device_str='cuda')\n\n";
  };
  const std::string module = "async_compile = AsyncCompile()\n" + std::string(kNode) +
                             kernel("triton_per_0", "persistent_reduction") + kNode +
                             kernel("triton_tem_1", "template") +
                             "def call(args):\n    assert_size_stride(q, (1, 1, 8, 64), (512, 512, 64, 1))\n"
                             "    triton_per_0.run(q, 8, stream=stream0)\n"
                             "    triton_tem_1.run(q, 1, 1, 1, stream=stream0)\n";
  const std::vector<GeneratedCall> calls = ReadGeneratedCode(module, "");
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_TRUE(calls[0].nodes.empty());
  ASSERT_EQ(calls[1].nodes.size(), 1u);
  EXPECT_EQ(calls[1].nodes[0].op, "higher_order::flex_attention_backward");
}

TEST(GeneratedCode, AnyPartOfAModuleIsReadWithoutHarm) {
  const std::string text = kModule;
  EXPECT_TRUE(IsGeneratedCode(text));
  EXPECT_FALSE(IsGeneratedCode("import torch\n"));
  for (size_t length = 0; length < text.size(); length += 7) {
    ReadGeneratedCode(text.substr(0, length), text.substr(length));
    ReadGeneratedCode(text.substr(length), "kernel\nlayer\t\nkernel\ttriton\t\t\t\t\n");
  }
}

}  // namespace
}  // namespace rfinject
