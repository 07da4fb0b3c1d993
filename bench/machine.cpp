// machine/: the memory bandwidth and the arithmetic speed of one core, of which the lower bounds are made.
#include <ATen/ATen.h>

#include "measure.h"

namespace lcp::bench {
namespace {

void add_copy(const std::string& name, std::int64_t bytes) {
  add("machine/copy/" + name, 1, [bytes](benchmark::State& state) -> Work {
    const at::Tensor from = at::ones(bytes / 8, at::kDouble);
    const at::Tensor to = from.clone();                              // allocates its pages
    state.counters["bytes_moved"] = 2 * static_cast<double>(bytes);  // read and written
    return [=] { to.copy_(from); };
  });
}

void add_product(const std::string& name, at::ScalarType dtype) {
  add("machine/product/" + name, 1, [dtype](benchmark::State& state) -> Work {
    constexpr std::int64_t kOrder = 768;
    const at::Tensor A = at::ones({kOrder, kOrder}, dtype);
    at::Tensor C = at::empty_like(A);
    state.counters["flops"] = 2.0 * kOrder * kOrder * kOrder;
    return [=]() mutable { at::mm_out(C, A, A); };
  });
}

}  // namespace

void add_machine() {
  add_copy("memory", std::int64_t{64} << 20);
  add_copy("cache", std::int64_t{256} << 10);
  add_product("float64", at::kDouble);
  add_product("float32", at::kFloat);
}

}  // namespace lcp::bench
