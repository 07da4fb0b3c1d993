#include <lcp/lcp.h>
#include <lcp/nn/direct_model.h>
#include <torch/torch.h>

int main() {
  static_assert(LCP_VERSION_MAJOR == 0);
  const auto block = lcp::physics::SlidingBlock::of(1, 0.1, 0.3, 9.81);
  const torch::Tensor v = torch::tensor({0.1, 2.0}, torch::kDouble);
  const torch::Tensor u = torch::zeros_like(v);
  const auto step = lcp::physics::step(v, u, block, lcp::physics::SlidingBlockFormulation::kDirect).step;
  lcp::nn::DirectModel model{lcp::nn::DirectModelOptions()};
  model->to(torch::kDouble);
  const torch::Tensor lambda = torch::stack({step.lambda_plus, step.lambda_minus}, -1);
  const torch::Tensor target = torch::stack({step.v_next.relu(), (-step.v_next).relu()}, -1);
  lcp::learning::direct_loss(model->forward(v, u, lambda), target, lambda, true, {}).total.backward();
  return model->f->affine->weight.grad().defined() && step.v_next[0].item<double>() == 0 ? 0 : 1;
}
