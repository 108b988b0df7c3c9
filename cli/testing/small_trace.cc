#include "cli/testing/small_trace.h"

#include "cli/testing/trace_bytes.h"

namespace rfinject::cli::testing {

std::vector<uint8_t> Trace(const std::vector<std::function<void(v1::Chunk&)>>& chunks) {
  std::vector<uint8_t> bytes = EmptyTrace();
  uint32_t sequence = 0;
  for (const auto& fill : chunks) {
    v1::Chunk chunk;
    fill(chunk);
    AppendFrame(bytes, sequence++, chunk.SerializeAsString());
  }
  return bytes;
}

TraceContents Read(const std::vector<uint8_t>& bytes) {
  MemorySource source(bytes);
  return ReadTrace(source);
}

v1::Name* AddName(v1::Chunk& chunk, uint32_t id, const std::string& text) {
  v1::Name* name = chunk.add_name();
  name->set_id(id);
  name->set_text(text);
  return name;
}

void Definitions(v1::Chunk& chunk) {
  v1::Run* run = chunk.add_run();
  run->set_id(1);
  run->set_source(v1::SOURCE_ESTIMATED);
  run->set_tier(v1::TIER_B_BACKWARD_SCOPE);
  run->set_estimated_gpu("A100-SXM4-40GB");
  run->set_batch_size(8);
  run->mutable_process()->set_host("node1");
  run->mutable_process()->add_argv("python3");
  run->mutable_process()->add_argv("main.py");
  run->mutable_policy()->set_cudnn_tf32(2);
  AddName(chunk, 1, "aten::convolution");
  v1::Model* model = chunk.add_model();
  model->set_id(1);
  model->set_class_name("ResNet");
  model->set_parameters(100);
  v1::Layer* root = chunk.add_layer();
  root->set_id(1);
  root->set_model(1);
  root->set_class_name("ResNet");
  v1::Layer* layer = chunk.add_layer();
  layer->set_id(2);
  layer->set_model(1);
  layer->set_parent(1);
  layer->set_path("conv1");
  layer->set_class_name("Conv2d");
  v1::Metric* metric = chunk.add_metric();
  metric->set_id(1);
  metric->set_name("rf.time");
  metric->set_unit("ns");
  v1::LaunchKey* key = chunk.add_key();
  key->set_id(1);
  key->set_kernel(1);
  key->set_op(1);
  key->set_layer(2);
  key->set_phase(v1::PHASE_BACKWARD);
}
v1::MetricStats* AddTwoLaunches(v1::Chunk& chunk) {
  v1::KeyStats* stats = chunk.add_stats();
  stats->set_key(1);
  stats->set_launches(2);
  v1::MetricStats* metric = stats->add_metric();
  metric->set_metric(1);
  metric->set_n(2);
  return metric;
}
void Statistics(v1::Chunk& chunk) {
  v1::MetricStats* metric = AddTwoLaunches(chunk);
  metric->set_sum(30);
  metric->set_sum_squares(500);
  metric->set_min(10);
  metric->set_max(20);
  metric->set_shared_sums(1);
  v1::Step* step = chunk.add_step();
  step->set_duration_ns(1000);
  step->set_measured(true);
  step->set_samples(8);
}
void End(v1::Chunk& chunk) { chunk.mutable_end()->set_reason("exit"); }

}  // namespace rfinject::cli::testing
