// A small ResNet in C++ on libtorch, as its users write them: modules registered in constructors, a training loop, no
// word about profiling. Trains on random images for as many steps as the first argument says (default 6).
#include <torch/torch.h>

#include <cstdlib>
#include <string>

struct BasicBlockImpl : torch::nn::Module {
  BasicBlockImpl(int64_t in, int64_t out, int64_t stride)
      : conv1(torch::nn::Conv2dOptions(in, out, 3).stride(stride).padding(1).bias(false)),
        bn1(out),
        conv2(torch::nn::Conv2dOptions(out, out, 3).padding(1).bias(false)),
        bn2(out) {
    register_module("conv1", conv1);
    register_module("bn1", bn1);
    register_module("conv2", conv2);
    register_module("bn2", bn2);
    if (stride != 1 || in != out) {
      downsample =
          torch::nn::Sequential(torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 1).stride(stride).bias(false)),
                                torch::nn::BatchNorm2d(out));
      register_module("downsample", downsample);
    }
  }

  torch::Tensor forward(torch::Tensor x) {
    torch::Tensor identity = x;
    x = torch::relu(bn1->forward(conv1->forward(x)));
    x = bn2->forward(conv2->forward(x));
    if (!downsample.is_empty()) identity = downsample->forward(identity);
    return torch::relu(x + identity);
  }

  torch::nn::Conv2d conv1;
  torch::nn::BatchNorm2d bn1;
  torch::nn::Conv2d conv2;
  torch::nn::BatchNorm2d bn2;
  torch::nn::Sequential downsample{nullptr};
};
TORCH_MODULE(BasicBlock);

struct ResNetImpl : torch::nn::Module {
  explicit ResNetImpl(int64_t classes)
      : conv1(torch::nn::Conv2dOptions(3, 16, 3).padding(1).bias(false)),
        bn1(16),
        layer1(BasicBlock(16, 16, 1), BasicBlock(16, 16, 1)),
        layer2(BasicBlock(16, 32, 2), BasicBlock(32, 32, 1)),
        layer3(BasicBlock(32, 64, 2), BasicBlock(64, 64, 1)),
        pool(torch::nn::AdaptiveAvgPool2dOptions({1, 1})),
        fc(64, classes) {
    register_module("conv1", conv1);
    register_module("bn1", bn1);
    register_module("layer1", layer1);
    register_module("layer2", layer2);
    register_module("layer3", layer3);
    register_module("pool", pool);
    register_module("fc", fc);
  }

  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(bn1->forward(conv1->forward(x)));
    x = layer1->forward(x);
    x = layer2->forward(x);
    x = layer3->forward(x);
    x = pool->forward(x).flatten(1);
    return fc->forward(x);
  }

  torch::nn::Conv2d conv1;
  torch::nn::BatchNorm2d bn1;
  torch::nn::Sequential layer1, layer2, layer3;
  torch::nn::AdaptiveAvgPool2d pool;
  torch::nn::Linear fc;
};
TORCH_MODULE(ResNet);

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 6;
  torch::manual_seed(1);
  ResNet model(10);
  torch::nn::CrossEntropyLoss criterion;
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9).weight_decay(1e-4));
  model->train();
  const int validated = argc > 2 ? std::atoi(argv[2]) : 0;
  float loss_value = 0;
  for (int step = 0; step < steps; ++step) {
    torch::Tensor images = torch::rand({8, 3, 32, 32});
    torch::Tensor labels = torch::randint(10, {8}, torch::kLong);
    optimizer.zero_grad();
    torch::Tensor loss = criterion->forward(model->forward(images), labels);
    loss.backward();
    optimizer.step();
    loss_value = loss.item<float>();
    // An epoch is two steps.
    if (validated == 0 || step % 2 == 0) continue;
    torch::NoGradGuard no_grad;
    model->eval();
    for (int batch = 0; batch < validated; ++batch) {
      torch::Tensor more = torch::rand({4, 3, 32, 32});
      loss_value += criterion->forward(model->forward(more), torch::zeros({4}, torch::kLong)).item<float>();
    }
    model->train();
  }
  return loss_value == loss_value ? 0 : 1;
}
