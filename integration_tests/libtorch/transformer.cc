// A small language model in C++ on libtorch: embeddings, a transformer encoder of torch's own, a head. Trains on
// random tokens for as many steps as the first argument says (default 6).
#include <torch/torch.h>

#include <cstdlib>
#include <string>

constexpr int64_t kWords = 200;
constexpr int64_t kWidth = 32;
constexpr int64_t kLength = 16;

// Attention as its users write it when they do not take torch's own.
struct AttentionImpl : torch::nn::Module {
  AttentionImpl(int64_t width, int64_t heads) : qkv(width, 3 * width), out(width, width), heads(heads) {
    register_module("qkv", qkv);
    register_module("out", out);
  }

  torch::Tensor forward(torch::Tensor x) {
    const int64_t batch = x.size(0), length = x.size(1), width = x.size(2);
    auto parts = qkv->forward(x).view({batch, length, 3, heads, width / heads}).permute({2, 0, 3, 1, 4});
    torch::Tensor scores = torch::matmul(parts[0], parts[1].transpose(-2, -1)) / std::sqrt(double(width / heads));
    torch::Tensor mixed = torch::matmul(torch::softmax(scores, -1), parts[2]);
    return out->forward(mixed.transpose(1, 2).reshape({batch, length, width}));
  }

  torch::nn::Linear qkv, out;
  int64_t heads;
};
TORCH_MODULE(Attention);

struct BlockImpl : torch::nn::Module {
  BlockImpl(int64_t width, int64_t heads)
      : norm1(torch::nn::LayerNormOptions({width})),
        attention(width, heads),
        norm2(torch::nn::LayerNormOptions({width})),
        feed(torch::nn::Linear(width, 4 * width), torch::nn::GELU(), torch::nn::Linear(4 * width, width)) {
    register_module("norm1", norm1);
    register_module("attention", attention);
    register_module("norm2", norm2);
    register_module("feed", feed);
  }

  torch::Tensor forward(torch::Tensor x) {
    x = x + attention->forward(norm1->forward(x));
    return x + feed->forward(norm2->forward(x));
  }

  torch::nn::LayerNorm norm1;
  Attention attention;
  torch::nn::LayerNorm norm2;
  torch::nn::Sequential feed;
};
TORCH_MODULE(Block);

struct LanguageModelImpl : torch::nn::Module {
  LanguageModelImpl()
      : words(kWords, kWidth),
        positions(kLength, kWidth),
        block(kWidth, 4),
        encoder(
            torch::nn::TransformerEncoderOptions(torch::nn::TransformerEncoderLayerOptions(kWidth, 4).dropout(0), 2)),
        head(kWidth, kWords) {
    register_module("words", words);
    register_module("positions", positions);
    register_module("block", block);
    register_module("encoder", encoder);
    register_module("head", head);
  }

  torch::Tensor forward(torch::Tensor tokens) {
    torch::Tensor x = words->forward(tokens) + positions->forward(torch::arange(tokens.size(1)));
    x = block->forward(x);
    x = encoder->forward(x.transpose(0, 1)).transpose(0, 1);
    return head->forward(x);
  }

  torch::nn::Embedding words, positions;
  Block block;
  torch::nn::TransformerEncoder encoder;
  torch::nn::Linear head;
};
TORCH_MODULE(LanguageModel);

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 6;
  torch::manual_seed(1);
  LanguageModel model;
  torch::nn::CrossEntropyLoss criterion;
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(1e-3));
  float loss_value = 0;
  for (int step = 0; step < steps; ++step) {
    torch::Tensor tokens = torch::randint(kWords, {4, kLength}, torch::kLong);
    torch::Tensor logits = model->forward(tokens);
    torch::Tensor loss = criterion->forward(logits.view({-1, kWords}), tokens.roll(-1, 1).reshape({-1}));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    loss_value = loss.item<float>();
  }
  return loss_value == loss_value ? 0 : 1;
}
