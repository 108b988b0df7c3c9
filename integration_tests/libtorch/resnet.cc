// A small ResNet in C++ on libtorch, as its users write them: modules registered in constructors, a training loop, no
// word about profiling.
//
//     resnet [STEPS [VALIDATED [THREADS [DEVICE]]]]
//
// Trains on random images for STEPS (default 6; 0: until standard input ends; a byte of it lets the program wait for
// another, and fork where that is an f), with VALIDATED batches of validation after every other one, while THREADS
// others compute something without gradients. With a VALIDATED below 0 it does not train: it runs the model alone.
// Prints for how many steps and what it has learnt. Begins with what CUDA's driver does with CUDA_INJECTION64_PATH.
#include <dlfcn.h>
#include <poll.h>
#include <sys/wait.h>
#include <torch/torch.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

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

// Has a child compute something, and prints whether it has rfinject's library then.
void Fork() {
  const pid_t child = fork();
  if (child == 0) {
    torch::ones({1}).add(1);
    std::ifstream maps("/proc/self/maps");
    const std::string text((std::istreambuf_iterator<char>(maps)), std::istreambuf_iterator<char>());
    _exit(text.find("librfinject.so") != text.npos ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("child %d\n", status), std::fflush(stdout);
}

bool InputHasEnded() {
  pollfd input{0, POLLIN, 0};
  char byte = 0;
  if (poll(&input, 1, 0) <= 0) return false;
  if (read(0, &byte, 1) != 1) return true;
  std::puts("waits"), std::fflush(stdout);
  if (read(0, &byte, 1) != 1) return true;
  if (byte == 'f') Fork();
  return false;
}

void LoadInjection() {
  const char* path = std::getenv("CUDA_INJECTION64_PATH");
  void* library = path != nullptr ? dlopen(path, RTLD_NOW) : nullptr;
  if (library == nullptr) return;
  const auto initialize = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"));
  if (initialize == nullptr || initialize() != 1) std::abort();
}

int main(int argc, char** argv) {
  const auto number = [&](int i, int otherwise) { return argc > i ? std::atoi(argv[i]) : otherwise; };
  const int steps = number(1, 6), validated = number(2, 0);
  LoadInjection();
  torch::manual_seed(1);
  const torch::Device device(argc > 4 ? argv[4] : "cpu");
  ResNet model(10);
  model->to(device);
  torch::nn::CrossEntropyLoss criterion;
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9).weight_decay(1e-4));
  model->train();
  std::atomic<bool> goes_on{true};
  std::vector<std::thread> threads;
  for (int i = 0; i < number(3, 0); ++i) {
    threads.emplace_back([&goes_on] {
      const torch::InferenceMode inference;
      const torch::Tensor numbers = torch::ones({8});
      while (goes_on) numbers.add(1);
    });
  }
  float loss_value = 0;
  int step = 0;
  for (; steps > 0 ? step < steps : !InputHasEnded(); ++step) {
    torch::Tensor images = torch::rand({8, 3, 32, 32}).to(device);
    torch::Tensor labels = torch::randint(10, {8}, torch::kLong).to(device);
    if (validated < 0) {
      torch::NoGradGuard no_grad;
      loss_value = model->forward(images).sum().item<float>();
    } else {
      optimizer.zero_grad();
      torch::Tensor loss = criterion->forward(model->forward(images), labels);
      loss.backward();
      optimizer.step();
      loss_value = loss.item<float>();
    }
    if (steps == 0 && step == 0) std::puts("ready"), std::fflush(stdout);
    // An epoch is two steps.
    if (validated <= 0 || step % 2 == 0) continue;
    torch::NoGradGuard no_grad;
    model->eval();
    for (int batch = 0; batch < validated; ++batch) {
      torch::Tensor more = torch::rand({4, 3, 32, 32}).to(device);
      loss_value +=
          criterion->forward(model->forward(more), torch::zeros({4}, torch::kLong).to(device)).item<float>();
    }
    model->train();
  }
  goes_on = false;
  for (std::thread& thread : threads) thread.join();
  std::printf("%d %a\n", step, loss_value);
  return loss_value == loss_value ? 0 : 1;
}
